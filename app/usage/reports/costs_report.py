"""The cost report: costs by dimension, by line item of the bill, or by document."""

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple
from zoneinfo import ZoneInfo

import sqlalchemy as sa

from app.db.tables.ledger import usage_event
from app.db.tables.rollups import COST_UNIT
from app.db.tables.usage_columns import DIMENSIONS
from app.types import Operation
from app.usage.ledger.entry import ADJUSTMENT
from app.usage.ledger.pricing import CACHED_INPUT, EMBEDDING, INPUT, OUTPUT, rates_of
from app.usage.reports.document_shares import document_lines
from app.usage.rollups.spans import BucketRange
from app.usage.rollups.sums import (
    ADJUSTMENTS,
    EVENTS,
    Key,
    Only,
    decimal,
    high,
    in_order,
    low,
    read,
    totals,
    within,
)

COST_DIMENSIONS = (*DIMENSIONS, "line_item", "document_id")
"""The dimensions that costs can be grouped by."""

_EMBEDS = (Operation.EMBED_QUERY, Operation.EMBED_DOC)


class Cost(NamedTuple):
    """A cost in pico-units, None if no call had a price; `tokens` of a line item; `unpriced` calls of a group."""

    pico: int | None
    tokens: int | None = None
    unpriced: int | None = None

    def plus(self, other: "Cost") -> "Cost":
        """The sum of both."""
        return Cost(*(b if a is None else a if b is None else a + b for a, b in zip(self, other, strict=True)))


def cost_results(
    connection: sa.Connection,
    edges: Sequence[int],
    *,
    tenant_id: str,
    zone: ZoneInfo,
    groups: Sequence[str],
    only: Only,
    currency: str,
) -> dict[int, list[dict[str, object]]]:
    """The results by number of the bucket between `edges` (Unix microseconds).

    `groups` must be in the order of `COST_DIMENSIONS`. Call it inside one read transaction.
    """
    kept = [name for name in groups if name in DIMENSIONS]
    costs: Mapping[Key, Cost]
    if "line_item" in groups:
        costs = _line_items(connection, edges, tenant_id, zone, kept, only)
    else:
        sums = totals(connection, edges, tenant_id=tenant_id, zone=zone, groups=kept, only=only)
        costs = {key: Cost(some.cost_pico if some.priced else None, None, some.unpriced) for key, some in sums.items()}
        if "document_id" in groups:
            costs = _by_document(connection, edges, tenant_id, len(kept), kept, only, costs)
    found: dict[int, list[dict[str, object]]] = {}
    for key in in_order(costs):
        cost, dimensions = costs[key], dict(zip(groups, key[1:], strict=True))
        found.setdefault(int(key[0]), []).append(
            {
                "object": "organization.costs.result",
                "amount": {"value": None if cost.pico is None else decimal(cost.pico), "currency": currency},
                "quantity": cost.tokens,
                "quantity_unit": None if cost.tokens is None else "tokens",
                "num_unpriced": cost.unpriced,
                **{name: dimensions.get(name) for name in COST_DIMENSIONS},
            }
        )
    return found


def _whole(edges: Sequence[int]) -> list[BucketRange]:
    return [BucketRange(bucket, *pair) for bucket, pair in enumerate(pairwise(edges))]


