"""Rollups equal the sums of their ledger rows, and can be rebuilt at any time."""

import threading
from collections.abc import Iterable
from typing import Any
from zoneinfo import ZoneInfo

import pytest
import sqlalchemy as sa
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from app.db.session import Database
from app.db.tables.rollups import (
    COST_UNIT,
    SUMMED,
    usage_rollup_15m,
    usage_rollup_day,
    usage_rollup_facet,
    usage_rollup_month,
    usage_rollup_zone,
)
from app.db.tables.usage_columns import STORED_DIMENSIONS
from app.errors import InvalidRequest
from app.types import Settlement, UsageStatus
from app.usage.ledger.ledger import Ledger
from app.usage.rollups.builder import RollupBuilder
from app.usage.rollups.rollups import Rollups
from app.usage.rollups.zones import day_start, month_start
from tests.app.usage.reports.lines import DAY, ZONES, Books, Line, lines
from tests.app.usage.rollups.facets import by_facet, kept_by_facet
from tests.app.usage.samples import Clock, reservation
from tests.examples import examples

MIDNIGHT = 1_763_596_800  # 2025-11-20T00:00:00Z
INPUT, OUTPUT = SUMMED.index("input_tokens"), SUMMED.index("output_tokens")
TABLES = (usage_rollup_15m, usage_rollup_day, usage_rollup_month)
EXPLORE = settings(
    deadline=None, max_examples=examples(25), suppress_health_check=[HealthCheck.function_scoped_fixture]
)
MOMENTS = st.integers((MIDNIGHT + 9 * DAY) * 10**6, (MIDNIGHT + 13 * DAY) * 10**6)  # over the end of a month
ROWS = st.lists(lines(MOMENTS), max_size=12)


def kept(database: Database, table: sa.Table, tenant_id: str) -> dict[tuple[Any, ...], tuple[int, ...]]:
    """Sums by time and dimensions, the cost as one number."""
    with database.read() as connection:
        rows = connection.execute(sa.select(table).where(table.c.tenant_id == tenant_id)).mappings().all()
    return {
        (row["bucket_start"], *(row[name] for name in STORED_DIMENSIONS)): (
            *(row[name] for name in SUMMED[:-2]),
            row["cost_high"] * COST_UNIT + row["cost_low"],
        )
        for row in rows
    }


def all_kept(books: Books) -> list[dict[tuple[Any, ...], tuple[int, ...]]]:
    return [kept(books.database, table, books.tenant()) for table in TABLES]


def add_up(found: Iterable[tuple[tuple[Any, ...], tuple[int, ...]]]) -> dict[tuple[Any, ...], tuple[int, ...]]:
    summed: dict[tuple[Any, ...], tuple[int, ...]] = {}
    for key, numbers in found:
        summed[key] = tuple(map(sum, zip(summed.get(key, (0,) * len(numbers)), numbers, strict=True)))
    return summed


def straight(books: Books) -> dict[tuple[Any, ...], tuple[int, ...]]:
    """Quarter hours from the lines themselves."""
    entries = [books.entry(line) for line in books.of()]
    return add_up(
        (
            (
                entry.at - entry.at % 900_000_000,
                entry.project_id,
                entry.user_id,
                entry.key_id,
                entry.model,
                entry.operation,
                entry.status,
            ),
            (
                entry.calls,
                entry.calls if entry.cost_pico is None else 0,
                *entry.measures,
                entry.cost_pico or 0,
            ),
        )
        for entry in entries
    )


@EXPLORE
@given(written=ROWS, zone=st.sampled_from(ZONES))
def test_sums_are_those_of_the_lines_and_building_them_again_changes_nothing(
    database: Database, written: list[Line], zone: str
) -> None:
    """Invariant 11: rollup(15m) = group(raw), day = sum of 15m, month = sum of days; a rebuild is a no-op."""
    books = Books(database, written, zone=zone)
    quarters, days, months = before = all_kept(books)
    facets = kept_by_facet(books)

    builder = RollupBuilder(database, books.zone)
    builder.rebuild(tenant_id=books.tenant(), start=MIDNIGHT + 8 * DAY, end=MIDNIGHT + 14 * DAY)

    assert quarters == straight(books)
    assert days == add_up(((day_start(at, books.zone), *key), some) for (at, *key), some in quarters.items())
    assert months == add_up(((month_start(at, books.zone), *key), some) for (at, *key), some in days.items())
    assert facets == by_facet(books, books.zone)
    assert (all_kept(books), kept_by_facet(books)) == (before, facets)


