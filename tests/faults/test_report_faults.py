"""F5 and F6: calendars and clocks, and what was deleted, leave every total as it was."""

from datetime import UTC, datetime
from itertools import pairwise
from typing import Any
from zoneinfo import ZoneInfo

import pytest
import sqlalchemy as sa

from app.db.session import Database
from app.db.tables.ledger import usage_event
from app.types import DocumentShare, Settlement, UsageStatus
from app.usage.ledger.ledger import Ledger
from app.usage.reports.documents_report import DocumentsQuery
from app.usage.reports.reports import ReportQuery, UsageReports
from app.usage.rollups.rollups import Rollups
from tests.app.usage.reports.lines import Books, Line, results, total
from tests.app.usage.reports.test_documents_report import add_documents
from tests.app.usage.samples import Clock, reservation
from tests.databases import database, migrated_file, postgres_database, sqlite_database

__all__ = ["database", "migrated_file", "postgres_database", "sqlite_database"]


def seconds(text: str) -> int:
    return int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp())


@pytest.mark.parametrize(
    ("tz", "start", "end", "hours"),
    [
        ("Europe/Berlin", "2025-03-28T23:00", "2025-03-31T22:00", [24, 23, 24]),
        ("Europe/Berlin", "2025-10-24T22:00", "2025-10-27T23:00", [24, 25, 24]),
        ("America/New_York", "2025-11-01T04:00", "2025-11-04T05:00", [24, 25, 24]),
        ("Australia/Lord_Howe", "2025-04-04T13:00", "2025-04-07T13:30", [24, 24.5, 24]),
        ("Asia/Kolkata", "2025-12-30T18:30", "2026-01-01T18:30", [24, 24]),  # the year's end at +05:30
        ("Asia/Kathmandu", "2024-02-27T18:15", "2024-03-01T18:15", [24, 24, 24]),  # a leap day at +05:45
        ("America/Sao_Paulo", "2017-10-14T03:00", "2017-10-16T02:00", [24, 23]),  # midnight itself is skipped
        ("Pacific/Apia", "2011-12-29T10:00", "2011-12-31T10:00", [24, 24]),  # 30 December never was
    ],
)
def test_f5_days_are_as_long_as_their_clocks_say_and_add_up(
    database: Database, tz: str, start: str, end: str, hours: list[float]
) -> None:
    first, last = seconds(start), seconds(end)
    every = range(first * 10**6, last * 10**6, 1_800 * 10**6)
    books = Books(database, [Line(at + beside) for at in every for beside in (0, -1)], zone=tz)

    days = books.buckets(start=first, end=last, bucket_width="1d", limit=31)

    assert [(day["end_time"] - day["start_time"]) / 3600 for day in days] == hours
    assert all(before["end_time"] == after["start_time"] for before, after in pairwise(days))
    # a line on each half hour, and one a microsecond before it, which is the day before's at midnight
    assert [total(day["results"])["num_model_requests"] for day in days] == [
        4 * length - 1 + (place < len(days) - 1) for place, length in enumerate(hours)
    ]
    for middle in (first + 7 * 3600 + 1, days[0]["end_time"], last - 1):
        halves = [results(books.buckets(start=a, end=b, limit=31)) for a, b in ((first, middle), (middle, last))]
        assert total(halves[0] + halves[1]) == total(results(days))


def test_f5_a_clock_that_steps_back_does_not_take_the_ledger_with_it(database: Database) -> None:
    """Settlements of one boot are in order, so that a closed bucket stays closed."""
    clock = Clock(seconds("2025-12-01T00:00") + 5.0)
    ledger = Ledger(database, "b", clock, observers=[Rollups(ZoneInfo("UTC"))])
    reports = UsageReports(database, clock=Clock(seconds("2025-12-02T00:00")))
    closed = ReportQuery(tenant_id="t1", start=seconds("2025-11-01T00:00"), end=seconds("2025-12-01T00:00"))
    order = []
    for number, now in enumerate((5.0, 6.0, -3600.0, -7200.0, 6.5)):
        clock.now = seconds("2025-12-01T00:00") + now
        event_id = f"req_{number}:1"
        ledger.reserve(reservation(event_id))
        ledger.settle(event_id, Settlement(status=UsageStatus.COMPLETED))
        order.append(event_id)

    with database.read() as connection:
        settled = dict(connection.execute(sa.select(usage_event.c.event_id, usage_event.c.settled_at)).all())
    times = [settled[event_id] for event_id in order]
    assert times == sorted(times)
    page: dict[str, Any] = reports.completions(closed)
    assert results(page["data"]) == []


def test_f6_what_was_deleted_stays_in_every_total(database: Database) -> None:
    clock = Clock(1_763_600_000)
    ledger = Ledger(database, "b", clock, observers=[Rollups(ZoneInfo("UTC"))])
    add_documents(database, "t1", ["d1", "d2"])
    for number in range(4):
        shares = [DocumentShare("d1", 1, 3), DocumentShare("d2", 1, 1)]
        ledger.reserve(reservation(f"req_{number}:1", user_id=f"u{number % 2}", documents=shares))
        ledger.settle(f"req_{number}:1", Settlement(status=UsageStatus.COMPLETED))
    reports = UsageReports(database, clock=Clock(1_763_700_000))
    query = ReportQuery(tenant_id="t1", start=1_763_596_800, end=1_763_683_200, group_by=["user_id", "api_key_id"])
    asked = DocumentsQuery(tenant_id="t1", start=1_763_596_800, end=1_763_683_200, order_by="context_tokens")
    before: dict[str, Any] = reports.completions(query)
    with_both: dict[str, Any] = reports.documents(asked)

    with database.write() as connection:  # as deleting a document, a key and a user does: the ledger is not touched
        for table in ("document_version", "document", "collection", "api_key", "app_user", "tenant"):
            connection.execute(sa.text(f"DELETE FROM {table}"))

    assert reports.completions(query) == before
    assert [one["user_id"] for one in results(before["data"])] == ["u0", "u1"]
    without: dict[str, Any] = reports.documents(asked)
    numbers = ("document_id", "num_retrieved", "context_tokens", "cost")
    assert [[one[name] for name in numbers] for one in without["data"]] == [
        [one[name] for name in numbers] for one in with_both["data"]
    ]
    assert [one["name"] for one in with_both["data"]] == ["d1.txt", "d2.txt"]
    assert [one["name"] for one in without["data"]] == ["(deleted)", "(deleted)"]
