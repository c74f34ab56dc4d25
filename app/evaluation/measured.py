"""What measuring one question set yields: a value per question and measure, examples, remarks."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from app.evaluation.record import Example

Values: TypeAlias = dict[str, dict[str, float]]
"""Values by key (`measures.measures_of`) and question."""

OnProgress: TypeAlias = Callable[[str, int, int], None]
"""Told what is being done, and how many of how many are done."""


@dataclass(slots=True)
class Measured:
    """Values by key and question, abstention scores by group and question, examples of what went wrong, remarks."""

    values: Values = field(default_factory=dict)
    abstention: Values = field(default_factory=dict)
    examples: list[Example] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def put(self, key: str, question: str, value: float) -> None:
        """Write one value down."""
        self.values.setdefault(key, {})[question] = value

    def put_all(self, prefix: str, question: str, scores: Mapping[str, float]) -> None:
        """Write a question's scores down, each under `prefix` and its name."""
        for name, score in scores.items():
            self.put(f"{prefix}/{name}", question, score)
