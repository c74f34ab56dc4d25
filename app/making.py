"""How a kept answer was made: what it told beside its words and footnotes, in JSON's types and back."""

from collections.abc import Mapping
from dataclasses import dataclass, fields

from pydantic import TypeAdapter

from app.answer import AbstentionReport, Answer, Budget, SourceReport, TokenUsage
from retrieval.types import Span


@dataclass(frozen=True, slots=True)
class Making:
    """The fields of an `Answer` by these names, as they were when it ended.

    So its bill is the one its reader was given; what the ledger says after a price was put right may be another.
    """

    model: str
    reason: str | None
    finish_reason: str
    uncited: tuple[Span, ...]
    abstention: AbstentionReport
    sources: SourceReport
    usage: TokenUsage
    budget: Budget
    timings_ms: Mapping[str, float | None]
    quoted: tuple[Span, ...] = ()  # answers kept before it was told have none

    @classmethod
    def of(cls, answer: Answer) -> "Making":
        """How `answer` was made."""
        return cls(**{field.name: getattr(answer, field.name) for field in fields(cls)})

    @classmethod
    def from_json(cls, kept: Mapping[str, object]) -> "Making":
        """What `as_json` made, exactly."""
        return _KEPT.validate_python(kept)

    def as_json(self) -> dict[str, object]:
        """In JSON's types."""
        made: dict[str, object] = _KEPT.dump_python(self, mode="json")
        return made


_KEPT = TypeAdapter(Making)
