"""Rollups by one dimension equal the full rollups, and concurrent writers do not deadlock."""

import random
import threading
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from app.db.session import Database
from app.usage.reports.reports import ReportQuery, UsageReports
from app.usage.rollups.rollups import Rollups
from app.usage.rollups.spans import BucketRange, spans
from app.usage.rollups.sums import DAYS, FACETS, MONTHS, Key, SummedTable, Totals, read
from tests.app.usage.reports.lines import DAY, ZONES, Books, Line, lines
from tests.app.usage.rollups.facets import by_facet, kept_by_facet
from tests.examples import examples
from tests.statements import executions_of

MIDNIGHT = 1_763_596_800  # 2025-11-20T00:00:00Z
START, END = MIDNIGHT - 70 * DAY, MIDNIGHT + 70 * DAY
EXPLORE = settings(
    deadline=None, max_examples=examples(25), suppress_health_check=[HealthCheck.function_scoped_fixture]
)
MOMENTS = st.integers(START * 10**6, END * 10**6)
VALUES = {"model": ["m1", "m2"], "user_id": ["u1", "U1"], "operation": ["chat", "embed_doc"]}


@EXPLORE
@given(
    written=st.lists(lines(MOMENTS), max_size=12),
    zone=st.sampled_from(ZONES),
    pair=st.sampled_from(FACETS),
    data=st.data(),
)
def test_single_dimension_rollups_equal_the_full_rollups(
    database: Database, written: list[Line], zone: str, pair: tuple[SummedTable, SummedTable], data: st.DataObject
) -> None:
    books = Books(database, written, zone=zone)
    known = sorted(pair[0].dimensions)
    groups = data.draw(st.lists(st.sampled_from(known), unique=True))
    names = data.draw(st.lists(st.sampled_from(known), unique=True))
    only = {name: data.draw(st.lists(st.sampled_from(VALUES[name]), unique=True)) for name in names}
    parts = spans([START * 10**6, MIDNIGHT * 10**6, END * 10**6], books.zone)

    for source, wide, its_spans in zip(pair, (DAYS, MONTHS), (parts.days, parts.months), strict=True):
        assert found(books, source, its_spans, groups, only) == found(books, wide, its_spans, groups, only)


def found(
    books: Books,
    source: SummedTable,
    its_spans: Sequence[BucketRange],
    groups: Sequence[str],
    only: Mapping[str, Sequence[str]],
) -> dict[Key, Totals]:
    """As `read` finds it; of adjustments, whether there are any."""
    with books.database.read() as connection:
        sums = read(connection, source, its_spans, books.tenant(), books.zone, groups, only)
    return {key: some._replace(adjustments=int(some.adjustments > 0)) for key, some in sums.items()}


def test_calls_and_corrections_that_meet_in_the_same_rows_wait_for_each_other(database: Database) -> None:
    """Four writers, calls alone and corrections three in a transaction, of two users and two models in any order."""
    books, failed = Books(database, []), []
    rollups, chance = Rollups(books.zone), random.Random(5)
    turns = [[_transaction(chance) for _ in range(20)] for _ in range(4)]

    def write(mine: list[list[Line]]) -> None:
        try:
            for transaction in mine:
                with database.write() as connection:
                    for line in transaction:
                        rollups.settle_in(connection, books.entry(line))
        except Exception as error:  # noqa: BLE001 - shown by the assertion below
            failed.append(error)

    writers = [threading.Thread(target=write, args=(mine,)) for mine in turns]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()

    assert failed == []
    books.lines = tuple(line for mine in turns for transaction in mine for line in transaction)
    assert kept_by_facet(books) == by_facet(books, books.zone)


def _transaction(chance: random.Random) -> list[Line]:
    line = Line(MIDNIGHT * 10**6, cost=3)
    if chance.random() < 0.5:
        return [_somebodys(line, chance)]
    return [_somebodys(replace(line, status="adjustment"), chance) for _ in range(3)]


def _somebodys(line: Line, chance: random.Random) -> Line:
    return replace(line, user_id=chance.choice(["u1", "u2"]), model=chance.choice(["m1", "m2"]))


@pytest.mark.parametrize(
    ("asked", "tables"),
    [
        ({}, {"usage_rollup_facet"}),
        ({"group_by": ("model",)}, {"usage_rollup_facet"}),
        ({"group_by": ("operation",), "user_ids": ("u1",)}, {"usage_rollup_facet"}),
        ({"group_by": ("user_id",), "models": ("m1",)}, {"usage_rollup_day", "usage_rollup_month"}),
        ({"group_by": ("model", "status")}, {"usage_rollup_day", "usage_rollup_month"}),
        ({"project_ids": ("c1",)}, {"usage_rollup_day", "usage_rollup_month"}),
    ],
    ids=["all", "by-model", "a-user", "two-dimensions", "by-status", "a-collection"],
)
def test_days_and_months_are_searched_by_their_primary_key(
    sqlite_database: Database, asked: dict[str, Any], tables: set[str]
) -> None:
    reports = UsageReports(sqlite_database, zone=ZoneInfo("Europe/Berlin"))
    whole = ReportQuery(tenant_id="t1", start=START, end=END, bucket_width="1mo", tz="Europe/Berlin", **asked)
    with executions_of(sqlite_database) as seen:
        reports.completions(whole)

    with sqlite_database.read() as connection:
        steps = [
            str(row[3])
            for statement, parameters in seen
            if "usage_rollup_" in statement and "usage_rollup_15m" not in statement
            for row in connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}", parameters)
            if "usage_rollup_" in row[3]
        ]
    assert {step.split()[1] for step in steps} == tables
    assert len(steps) == 2, "days and months"
    for step in steps:
        assert step.startswith("SEARCH ") and " USING PRIMARY KEY (tz=? AND tenant_id=? AND " in step
        assert "bucket_start>? AND bucket_start<?" in step
