"""Sums by one dimension alone as they are kept, and straight from the lines."""

from typing import Any, TypeAlias
from zoneinfo import ZoneInfo

import sqlalchemy as sa

from app.db.tables.rollups import COST_UNIT, STATUS_COUNTS, SUMMED, usage_rollup_facet
from app.usage.rollups.zones import day_start, month_start
from tests.app.usage.reports.lines import PARTS, Books

Facets: TypeAlias = dict[tuple[Any, ...], tuple[int, ...]]
"""By dimension, width, start, operation and value: three counts by status, the other counts, the cost as one number."""


def kept_by_facet(books: Books) -> Facets:
    columns = usage_rollup_facet.c
    with books.database.read() as connection:
        query = sa.select(usage_rollup_facet).where(columns.tenant_id == books.tenant())
        rows = connection.execute(query).mappings().all()
    keys = ("facet", "width", "bucket_start", "operation", "value")
    return {
        tuple(row[name] for name in keys): (
            *(row[name] for name in (*STATUS_COUNTS, *SUMMED[:-2])),
            row["cost_high"] * COST_UNIT + row["cost_low"],
        )
        for row in rows
    }


def by_facet(books: Books, zone: ZoneInfo) -> Facets:
    """Of the tenant's lines in the days and months of a zone."""
    found: Facets = {}
    for line in books.of():
        calls = 0 if line.adjusts else 1
        counts = {
            "num_aborted": calls if line.status in ("client_abort", "server_abort") else 0,
            "num_recovered": calls if line.status == "recovered" else 0,
            "num_adjustments": int(line.adjusts),
            "num_calls": calls,
            "num_unpriced": calls if line.cost is None else 0,
            "input_tokens": sum(line.parts),
            "input_cached_tokens": line.cached,
            "output_tokens": line.output,
            "output_delivered_tokens": line.delivered,
            **{f"tok_{name}": count for name, count in zip(PARTS, line.parts, strict=True)},
            "cost": line.cost or 0,
        }
        for facet, value in (("user_id", line.user_id), ("model_id", line.model)):
            for width, start in (("day", day_start(line.at, zone)), ("month", month_start(line.at, zone))):
                key = (facet, width, start, line.operation, value)
                before = found.get(key, (0,) * len(counts))
                summed = [*map(sum, zip(before, counts.values(), strict=True))]
                summed[2] = min(summed[2], 1)  # whether there are adjustments, not how many
                found[key] = tuple(summed)
    return found
