"""What a request has cost so far: the sum of its calls' costs."""

from dataclasses import dataclass

import sqlalchemy as sa

from app.db.tables.ledger import usage_event


@dataclass(frozen=True, slots=True, kw_only=True)
class Bill:
    """`cost_pico` sums what is priced, None where nothing is; `unpriced` calls are not in it."""

    cost_pico: int | None
    unpriced: int
    currency: str


_COSTS = sa.select(usage_event.c.cost_pico).where(usage_event.c.request_id == sa.bindparam("its_request"))


def bill_of(connection: sa.Connection, request_id: str, *, currency: str) -> Bill:
    """The bill of a request; without calls it is of nothing."""
    costs = connection.execute(_COSTS, {"its_request": request_id}).scalars().all()
    priced = [cost for cost in costs if cost is not None]
    return Bill(cost_pico=sum(priced) if priced else None, unpriced=len(costs) - len(priced), currency=currency)
