"""Budget alerts fire once a window: in the log, and to a webhook with retries."""

import threading
import time
from collections.abc import Mapping

import pytest
import sqlalchemy as sa
from hypothesis import given
from hypothesis import strategies as st

from app.db.audit import AuditLog
from app.db.session import Database
from app.db.tables.budgets import budget
from app.errors import BudgetExceeded
from app.outbound.webhooks import NotDelivered
from app.types import Settlement, UsageStatus
from app.usage.budgets.alert_delivery import MAX_ATTEMPTS, AlertDelivery, delay_after
from app.usage.budgets.alert_rows import Alert, AlertRepository
from app.usage.budgets.alerts import Crossing
from app.usage.budgets.budgets import Budgets
from app.usage.budgets.repository import BudgetRepository
from app.usage.budgets.rows import lock_tenant
from app.usage.ledger.ledger import Ledger
from tests.app.usage.budgets.samples import ADMIN, set_budget
from tests.app.usage.samples import Clock, reservation

URL = "https://hooks.example/T0/secret"


class Receiver:
    """Takes messages, or refuses while `down`."""

    def __init__(self) -> None:
        self.down = False
        self.tried: list[str] = []
        self.taken: list[Mapping[str, object]] = []

    def __call__(self, url: str, body: Mapping[str, object]) -> None:
        self.tried.append(url)
        if self.down:
            raise NotDelivered("The receiver answered 500.")
        self.taken.append(body)


