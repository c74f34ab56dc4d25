"""The weekly summary: the last whole week in the reporting zone, once, with retries that survive a restart."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from app.db.session import Database
from app.errors import SetupError
from app.outbound.webhooks import NotDelivered, Webhooks
from app.usage.budgets.alert_delivery import MAX_ATTEMPTS
from app.usage.overview.overview import OverviewQuery
from app.usage.overview.reports import OverviewReports
from app.usage.overview.weekly import WeeklySummary, Weeks, last_weeks, weekly_summary_to
from tests.app.usage.overview.asked import Asked, Installation
from tests.app.usage.samples import Clock

BERLIN = ZoneInfo("Europe/Berlin")
URL = "https://hooks.example/weekly"


def at(text: str) -> int:
    return int(datetime.fromisoformat(text).replace(tzinfo=BERLIN).timestamp())


MONDAY, BEFORE, NEXT = at("2025-11-17T00:00"), at("2025-11-10T00:00"), at("2025-11-24T00:00")


class Receiver:
    """Takes what is posted, except while it is out of order."""

    def __init__(self) -> None:
        self.broken = False
        self.taken: list[Mapping[str, Any]] = []
        self.asked = 0

    def post(self, url: str, body: Mapping[str, object]) -> None:
        assert url == URL
        self.asked += 1
        if self.broken:
            raise NotDelivered("The receiver answered 500.")
        self.taken.append(body)


def weekly(database: Database, receiver: Receiver, clock: Clock, *, tenant_id: str = "t1") -> WeeklySummary:
    reports = OverviewReports(database, zone=BERLIN, clock=clock)
    return WeeklySummary(database, reports, receiver.post, url=URL, tenant_id=tenant_id, clock=clock)


def test_weeks_begin_on_monday_in_the_reporting_zone_also_where_clocks_change(sqlite_database: Database) -> None:
    reports = OverviewReports(sqlite_database, zone=BERLIN)

    assert last_weeks(reports, NEXT) == Weeks(BEFORE, MONDAY, NEXT)
    assert last_weeks(reports, NEXT - 1).end == MONDAY
    changed = last_weeks(reports, at("2025-10-29T12:00"))  # the clocks went back on the Sunday before
    assert changed.end - changed.start == 7 * 86_400 + 3600


def test_a_week_is_delivered_once_beside_the_week_before(database: Database) -> None:
    clock, receiver = Clock(), Receiver()
    world = Installation(
        database,
        clock,
        [Asked(at=BEFORE + 60), Asked(at=MONDAY + 60), Asked(at=NEXT - 60, result="refused"), Asked(at=NEXT + 60)],
        zone=BERLIN,
    )
    clock.now = NEXT + 3600
    summary = weekly(database, receiver, clock, tenant_id=world.tenant)

    assert summary.work()
    assert not summary.work()
    assert not weekly(database, receiver, clock, tenant_id=world.tenant).work(), "also after a restart"

    (body,) = receiver.taken
    overview = body["overview"]
    query = OverviewQuery(tenant_id=world.tenant, start=MONDAY, end=NEXT)
    expected = OverviewReports(database, zone=BERLIN, clock=clock).overview(query)
    assert body["id"] == f"weekly_summary:{world.tenant}:{MONDAY}"
    assert (overview["total"], len(overview["data"])) == (expected["total"], 7)
    assert (overview["total"]["num_questions"], overview["total"]["num_refused"]) == (2, 1)
    assert (overview["before"]["start_time"], overview["before"]["end_time"]) == (BEFORE, MONDAY)
    assert overview["before"]["result"]["num_questions"] == 1
    assert overview["final"]


def test_it_is_tried_again_later_and_given_up_at_last(sqlite_database: Database) -> None:
    clock, receiver = Clock(NEXT + 3600), Receiver()
    receiver.broken = True
    summary = weekly(sqlite_database, receiver, clock)

    assert summary.work()
    assert not summary.work(), "not before the delay is over"
    clock.now += 11
    receiver.broken = False
    assert weekly(sqlite_database, receiver, clock).work()
    assert len(receiver.taken) == 1

    clock.now += 7 * 86_400
    receiver.broken = True
    for _ in range(MAX_ATTEMPTS + 3):
        summary.work()
        clock.now += 3601
    assert receiver.asked == 2 + MAX_ATTEMPTS


def test_the_week_is_not_sent_before_its_last_questions_have_ended(sqlite_database: Database) -> None:
    clock, receiver = Clock(NEXT + 60), Receiver()
    weekly(sqlite_database, receiver, clock).work()

    assert receiver.taken[0]["id"].endswith(str(BEFORE)), "the week before is the last whole one"


def test_an_address_inside_is_refused_at_the_start_unless_it_is_named(sqlite_database: Database) -> None:
    given: dict[str, Any] = {
        "database": sqlite_database,
        "reports": OverviewReports(sqlite_database),
        "tenant_id": "t1",
        "clock": Clock(),
    }

    assert weekly_summary_to("", webhooks=Webhooks(), **given) is None
    with pytest.raises(SetupError, match="FOOTNOTE_SUMMARY_WEBHOOK"):
        weekly_summary_to("http://127.0.0.1:9/", webhooks=Webhooks(), **given)
    assert weekly_summary_to("http://127.0.0.1:9/", webhooks=Webhooks(hosts="127.0.0.1:9"), **given) is not None
