"""The cost of a call: token counts times the prices in force when it was accepted, in integers.

A price of P for a million tokens is P * 10^6 pico-units for one token, so costs are exact; only displays round them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import sqlalchemy as sa

from app.db.tables.prices import price
from app.types import Operation

EMBEDDING = "embedding"
INPUT = "input"
CACHED_INPUT = "cached_input"
OUTPUT = "output"
METERS = (INPUT, CACHED_INPUT, OUTPUT, EMBEDDING)

_EMBEDS = (Operation.EMBED_QUERY, Operation.EMBED_DOC)


# built once: every call runs the first when it is reserved and the second when it is settled
_IN_FORCE = (
    sa.select(price.c.price_id, price.c.meter, price.c.pico_per_token)
    .where(
        price.c.model_id == sa.bindparam("its_model"),
        price.c.effective_from <= sa.bindparam("now"),
        sa.or_(price.c.effective_to.is_(None), price.c.effective_to > sa.bindparam("now")),
    )
    .order_by(price.c.price_id)
)
_NOTED = (
    sa.select(price.c.price_id, price.c.meter, price.c.pico_per_token)
    .where(price.c.price_id.in_(sa.bindparam("its_prices", expanding=True)))
    .order_by(price.c.price_id)
)


@dataclass(frozen=True, slots=True)
class Rate:
    """A price for one token, in pico-units."""

    price_id: str
    meter: str
    pico_per_token: int


def rates_at(connection: sa.Connection, model: str, *, at: int) -> tuple[Rate, ...]:
    """The rates of a model in force `at` Unix microseconds, at most one for each meter, ordered by id."""
    return tuple(Rate(*row) for row in connection.execute(_IN_FORCE, {"its_model": model, "now": at}))


def rates_of(connection: sa.Connection, price_ids: Sequence[str]) -> tuple[Rate, ...]:
    """The rates of the prices that a ledger row names."""
    if not price_ids:
        return ()
    return tuple(Rate(*row) for row in connection.execute(_NOTED, {"its_prices": list(price_ids)}))


def cost_pico(
    rates: Sequence[Rate], operation: Operation, *, input_tokens: int, cached_tokens: int, output_tokens: int
) -> int | None:
    """The cost of the counts in pico-units; None if the model, or a meter with tokens, has no price.

    Cached input without a price of its own costs as much as other input.
    """
    if not rates:
        return None
    by_meter: Mapping[str, int] = {rate.meter: rate.pico_per_token for rate in rates}
    if operation in _EMBEDS:
        counts = {EMBEDDING: input_tokens}
    elif CACHED_INPUT in by_meter:
        counts = {INPUT: input_tokens - cached_tokens, CACHED_INPUT: cached_tokens, OUTPUT: output_tokens}
    else:
        counts = {INPUT: input_tokens, OUTPUT: output_tokens}
    total = 0
    for meter, count in counts.items():
        if not count:
            continue
        if meter not in by_meter:
            return None
        total += count * by_meter[meter]
    return total
