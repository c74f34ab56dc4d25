"""A user's own usage today, this month and in all, in the reporting zone."""

from typing import Any
from zoneinfo import ZoneInfo

from app.db.session import Database
from app.types import Operation, Settlement, UsageStatus
from app.usage.ledger.ledger import Ledger
from app.usage.reports.reports import UsageReports
from app.usage.rollups.rollups import Rollups
from tests.app.usage.reports.lines import Books, Line
from tests.app.usage.samples import Clock, reservation

DAY = 86_400
KOLKATA = ZoneInfo("Asia/Kolkata")
MIDNIGHT = 1_763_596_800 - 19_800  # 2025-11-20T00:00:00+05:30
PERIODS = ("today", "month", "all_time")


def spend(ledger: Ledger, event_id: str, **reserved: Any) -> None:
    ledger.reserve(reservation(event_id, **reserved))
    ledger.settle(event_id, Settlement(status=UsageStatus.COMPLETED))


def test_everyone_sees_their_own_use_today_this_month_and_in_all(database: Database) -> None:
    clock = Clock(MIDNIGHT - 30 * DAY)
    ledger = Ledger(database, "b", clock, observers=[Rollups(KOLKATA)])
    spend(ledger, "req_1:1")
    clock.now = MIDNIGHT - 1
    spend(ledger, "req_2:1")
    clock.now = MIDNIGHT
    spend(ledger, "req_3:1")
    spend(ledger, "req_4:1", user_id="u2")
    spend(ledger, "req_5:1", tenant_id="t2")
    ledger.reserve(reservation("req_6:1"))
    spend(ledger, "req_7:1", operation=Operation.EMBED_QUERY, input_tokens=12, max_output_tokens=0)
    spend(ledger, "req_7:2", operation=Operation.RERANK, input_tokens=30, max_output_tokens=0)
    spend(ledger, "req_7:3", operation=Operation.JUDGE, input_tokens=200, max_output_tokens=0)

    reports = UsageReports(database, zone=KOLKATA, currency="inr", clock=clock)
    own: dict[str, Any] = reports.own(tenant_id="t1", user_id="u1")

    assert [own[name]["start_time"] for name in PERIODS] == [MIDNIGHT, MIDNIGHT - 19 * DAY, 0]
    assert [own[name]["completions"]["num_model_requests"] for name in PERIODS] == [1, 2, 3]
    assert [own[name]["completions"]["input_tokens"] for name in PERIODS] == [20, 40, 60]
    assert [own[name]["embeddings"] for name in PERIODS] == [{"num_model_requests": 1, "input_tokens": 12}] * 3
    assert [own[name]["rerank"] for name in PERIODS] == [{"num_model_requests": 1, "input_tokens": 30}] * 3
    assert [own[name]["judge"] for name in PERIODS] == [{"num_model_requests": 1, "input_tokens": 200}] * 3
    assert [own[name]["num_unpriced"] for name in PERIODS] == [4, 5, 6]
    assert own["today"]["cost"] == {"value": None, "currency": "inr"}
    assert own["today"]["completions"]["cost"] == {"value": None, "currency": "inr"}
    assert (own["object"], own["user_id"], own["as_of"], own["tz"]) == ("usage", "u1", MIDNIGHT, "Asia/Kolkata")


def test_the_cost_is_that_of_every_call_whatever_it_was_for(sqlite_database: Database) -> None:
    written = [Line(at=MIDNIGHT * 10**6, operation=each, cost=10**at) for at, each in enumerate(Operation)]
    books = Books(sqlite_database, [*written, Line(at=MIDNIGHT * 10**6, operation="judge")])

    own: dict[str, Any] = books.reports.own(tenant_id=books.tenant(), user_id="u1")

    assert own["all_time"]["cost"] == {"value": "0.000000111111", "currency": "usd"}
    assert own["all_time"]["num_unpriced"] == 1


def test_someone_who_spent_nothing_has_zeros(sqlite_database: Database) -> None:
    own: dict[str, Any] = UsageReports(sqlite_database).own(tenant_id="t1", user_id="nobody")

    assert own["all_time"]["completions"]["input_tokens"] == 0
    assert own["all_time"]["completions"]["cost"]["value"] is None
    assert own["all_time"]["embeddings"] == {"num_model_requests": 0, "input_tokens": 0}
