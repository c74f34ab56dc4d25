"""Compares rollups with their sources: quarter hours with the ledger, days with quarter hours, months with days.

Facets are compared with the days and months they are built from. Each local day or month is compared in one read
transaction, so that both sides are of one snapshot.
"""

from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo

import sqlalchemy as sa

from app.db.session import Database
from app.db.tables.ledger import usage_event
from app.db.tables.prices import usage_adjustment
from app.db.tables.rollups import (
    COST_UNIT,
    FACETS,
    STATUS_COUNTS,
    SUMMED,
    usage_rollup_15m,
    usage_rollup_day,
    usage_rollup_facet,
    usage_rollup_month,
    usage_rollup_zone,
)
from app.db.tables.usage_columns import STORED_DIMENSIONS
from app.types import UsageStatus
from app.usage.ledger.entry import ADJUSTMENT
from app.usage.reconciliation.checks import Check
from app.usage.rollups.facets import ABORTED
from app.usage.rollups.zones import QUARTER, day_start, month_start, next_day, next_month

QUARTERS = "rollup_15m"
DAYS = "rollup_day"
MONTHS = "rollup_month"
FACET = "rollup_facet"

_KEYS = ("tenant_id", *STORED_DIMENSIONS)
_COUNTS = SUMMED[:-2]  # the last two are the halves of the cost, in whose sums no 64 bits overflow

Group = tuple[Any, ...]
"""The beginning of a bucket, the tenant, and the dimensions."""
Sums = Mapping[Group, tuple[int, ...]]
"""The counts and the cost in pico-units by group."""


def rollup_checks(database: Database, zone: ZoneInfo, *, since: int, now: int) -> Iterator[Check]:
    """The four checks, over all local days from that of `since` (Unix microseconds) to that of `now`.

    Their numbers are input and output tokens; the last counts all tokens four times, by user and by model in days and
    in months. They need memory for the groups of a month, and time for a scan of the rows in the range.

    Raises:
        StoreUnavailable: The database cannot be read.
    """
    quarters, days, months, facets = map(_Comparison, (QUARTERS, DAYS, MONTHS, FACET))
    with database.read() as connection:
        first = _first(connection)
        kept = set(connection.execute(sa.select(usage_rollup_zone.c.tz)).scalars())
    begin = max(since, first if first is not None else now)
    start = day_start(begin, zone)
    while start <= now:
        end = next_day(start, zone)
        with database.read() as connection:
            raw, summed = _raw(connection, start, end), _sums(connection, usage_rollup_15m, start, end)
            quarters.add(raw, summed)
            kept_days = _sums(connection, usage_rollup_day, start, end, zone.key)
            days.add(_as_one(summed, start), kept_days)
            facets.add(_by_facet(kept_days), _facets(connection, "day", start, end, zone.key))
        start = end
    start = month_start(begin, zone)
    while start <= now:
        end = next_month(start, zone)
        with database.read() as connection:
            summed = _as_one(_sums(connection, usage_rollup_day, start, end, zone.key), start)
            kept_months = _sums(connection, usage_rollup_month, start, end, zone.key)
            months.add(summed, kept_months)
            facets.add(_by_facet(kept_months), _facets(connection, "month", start, end, zone.key))
        start = end
    yield quarters.check()
    for comparison in (days, months, facets):
        if kept and zone.key not in kept:
            yield comparison.check_nothing(f"Not compared: they are not of {zone.key} yet.")
        else:
            yield comparison.check()