class Bench:
    """Budgets, a ledger and their alerts over one database."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.clock = Clock()
        self.budgets = BudgetRepository(database, AuditLog(database), clock=self.clock)
        self.alerts = AlertRepository(database, clock=self.clock)
        self.receiver = Receiver()
        self.delivery = AlertDelivery(self.alerts, self.receiver, currency="eur")
        self.ledger = Ledger(database, "boot-1", self.clock, observers=(Budgets(on_refusal=self.delivery.refused),))
        self.calls = 0

    def spend(self, tokens: int) -> None:
        """A call of so many tokens, 20 of them prompt."""
        self.calls += 1
        event_id = f"req_{self.calls}:1"
        self.ledger.reserve(reservation(event_id, max_output_tokens=tokens - 20))
        self.ledger.settle(event_id, Settlement(status=UsageStatus.COMPLETED, output_tokens=tokens - 20))

    def listed(self) -> list[Alert]:
        return list(self.alerts.list(tenant_id="t1", limit=100)[0])


@pytest.fixture
def bench(database: Database) -> Bench:
    return Bench(database)


def test_a_threshold_fires_when_what_is_settled_reaches_it_and_not_before(bench: Bench) -> None:
    set_budget(bench.budgets, limit=1000, thresholds=(50, 80, 100))
    bench.ledger.reserve(reservation("req_0:1", max_output_tokens=480))
    bench.spend(480)
    early = bench.listed()
    bench.spend(20)

    assert early == []
    (alert,) = bench.listed()
    assert (alert.percent, alert.used, alert.limit, alert.reason) == (50, 500, 1000, "spent")


def test_one_call_may_pass_several_thresholds(bench: Bench) -> None:
    set_budget(bench.budgets, limit=1000, thresholds=(50, 80, 100))
    bench.spend(900)

    assert sorted(alert.percent for alert in bench.listed()) == [50, 80]


def test_a_threshold_fires_once_a_window_whatever_happens_to_the_limit(bench: Bench) -> None:
    """Invariant 19."""
    made = set_budget(bench.budgets, limit=1000, thresholds=(80,))
    bench.spend(800)
    bench.delivery.work()
    for limit in (10_000, 900, 801):
        bench.budgets.update(ADMIN, made.id, limit=limit)
        if limit == 10_000:
            bench.spend(20)
        bench.delivery.work()
    first = bench.listed()
    assert made.window.end is not None
    bench.clock.now = made.window.end / 1_000_000 + 1
    bench.spend(800)

    assert [alert.used for alert in first] == [800]
    assert len(bench.listed()) == 2, "the next day has its own"


def test_a_limit_lowered_below_what_is_used_tells_at_once_and_once(bench: Bench) -> None:
    made = set_budget(bench.budgets, limit=1000, thresholds=(80, 100, 120))
    bench.spend(500)
    bench.budgets.update(ADMIN, made.id, limit=600)
    first = bench.listed()
    bench.spend(20)
    bench.budgets.update(ADMIN, made.id, limit=500)
    bench.budgets.update(ADMIN, made.id, limit=490)

    assert [(alert.percent, alert.used, alert.limit, alert.reason) for alert in first] == [(80, 500, 600, "spent")]
    told = sorted((alert.percent, alert.used, alert.limit) for alert in bench.listed())
    assert told == [(80, 500, 600), (100, 520, 500)]


def test_a_limit_lowered_above_what_is_used_and_one_of_nothing_used_tell_nothing(bench: Bench) -> None:
    made = set_budget(bench.budgets, limit=1000, thresholds=(80,))
    bench.ledger.reserve(reservation("req_0:1", max_output_tokens=880))
    bench.budgets.update(ADMIN, made.id, limit=0)
    bench.ledger.settle("req_0:1", Settlement(status=UsageStatus.COMPLETED, input_tokens=0))
    bench.budgets.update(ADMIN, made.id, limit=1000)
    bench.spend(500)
    bench.budgets.update(ADMIN, made.id, limit=626)

    assert bench.listed() == []


def test_a_threshold_set_below_what_is_used_tells_at_once(bench: Bench) -> None:
    made = set_budget(bench.budgets, limit=1000, thresholds=(80,))
    bench.spend(500)
    bench.budgets.update(ADMIN, made.id, thresholds=(50, 60))

    assert [(alert.percent, alert.used, alert.limit) for alert in bench.listed()] == [(50, 500, 1000)]


def test_a_limit_lowered_while_a_call_settles_is_the_one_it_is_held_against(bench: Bench) -> None:
    """Neither of the two may overlook the other: the call by reading the limit before, the change what is used."""
    made = set_budget(bench.budgets, limit=10**6, thresholds=(80,))
    bench.ledger.reserve(reservation("req_0:1", max_output_tokens=480))
    with bench.database.write() as connection:
        lock_tenant(connection, "t1")  # as the change does before anything else
        settling = threading.Thread(
            target=bench.ledger.settle,
            args=("req_0:1", Settlement(status=UsageStatus.COMPLETED, output_tokens=480)),
        )
        settling.start()
        time.sleep(0.3)  # it stands at the lock, or has not come so far: both must end the same
        connection.execute(sa.update(budget).where(budget.c.budget_id == made.id).values(limit_value=600))
    settling.join()

    assert [(alert.used, alert.limit) for alert in bench.listed()] == [(500, 600)]


def test_a_refusal_counts_as_the_whole_limit(bench: Bench) -> None:
    set_budget(bench.budgets, limit=1000, thresholds=(90, 100, 120))
    bench.ledger.reserve(reservation("req_0:1", max_output_tokens=900))
    for number in (1, 2):
        with pytest.raises(BudgetExceeded):
            bench.ledger.reserve(reservation(f"req_{number}:1"))
        bench.delivery.work()

    assert [(alert.percent, alert.reason, alert.used) for alert in bench.listed()] == [(100, "refused", 920)]


def test_a_threshold_below_a_refusal_fires_once_it_is_spent(bench: Bench) -> None:
    set_budget(bench.budgets, limit=1000, thresholds=(80, 100))
    bench.spend(700)
    with pytest.raises(BudgetExceeded):
        bench.ledger.reserve(reservation("req_0:1", max_output_tokens=480))
    bench.delivery.work()
    refused = [(alert.percent, alert.reason) for alert in bench.listed()]
    bench.spend(150)

    assert refused == [(100, "refused")]
    assert sorted((alert.percent, alert.reason) for alert in bench.listed()) == [(80, "spent"), (100, "refused")]


def test_a_refusal_without_a_threshold_of_the_whole_limit_fires_the_highest_below(bench: Bench) -> None:
    set_budget(bench.budgets, limit=1000, thresholds=(50, 80, 120))
    with pytest.raises(BudgetExceeded):
        bench.ledger.reserve(reservation("req_0:1", max_output_tokens=1200))
    bench.delivery.work()

    assert [(alert.percent, alert.reason) for alert in bench.listed()] == [(80, "refused")]


def test_a_call_that_ends_after_a_reset_tells_nothing_of_the_count_before(bench: Bench) -> None:
    made = set_budget(bench.budgets, limit=100, thresholds=(10,))
    bench.ledger.reserve(reservation(max_output_tokens=80))
    bench.budgets.reset(ADMIN, made.id)
    bench.ledger.settle("req_1:1", Settlement(status=UsageStatus.COMPLETED, output_tokens=80))

    assert bench.listed() == []


def test_the_webhook_gets_what_happened_in_the_apis_words(bench: Bench) -> None:
    made = set_budget(bench.budgets, limit=100, thresholds=(80,), webhook_url=URL)
    bench.spend(90)

    assert bench.delivery.work() == 1
    assert bench.delivery.work() == 0
    assert bench.receiver.tried == [URL]
    assert bench.receiver.taken == [
        {
            "id": f"{made.id}:1:{made.window.start}:80",
            "object": "budget_alert",
            "budget_id": made.id,
            "scope_type": "tenant",
            "scope_id": "t1",
            "percent": 80,
            "reason": "spent",
            "unit": "tokens",
            "used": 90,
            "limit": 100,
            "currency": None,
            "window_start": made.window.start // 1_000_000,
            "fired_at": int(bench.clock.now),
        }
    ]
    (alert,) = bench.listed()
    assert (alert.delivery, alert.attempts, alert.delivered_at) == ("delivered", 1, alert.fired_at)


def test_a_webhook_that_is_down_is_tried_again_later_and_later(bench: Bench) -> None:
    set_budget(bench.budgets, limit=100, thresholds=(80,), webhook_url=URL)
    bench.spend(90)
    bench.receiver.down = True
    bench.delivery.work()
    bench.clock.now += delay_after(1) - 1
    assert bench.delivery.work() == 0, "not yet"
    bench.clock.now += 1
    bench.receiver.down = False
    bench.delivery.work()

    assert len(bench.receiver.taken) == 1
    (alert,) = bench.listed()
    assert (alert.delivery, alert.attempts) == ("delivered", 2)


def test_a_webhook_that_stays_down_is_given_up(bench: Bench) -> None:
    set_budget(bench.budgets, limit=100, thresholds=(80,), webhook_url=URL)
    bench.spend(90)
    bench.receiver.down = True
    for _ in range(MAX_ATTEMPTS + 3):
        bench.delivery.work()
        bench.clock.now += 3600

    assert len(bench.receiver.tried) == MAX_ATTEMPTS
    assert bench.listed()[0].delivery == "failed"


def test_without_a_webhook_the_log_is_told_once(bench: Bench) -> None:
    set_budget(bench.budgets, limit=100, thresholds=(80,))
    bench.spend(90)

    assert (bench.delivery.work(), bench.delivery.work()) == (1, 0)
    assert bench.listed()[0].delivery == "logged"


def test_what_was_not_delivered_waits_for_the_next_process(bench: Bench) -> None:
    set_budget(bench.budgets, limit=100, thresholds=(80,), webhook_url=URL)
    bench.spend(90)
    later = AlertDelivery(bench.alerts, bench.receiver, currency="eur")

    assert later.work(stopping=lambda: True) == 1
    assert bench.receiver.taken == []
    assert later.work() == 1
    assert len(bench.receiver.taken) == 1


def test_delays_double_up_to_an_hour() -> None:
    assert [delay_after(attempts) for attempts in (1, 2, 3, 9, 10, 50)] == [10, 20, 40, 2560, 3600, 3600]


@given(used=st.integers(0, 10**6), limit=st.integers(0, 10**6), percents=st.sets(st.integers(1, 1000), max_size=5))
def test_exactly_the_thresholds_that_are_reached_are_passed(used: int, limit: int, percents: set[int]) -> None:
    crossing = Crossing(
        budget_id="b", series=1, window_start=0, thresholds=tuple(percents), limit=limit, used=used, at=0
    )

    expected = {percent for percent in percents if used > 0 and used * 100 >= percent * limit}
    assert set(crossing.passed) == expected
