"""Facets: rollups of days and months by one dimension (user or model), much smaller than those by all dimensions.

They are updated with each entry, or rebuilt from the rollups by all dimensions. `num_adjustments` is 1 if there are
adjustments, not their number, which those rollups do not hold.
"""

from collections.abc import Iterator
from functools import cache
from typing import Any

import sqlalchemy as sa

from app.db.dialect import PerDialect, upsert
from app.db.tables.rollups import (
    FACETS,
    STATUS_COUNTS,
    SUMMED,
    usage_rollup_day,
    usage_rollup_facet,
    usage_rollup_month,
)
from app.types import UsageStatus
from app.usage.ledger.entry import ADJUSTMENT

WIDE = {"day": usage_rollup_day, "month": usage_rollup_month}
"""By width, the rollups by all dimensions that facets are built from."""

ABORTED = (UsageStatus.CLIENT_ABORT, UsageStatus.SERVER_ABORT)

_NUMBERS = (*STATUS_COUNTS, *SUMMED)
_NAMES = ("tz", "tenant_id", "facet", "width", "bucket_start", "operation", "value", *_NUMBERS)


def add_to_facets(connection: sa.Connection, line: dict[str, Any], *, tz: str, day: int, month: int) -> None:
    """Add an entry to the facets of its day and month in `tz`, given as their beginnings in Unix microseconds.

    `line` has the columns of the rollups by all dimensions. One statement writes the rows, always in one order.
    """
    calls, status = line["num_calls"], line["status"]
    counted = {
        "num_aborted": calls if status in ABORTED else 0,
        "num_recovered": calls if status == UsageStatus.RECOVERED else 0,
        "num_adjustments": int(status == ADJUSTMENT),
    }
    connection.execute(_upsert().on(connection), {**line, **counted, "tz": tz, "day": day, "month": month})


def build_facets(connection: sa.Connection, width: str, *, tz: str, tenant_id: str, start: int, end: int) -> None:
    """Rebuild the facets of a tenant's days, or months, that begin in `[start, end)` (Unix microseconds)."""
    table, wide = usage_rollup_facet.c, WIDE[width].c
    for facet in FACETS:
        connection.execute(
            sa.delete(usage_rollup_facet).where(
                table.tz == tz,
                table.tenant_id == tenant_id,
                table.facet == facet,
                table.width == width,
                table.bucket_start >= start,
                table.bucket_start < end,
            )
        )
        keys = (
            *(sa.literal(name, sa.Text) for name in (tz, tenant_id, facet, width)),
            *(dimensions := (wide.bucket_start, wide.operation, wide[facet])),
        )
        mine = wide.tz == tz, wide.tenant_id == tenant_id, wide.bucket_start >= start, wide.bucket_start < end
        sums = sa.select(*keys, *_numbers(WIDE[width])).where(*mine).group_by(*dimensions)
        connection.execute(sa.insert(usage_rollup_facet).from_select(_NAMES, sums))


def _numbers(rows: sa.Table) -> Iterator[sa.ColumnElement[int]]:
    """`_NUMBERS` from the rollups by all dimensions."""
    for statuses in (ABORTED, (UsageStatus.RECOVERED,)):
        yield sa.func.sum(sa.case((rows.c.status.in_(statuses), rows.c.num_calls), else_=0))
    yield sa.func.max(sa.case((rows.c.status == ADJUSTMENT, 1), else_=0))
    for name in SUMMED:
        yield sa.func.sum(rows.c[name])


@cache  # as `app.usage.rollups.rollups` does
def _upsert() -> PerDialect[sa.Insert]:
    """Add an entry to its four rows; each of its numbers is bound once."""

    def given(name: str) -> sa.BindParameter[Any]:
        return sa.bindparam(name, type_=sa.Text() if name in ("tz", "tenant_id", "operation") else sa.BigInteger())

    # The model's rows come first: most entries share them, so a transaction that waits for one holds no user's row.
    slots = sa.union_all(
        *(
            sa.select(
                sa.literal_column(f"'{facet}'", sa.Text).label("facet"),
                sa.literal_column(f"'{width}'", sa.Text).label("width"),
                sa.bindparam(width, type_=sa.BigInteger()).label("bucket_start"),
                sa.bindparam(facet, type_=sa.Text()).label("value"),
            )
            for facet in ("model_id", "user_id")
            for width in WIDE
        )
    ).subquery("slot")
    # SQLite takes the ON of an upsert for that of a join where the SELECT ends with its FROM
    line = sa.select(*(slots.c[name] if name in slots.c else given(name) for name in _NAMES)).where(sa.true())
    table = usage_rollup_facet

    def summed(new: Any) -> dict[str, Any]:
        sums = {name: table.c[name] + new[name] for name in _NUMBERS}
        sums["num_adjustments"] = sa.case(
            (new.num_adjustments > table.c.num_adjustments, new.num_adjustments), else_=table.c.num_adjustments
        )
        return sums

    return upsert(table, change=summed, source=(_NAMES, line))
