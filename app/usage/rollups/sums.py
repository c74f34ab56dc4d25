"""Exact sums over settled calls and adjustments, read from the ledger or from the rollups that hold them."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from operator import add
from typing import Any, NamedTuple, TypeAlias
from zoneinfo import ZoneInfo

import sqlalchemy as sa

from app.db.dialect import with_implied_bounds
from app.db.tables.ledger import usage_event
from app.db.tables.prices import usage_adjustment
from app.db.tables.rollups import (
    COST_UNIT,
    usage_rollup_15m,
    usage_rollup_day,
    usage_rollup_facet,
    usage_rollup_month,
)
from app.db.tables.usage_columns import DIMENSIONS, STORED_DIMENSIONS, Measures
from app.types import UsageStatus
from app.usage.ledger.entry import ADJUSTMENT
from app.usage.rollups.facets import ABORTED
from app.usage.rollups.spans import BucketRange, ranges, spans

Only: TypeAlias = Mapping[str, Sequence[str]]
"""A filter: by dimension, the values to keep. Dimensions that are absent are not filtered."""

Key: TypeAlias = tuple[int | str, ...]
"""The number of a bucket and the values of the dimensions of the grouping."""

_UNIT: sa.ColumnElement[int] = sa.literal_column(str(COST_UNIT), sa.BigInteger)


class Totals(NamedTuple):
    """The sums over some lines. The cost is in two parts, see `cost_pico`.

    `adjustments` is 0 if there are none, and otherwise some positive number.
    """

    calls: int
    aborted: int
    recovered: int
    unpriced: int
    adjustments: int
    cost_high: int
    cost_low: int
    measures: Measures

    @classmethod
    def of(cls, numbers: Iterable[Any]) -> "Totals":
        """The totals from the columns of `SummedTable.sums`."""
        counts, first = [*map(int, numbers)], len(cls._fields) - 1
        return cls._make((*counts[:first], Measures._make(counts[first:])))

    def plus(self, other: "Totals") -> "Totals":
        """The sum of both."""
        return Totals._make((*map(add, self[:-1], other[:-1]), self.measures.plus(other.measures)))

    @property
    def cost_pico(self) -> int:
        """The cost in pico-units."""
        return self.cost_high * COST_UNIT + self.cost_low

    @property
    def priced(self) -> bool:
        """Whether any line had a price, so that there is a cost."""
        return self.calls > self.unpriced or self.adjustments > 0


NOTHING = Totals(0, 0, 0, 0, 0, 0, 0, Measures())


@dataclass(frozen=True, slots=True)
class SummedTable:
    """A table to read lines or rollups from, and its columns.

    `at` is the time, `sums` are the numbers of `Totals`, those of its measures last. Rows that do not match `where` are
    left out; `tz` is the zone of a rollup.
    """

    rows: sa.FromClause
    at: sa.ColumnElement[int]
    tenant_id: sa.ColumnElement[str]
    dimensions: Mapping[str, sa.ColumnElement[str]]
    sums: tuple[sa.ColumnElement[int], ...]
    tz: sa.ColumnElement[str] | None = None
    where: tuple[sa.ColumnElement[bool], ...] = ()


def high(pico: sa.ColumnElement[int]) -> sa.ColumnElement[int]:
    """An amount divided by `COST_UNIT`, for sums beyond 64 bits."""
    return pico // _UNIT


def low(pico: sa.ColumnElement[int]) -> sa.ColumnElement[int]:
    """The remainder of an amount after `high`."""
    return pico % _UNIT


def _calls_of(statuses: Sequence[str], status: sa.ColumnElement[str], calls: object) -> sa.ColumnElement[int]:
    return sa.func.sum(sa.case((status.in_(statuses), calls), else_=0))


def _dimensions(rows: sa.FromClause) -> dict[str, sa.ColumnElement[str]]:
    return {name: rows.c[column] for name, column in zip(DIMENSIONS, STORED_DIMENSIONS, strict=True)}


def _of_rollup(table: sa.Table) -> SummedTable:
    columns = table.c
    return SummedTable(
        rows=table,
        at=columns.bucket_start,
        tenant_id=columns.tenant_id,
        dimensions=_dimensions(table),
        sums=(
            sa.func.sum(columns.num_calls),
            _calls_of(ABORTED, columns.status, columns.num_calls),
            _calls_of([UsageStatus.RECOVERED], columns.status, columns.num_calls),
            sa.func.sum(columns.num_unpriced),
            _calls_of([ADJUSTMENT], columns.status, 1),
            sa.func.sum(columns.cost_high),
            sa.func.sum(columns.cost_low),
            *(sa.func.sum(columns[name]) for name in Measures._fields),
        ),
        tz=columns.get("tz"),
    )


def _of_facet(facet: str, dimension: str, width: str) -> SummedTable:
    columns = usage_rollup_facet.c
    counts = ("num_calls", "num_aborted", "num_recovered", "num_unpriced", "num_adjustments", "cost_high", "cost_low")
    return SummedTable(
        rows=usage_rollup_facet,
        at=columns.bucket_start,
        tenant_id=columns.tenant_id,
        dimensions={dimension: columns.value, "operation": columns.operation},
        sums=tuple(sa.func.sum(columns[name]) for name in (*counts, *Measures._fields)),
        tz=columns.tz,
        where=(columns.facet == facet, columns.width == width),
    )


_event, _adjustment, _none = usage_event.c, usage_adjustment.c, sa.literal_column("0", sa.BigInteger)

EVENTS = SummedTable(
    rows=usage_event,
    at=_event.settled_at,
    tenant_id=_event.tenant_id,
    dimensions=_dimensions(usage_event),
    sums=(
        sa.func.count(),
        _calls_of(ABORTED, _event.status, 1),
        _calls_of([UsageStatus.RECOVERED], _event.status, 1),
        sa.func.count() - sa.func.count(_event.cost_pico),
        _none,
        sa.func.coalesce(sa.func.sum(high(_event.cost_pico)), 0),
        sa.func.coalesce(sa.func.sum(low(_event.cost_pico)), 0),
        *(sa.func.sum(_event[name]) for name in Measures._fields),
    ),
)
"""Settled calls."""


def of_adjusted(column: sa.ColumnElement[str]) -> sa.ColumnElement[str]:
    """A column of an adjustment's call, for filters.

    The wrapping makes SQLite join from the few adjustments to their calls, not from all calls to their adjustments.
    """
    return sa.func.coalesce(column, "")


ADJUSTMENTS = SummedTable(
    rows=usage_adjustment.join(usage_event, _event.event_id == _adjustment.event_id),
    at=_adjustment.created_at,
    tenant_id=of_adjusted(_event.tenant_id),
    dimensions={
        **{name: of_adjusted(column) for name, column in _dimensions(usage_event).items()},
        "status": sa.literal_column(f"'{ADJUSTMENT}'", sa.Text),
    },
    sums=(
        _none,
        _none,
        _none,
        _none,
        sa.func.count(),
        sa.func.sum(high(_adjustment.cost_pico)),
        sa.func.sum(low(_adjustment.cost_pico)),
        *(sa.func.sum(_adjustment[name]) for name in Measures._fields),
    ),
)
"""Adjustments, with the dimensions of their calls except the status."""

QUARTERS = _of_rollup(usage_rollup_15m)
DAYS = _of_rollup(usage_rollup_day)
MONTHS = _of_rollup(usage_rollup_month)
FACETS = tuple(
    (_of_facet(facet, dimension, "day"), _of_facet(facet, dimension, "month"))
    for facet, dimension in (("model_id", "model"), ("user_id", "user_id"))  # fewest rows first
)
"""Rollups of days and months by one dimension and the operation."""


def totals(
    connection: sa.Connection,
    edges: Sequence[int],
    *,
    tenant_id: str,
    zone: ZoneInfo,
    groups: Sequence[str] = (),
    only: Only | None = None,
) -> dict[Key, Totals]:
    """The totals of the buckets between `edges` (Unix microseconds), by bucket and `groups`, without empty ones.

    `zone` is the reporting zone of the rollups. Single lines are read at the ends of buckets and rollups between, so
    call it inside one read transaction.
    """
    parts = spans(edges, zone)
    days, months = _days_and_months({*groups, *(only or {})})
    found: dict[Key, Totals] = {}
    for source, its_spans in (
        (EVENTS, parts.lines),
        (ADJUSTMENTS, parts.lines),
        (QUARTERS, parts.quarters),
        (days, parts.days),
        (months, parts.months),
    ):
        if its_spans:
            for key, some in read(connection, source, its_spans, tenant_id, zone, groups, only or {}).items():
                before = found.get(key)
                found[key] = some if before is None else before.plus(some)
    return found


def _days_and_months(dimensions: Collection[str]) -> tuple[SummedTable, SummedTable]:
    """The smallest rollups of days and months that have all these dimensions."""
    return next((pair for pair in FACETS if pair[0].dimensions.keys() >= {*dimensions}), (DAYS, MONTHS))


def read(
    connection: sa.Connection,
    source: SummedTable,
    its_spans: Sequence[BucketRange],
    tenant_id: str,
    zone: ZoneInfo,
    groups: Sequence[str],
    only: Only,
) -> dict[Key, Totals]:
    """The totals of some spans from one source."""
    query = within(connection, source, its_spans, source.rows, tenant_id=tenant_id, only=only)
    keys = [source.dimensions[name].label(name) for name in groups]
    query = query.add_columns(*keys, *source.sums).group_by(
        *(sa.literal_column(str(place)) for place in range(1, len(keys) + 2))
    )
    if source.tz is not None:
        query = query.where(source.tz == zone.key)
    end = 1 + len(keys)
    return {tuple(row[:end]): Totals.of(row[end:]) for row in connection.execute(query)}


def within(
    connection: sa.Connection,
    source: SummedTable,
    its_spans: Sequence[BucketRange],
    rows: sa.FromClause,
    *,
    tenant_id: str,
    only: Only,
) -> sa.Select[int]:
    """Select the bucket numbers of the `rows` in some spans; `rows` are those of the source, or a join with them."""
    span = (
        sa.values(
            sa.column("bucket", sa.BigInteger),
            sa.column("since", sa.BigInteger),
            sa.column("until", sa.BigInteger),
            name="span",
        )
        .data([tuple(each) for each in its_spans])
        .cte("span")
    )
    query = (
        sa.select(span.c.bucket)
        .select_from(span.join(rows, sa.and_(source.at >= span.c.since, source.at < span.c.until)))
        .where(
            source.tenant_id == tenant_id,
            *source.where,
            *(source.dimensions[name].in_(values) for name, values in only.items()),
        )
    )
    return with_implied_bounds(
        query,
        connection,
        lambda: sa.or_(*(sa.and_(source.at >= since, source.at < end) for since, end in ranges(its_spans))),
    )


def in_order(found: Mapping[Key, object]) -> list[Key]:
    """Keys sorted by bucket and group; sorted here, because SQLite and PostgreSQL order text differently."""
    return sorted(found, key=lambda key: (int(key[0]), *map(str, key[1:])))


def decimal(pico: int) -> str:
    """Format pico-units as units, exactly, with 12 decimals."""
    whole, rest = divmod(abs(pico), 10**12)
    return f"{'-' if pico < 0 else ''}{whole}.{rest:012d}"