class _Comparison:
    """A comparison of two ways to sum, over several days."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._expected = 0
        self._found = 0
        self._groups = 0
        self._wrong = 0
        self._first: Group | None = None

    def add(self, expected: Sums, found: Sums) -> None:
        """Compare one more day; a sum of zeros equals a missing one."""
        expected, found = _not_empty(expected), _not_empty(found)
        self._expected += sum(map(_tokens, expected.values()))
        self._found += sum(map(_tokens, found.values()))
        groups = expected.keys() | found.keys()
        self._groups += len(groups)
        wrong = sorted(group for group in groups if expected.get(group) != found.get(group))
        self._wrong += len(wrong)
        if wrong and self._first is None:
            self._first = wrong[0]

    def check(self) -> Check:
        """The result."""
        detail = f"{self._groups} sums compared."
        if self._first is not None:
            at = datetime.fromtimestamp(self._first[0] / 1_000_000, UTC).isoformat()
            detail = f"{self._wrong} of {self._groups} sums differ, the first of them at {at}; rebuild from there."
        ok = self._wrong == 0
        return Check(name=self._name, ok=ok, expected=self._expected, found=self._found, detail=detail)

    def check_nothing(self, why: str) -> Check:
        """The result if the two cannot be compared."""
        return Check(name=self._name, ok=True, expected=None, found=None, detail=why)


def _not_empty(sums: Sums) -> Sums:
    return {group: measures for group, measures in sums.items() if any(measures)}


def _tokens(measures: tuple[int, ...]) -> int:
    return measures[_COUNTS.index("input_tokens")] + measures[_COUNTS.index("output_tokens")]


def _first(connection: sa.Connection) -> int | None:
    """The time of the oldest row, adjustment or rollup."""
    moments = (
        connection.execute(sa.select(sa.func.min(column))).scalar()
        for column in (
            usage_event.c.settled_at,
            usage_adjustment.c.created_at,
            usage_rollup_15m.c.bucket_start,
        )
    )
    return min((moment for moment in moments if moment is not None), default=None)


def _raw(connection: sa.Connection, start: int, end: int) -> Sums:
    """The sums over settled rows and adjustments of `[start, end)`, by quarter hour."""
    event, adjustment = usage_event.c, usage_adjustment.c
    calls = {"num_calls": sa.func.count(), "num_unpriced": sa.func.count() - sa.func.count(event.cost_pico)}
    none = {name: sa.literal(0) for name in calls}
    rows = _grouped(event.settled_at, [event[name] for name in _KEYS], event, calls)
    rows = rows.where(event.settled_at >= start, event.settled_at < end)
    keys = [sa.literal(ADJUSTMENT).label("status") if name == "status" else event[name] for name in _KEYS]
    adjustments = _grouped(adjustment.created_at, keys, adjustment, none).select_from(
        usage_adjustment.join(usage_event, event.event_id == adjustment.event_id)
    )
    adjustments = adjustments.where(adjustment.created_at >= start, adjustment.created_at < end)
    return _summed(row for query in (rows, adjustments) for row in connection.execute(query))


def _grouped(
    at: sa.ColumnElement[Any], keys: list[Any], columns: Any, counts: Mapping[str, sa.ColumnElement[int]]
) -> sa.Select[Any]:
    """Sums by quarter hour and `keys`: the measures, with the cost in two halves."""
    quarter = (at - at % sa.literal_column(str(QUARTER), sa.BigInteger)).label("quarter")
    cost, half = columns["cost_pico"], sa.literal_column(str(COST_UNIT), sa.BigInteger)
    measures = [counts[name] if name in counts else sa.func.sum(columns[name]) for name in _COUNTS]
    halves = [sa.func.sum(cost // half), sa.func.sum(cost % half)]
    grouping = (key for key in keys if isinstance(key, sa.Column))
    return sa.select(quarter, *keys, *measures, *halves).group_by(quarter, *grouping)


def _sums(connection: sa.Connection, table: sa.Table, start: int, end: int, zone: str | None = None) -> Sums:
    """The rollups of `[start, end)`."""
    columns = [table.c.bucket_start, *(table.c[name] for name in (*_KEYS, *SUMMED))]
    query = sa.select(*columns).where(table.c.bucket_start >= start, table.c.bucket_start < end)
    if zone is not None:
        query = query.where(table.c.tz == zone)
    return _summed(connection.execute(query))


def _facets(connection: sa.Connection, width: str, start: int, end: int, zone: str) -> Sums:
    """The facets of `[start, end)`."""
    columns = usage_rollup_facet.c
    group = (columns.bucket_start, columns.tenant_id, columns.facet, columns.operation, columns.value)
    counts = (columns[name] for name in (*SUMMED[:-2], *STATUS_COUNTS, *SUMMED[-2:]))
    query = sa.select(*group, *counts).where(
        columns.tz == zone, columns.width == width, columns.bucket_start >= start, columns.bucket_start < end
    )
    return _summed(connection.execute(query), split=len(group))


def _by_facet(wide: Sums) -> Sums:
    """Facets summed from rollups by all dimensions; `STATUS_COUNTS` come before the cost."""
    groups: dict[Group, tuple[int, ...]] = {}
    for (start, tenant_id, *dimensions), (*counts, cost) in wide.items():
        of = dict(zip(STORED_DIMENSIONS, dimensions, strict=True))
        calls, status = counts[_COUNTS.index("num_calls")], of["status"]
        aborted, recovered = calls * (status in ABORTED), calls * (status == UsageStatus.RECOVERED)
        for facet in FACETS:
            group = (start, tenant_id, facet, of["operation"], of[facet])
            *before, adjusted, spent = groups.get(group, (0,) * (len(counts) + 4))
            summed = map(sum, zip(before, (*counts, aborted, recovered), strict=True))
            groups[group] = (*summed, max(adjusted, status == ADJUSTMENT), spent + cost)
    return groups


def _summed(rows: Iterable[sa.Row[Any]], *, split: int = 1 + len(_KEYS)) -> Sums:
    """Sum rows of `split` columns for the group, then counts, then the cost in two halves."""
    groups: dict[Group, tuple[int, ...]] = {}
    for row in rows:
        *measures, high, low = (int(value or 0) for value in row[split:])
        groups[tuple(row[:split])] = (*measures, high * COST_UNIT + low)
    return groups


def _as_one(parts: Sums, start: int) -> Sums:
    """Sum groups of several buckets into the one that begins at `start`."""
    groups: dict[Group, tuple[int, ...]] = {}
    for group, measures in parts.items():
        whole = (start, *group[1:])
        groups[whole] = tuple(map(sum, zip(groups.get(whole, (0,) * len(measures)), measures, strict=True)))
    return groups