@EXPLORE
@given(written=ROWS, zone=st.sampled_from(ZONES), old=st.sampled_from(ZONES))
def test_days_of_another_zone_are_built_from_the_quarter_hours(
    database: Database, written: list[Line], zone: str, old: str
) -> None:
    with database.write() as connection:  # all tenants are built: those of the examples before are not looked at
        for table in (usage_rollup_zone, *TABLES, usage_rollup_facet):
            connection.execute(sa.delete(table))
    books = Books(database, written, zone=old)
    quarters = kept(database, usage_rollup_15m, books.tenant())

    builder = RollupBuilder(database, ZoneInfo(zone), clock=Clock())

    assert builder.ensure_zone() is True
    _, days, months = all_kept(books)
    assert days == add_up(((day_start(at, ZoneInfo(zone)), *key), some) for (at, *key), some in quarters.items())
    assert months == add_up(((month_start(at, ZoneInfo(zone)), *key), some) for (at, *key), some in days.items())
    assert kept_by_facet(books) == by_facet(books, ZoneInfo(zone))
    assert builder.ensure_zone() is False
    assert RollupBuilder(database, ZoneInfo("UTC" if zone != "UTC" else "Asia/Tokyo")).ensure_zone() is True
    with database.read() as connection:
        for table in (usage_rollup_day, usage_rollup_month, usage_rollup_facet):
            assert zone not in connection.execute(sa.select(table.c.tz)).scalars().all()


def test_wrong_sums_of_a_range_become_right_and_those_of_others_stay(database: Database) -> None:
    books = Books(database, [Line((MIDNIGHT + day * DAY) * 10**6, cost=7) for day in (0, 1, 5)])
    other = Books(database, [Line(MIDNIGHT * 10**6)])
    right, facets = all_kept(books), kept_by_facet(books)
    with database.write() as connection:
        for table in (*TABLES, usage_rollup_facet):
            connection.execute(sa.update(table).values(input_tokens=table.c.input_tokens + 1000))
        connection.execute(sa.insert(usage_rollup_15m).values(_stray(books.tenant())))

    days = RollupBuilder(database, books.zone).rebuild(
        tenant_id=books.tenant(), start=MIDNIGHT + 100, end=MIDNIGHT + DAY + 1
    )

    assert days == 2
    inputs = [sorted(numbers[INPUT] for numbers in found.values()) for found in all_kept(books)]
    assert inputs == [[1, 1, 1001], [1, 1, 1001], [1003]]
    assert [sorted(numbers[INPUT] for numbers in found.values()) for found in all_kept(other)] == [[1001]] * 3
    RollupBuilder(database, books.zone).rebuild(tenant_id=books.tenant(), start=MIDNIGHT, end=MIDNIGHT + 6 * DAY)
    assert (all_kept(books), kept_by_facet(books)) == (right, facets)


def _stray(tenant_id: str) -> dict[str, Any]:
    """A sum of nothing."""
    return {"tenant_id": tenant_id, "bucket_start": MIDNIGHT * 10**6, **dict.fromkeys(STORED_DIMENSIONS, "x")}


@pytest.mark.parametrize(
    ("start", "end", "param"),
    [(-1, 5, "start_time"), (5, 5, "end_time"), (0, 33 * DAY, "end_time"), (0, 10**15, "end_time")],
)
def test_a_range_that_cannot_be_rebuilt_is_refused(sqlite_database: Database, start: int, end: int, param: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        RollupBuilder(sqlite_database, ZoneInfo("UTC")).rebuild(tenant_id="t1", start=start, end=end)
    assert caught.value.param == param


def test_calls_that_settle_during_a_rebuild_are_counted_once(database: Database) -> None:
    """Invariant 11 under concurrency: four threads settle while a fifth rebuilds their day again and again."""
    zone, clock = ZoneInfo("Asia/Kathmandu"), Clock(MIDNIGHT + 1000)
    ledger = Ledger(database, "b", clock, observers=[Rollups(zone)])
    builder, done, failed = RollupBuilder(database, zone), threading.Event(), []

    def settle(worker: int) -> None:
        try:
            for number in range(15):
                event_id = f"req_{worker}_{number}:1"
                ledger.reserve(reservation(event_id, user_id=f"u{number}"))
                ledger.settle(event_id, Settlement(status=UsageStatus.COMPLETED, output_tokens=3, delivered_tokens=3))
        except Exception as error:  # noqa: BLE001 - shown by the assertion below
            failed.append(error)

    def rebuild() -> None:
        try:
            while not done.is_set():
                builder.rebuild(tenant_id="t1", start=MIDNIGHT, end=MIDNIGHT + 3600)
        except Exception as error:  # noqa: BLE001 - as above
            failed.append(error)

    rebuilder = threading.Thread(target=rebuild)
    workers = [threading.Thread(target=settle, args=(worker,)) for worker in range(4)]
    for thread in (rebuilder, *workers):
        thread.start()
    for thread in workers:
        thread.join()
    done.set()
    rebuilder.join()

    assert failed == []
    for table in TABLES:
        found = kept(database, table, "t1").values()
        assert (sum(numbers[0] for numbers in found), sum(numbers[OUTPUT] for numbers in found)) == (60, 180)
