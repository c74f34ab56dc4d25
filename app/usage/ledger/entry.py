"""The entries of the ledger, and the port for everything kept in step with them."""

from dataclasses import dataclass
from typing import Protocol

import sqlalchemy as sa

from app.db.tables.usage_columns import Measures
from app.types import Operation, Reservation

ADJUSTMENT = "adjustment"
"""The status of adjustments in entries and sums."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A settled call, or an adjustment of one; the counts of an adjustment are changes and may be negative.

    `at` (Unix microseconds) is when the call was settled or the adjustment made. `calls` is 1, or 0 for an adjustment.
    `cost_pico` None is unpriced. `project_id` is the collection asked, `""` for none or several.
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
    measures: Measures
    cost_pico: int | None


class LedgerObserver(Protocol):
    """Port: takes part in each transaction that writes the ledger, such as budgets, rate limits and rollups.

    Example:
        >>> class CallCount:
        ...     settled = 0
        ...     def reserve_in(self, connection, reservation, *, at, most_pico) -> None:
        ...         return None
        ...     def settle_in(self, connection, entry) -> None:
        ...         self.settled += entry.calls
    """

    def reserve_in(
        self, connection: sa.Connection, reservation: Reservation, *, at: int, most_pico: int | None
    ) -> None:
        """Called before a call is written, `at` Unix microseconds; it costs at most `most_pico` (None: unpriced).

        Raises:
            BudgetExceeded, RateLimited: The call is refused. Nothing was written.
        """
        ...

    def settle_in(self, connection: sa.Connection, entry: Entry) -> None:
        """Called once for each settled call and each adjustment."""
        ...
