"""The entries of the ledger, their token counts, and the port for everything kept in step with them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import sqlalchemy as sa

from app.types import Components, Operation, Reservation

_COMPONENTS = ("tok_system", "tok_history", "tok_context", "tok_question", "tok_template")
COUNTS = (*_COMPONENTS, "input_tokens", "input_cached_tokens", "output_tokens", "output_delivered_tokens")
"""The columns of token counts, in `usage_event` and in `usage_adjustment`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """The token counts of a call, or a change of them, which may be negative.

    The first five are parts of `input_tokens`, as `cached_tokens` is; `delivered_tokens` are part of `output_tokens`.
    """

    system: int = 0
    history: int = 0
    context: int = 0
    question: int = 0
    template: int = 0
    input_tokens: int = 0
    cached_tokens: int = 0
    output_tokens: int = 0
    delivered_tokens: int = 0

    @classmethod
    def of(cls, row: Mapping[Any, Any]) -> "Counts":
        """Read the counts from a row."""
        return cls(
            system=int(row["tok_system"]),
            history=int(row["tok_history"]),
            context=int(row["tok_context"]),
            question=int(row["tok_question"]),
            template=int(row["tok_template"]),
            input_tokens=int(row["input_tokens"]),
            cached_tokens=int(row["input_cached_tokens"]),
            output_tokens=int(row["output_tokens"]),
            delivered_tokens=int(row["output_delivered_tokens"]),
        )

    @property
    def columns(self) -> dict[str, int]:
        """The counts by column, for a row."""
        return {
            "tok_system": self.system,
            "tok_history": self.history,
            "tok_context": self.context,
            "tok_question": self.question,
            "tok_template": self.template,
            "input_tokens": self.input_tokens,
            "input_cached_tokens": self.cached_tokens,
            "output_tokens": self.output_tokens,
            "output_delivered_tokens": self.delivered_tokens,
        }

    @property
    def components(self) -> Components:
        """The parts of the input."""
        return Components(
            template=self.template,
            system=self.system,
            history=self.history,
            question=self.question,
            context=self.context,
        )

    def __add__(self, other: "Counts") -> "Counts":
        """The sum, count by count."""
        theirs = other.columns
        return Counts.of({name: value + theirs[name] for name, value in self.columns.items()})


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
    components: Components
    input_tokens: int
    cached_tokens: int
    output_tokens: int
    delivered_tokens: int
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
