"""What a request has cost so far: the sum of its calls' costs."""

from dataclasses import dataclass
from typing import Protocol

import sqlalchemy as sa

from app.db.tables.ledger import usage_event
from app.types import Components, Operation, Reservation


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


ADJUSTMENT = "adjustment"
"""The status under which adjustments are summed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A call that has ended, or an adjustment of one, whose counts are what it adds and may be negative.

    `at` (Unix microseconds) is when it counts: when the call was settled, the adjustment made. `calls` is 1, or 0 for
    an adjustment. `cost_pico` None is unpriced. `project_id` is the collection asked, `""` for none or several.
    """

    event_id: str
    tenant_id: str
    project_id: str
    user_id: str
    key_id: str
    model: str
    operation: Operation
    status: str
    at: int
    calls: int
    components: Components
    input_tokens: int
    cached_tokens: int
    output_tokens: int
    delivered_tokens: int
    cost_pico: int | None


class Book(Protocol):
    """Kept in step with the ledger, in the transactions that write it: budgets, sums."""

    def reserve_in(
        self, connection: sa.Connection, reservation: Reservation, *, at: int, most_pico: int | None
    ) -> None:
        """A call is about to be written down, `at` Unix microseconds; it costs `most_pico` at most (None: unpriced).

        Raises:
            BudgetExceeded: It must not be made. Nothing was written.
        """
        ...

    def settle_in(self, connection: sa.Connection, entry: Entry) -> None:
        """A call has ended, or an adjustment was made; called once for each."""
        ...