def _line_items(
    connection: sa.Connection,
    edges: Sequence[int],
    tenant_id: str,
    zone: ZoneInfo,
    groups: Sequence[str],
    only: Only,
) -> dict[Key, Cost]:
    columns = usage_event.c
    keys = [EVENTS.dimensions[name].label(name) for name in groups]
    what = [columns.model_id, columns.operation, columns.price_ids, columns.cost_pico.is_(None).label("unpriced")]
    query = (
        within(connection, EVENTS, _whole(edges), EVENTS.rows, tenant_id=tenant_id, only=only)
        .add_columns(
            *keys,
            *what,
            sa.func.sum(columns.input_tokens),
            sa.func.sum(columns.input_cached_tokens),
            sa.func.sum(columns.output_tokens),
            sa.func.coalesce(sa.func.sum(high(columns.cost_pico)), 0),
            sa.func.coalesce(sa.func.sum(low(columns.cost_pico)), 0),
        )
        .group_by(*(sa.literal_column(str(place)) for place in range(1, len(keys) + len(what) + 2)))
    )
    found: dict[Key, Cost] = {}

    def note(key: Key, cost: Cost) -> None:
        found[key] = found[key].plus(cost) if key in found else cost

    rates: dict[str, dict[str, int]] = {}
    for row in connection.execute(query):
        key = tuple(row[: 1 + len(keys)])
        model, operation, price_ids, unpriced, input_tokens, cached, output, cost_high, cost_low = row[1 + len(keys) :]
        if price_ids not in rates:
            rates[price_ids] = {rate.meter: rate.pico_per_token for rate in rates_of(connection, json.loads(price_ids))}
        counts = {INPUT: int(input_tokens) - int(cached), CACHED_INPUT: int(cached), OUTPUT: int(output)}
        if operation in _EMBEDS:
            counts = {EMBEDDING: int(input_tokens)}
        if unpriced:
            for meter, count in counts.items():
                if count:
                    note((*key, _line_item(model, meter)), Cost(None, count))
            continue
        left = int(cost_high) * COST_UNIT + int(cost_low)
        for meter, pico in _paid(counts, rates[price_ids]):
            left -= pico
            note((*key, _line_item(model, meter)), Cost(pico, counts[meter]))
        if left:  # the recorded cost differs from that of the recorded prices
            note((*key, f"{model}, other"), Cost(left))
    for key, some in read(connection, ADJUSTMENTS, _whole(edges), tenant_id, zone, groups, only).items():
        note((*key, ADJUSTMENT), Cost(some.cost_pico))
    return found


def _paid(counts: Mapping[str, int], rates: Mapping[str, int]) -> Iterator[tuple[str, int]]:
    """The cost of each meter with tokens and a price, as in `app.usage.ledger.pricing`."""
    for meter, count in counts.items():
        rate = rates.get(meter, rates.get(INPUT) if meter == CACHED_INPUT else None)
        if count and rate is not None:
            yield meter, count * rate


def _line_item(model: str, meter: str) -> str:
    return f"{model}, {meter.replace('_', ' ')}"


def _by_document(
    connection: sa.Connection,
    edges: Sequence[int],
    tenant_id: str,
    depth: int,
    groups: Sequence[str],
    only: Only,
    costs: Mapping[Key, Cost],
) -> dict[Key, Cost]:
    """The costs of groups divided among documents; the rest belongs to no document, `""`."""
    shares: Counter[Key] = Counter()
    for lines in document_lines():
        keys = [lines.source.dimensions[name].label(name) for name in groups]
        query = (
            within(connection, lines.source, _whole(edges), lines.rows, tenant_id=tenant_id, only=only)
            .where(lines.condition)
            .add_columns(
                *keys, lines.document_id, sa.func.sum(high(lines.cost_pico)), sa.func.sum(low(lines.cost_pico))
            )
            .group_by(*(sa.literal_column(str(place)) for place in range(1, depth + 3)))
        )
        for row in connection.execute(query):
            shares[tuple(row[: depth + 2])] += int(row[-2]) * COST_UNIT + int(row[-1])
    found: dict[Key, Cost] = {key: Cost(pico) for key, pico in shares.items() if pico}
    spent: Counter[Key] = Counter()
    for key, pico in shares.items():
        spent[key[:-1]] += pico
    for key, cost in costs.items():
        if cost.pico is None:
            found[*key, ""] = cost
        elif cost.pico != spent[key] or not cost.pico:
            found[*key, ""] = Cost(cost.pico - spent[key])
    return found
