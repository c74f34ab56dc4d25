"""Token counts of a call, in the ledger's columns and as values that add up."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from app.types import Components

_COMPONENTS = ("tok_system", "tok_history", "tok_context", "tok_question", "tok_template")
COUNTS = (*_COMPONENTS, "input_tokens", "input_cached_tokens", "output_tokens", "output_delivered_tokens")
"""The columns, in `usage_event` and in `usage_adjustment`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """Tokens of a call, or what to add to them; then they may be negative.

    `cached_tokens` are among the input, `delivered_tokens` among the output.
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
        """The counts in a row's columns."""
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
        """The values of the columns."""
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
        """The input by what it is for."""
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
