"""The floor every model is compared with: sentences quoted from the same context, by no language model."""

from collections.abc import Sequence
from typing import Protocol

from app.answering.locator import Located
from app.evaluation.said import Said, nothing_said, quoted
from retrieval.types import Context, Source, Span


class Quote(Protocol):
    """A sentence of a source: `text` is the canonical text at `span`."""

    @property
    def source(self) -> Source:
        """Where it stands."""
        ...

    @property
    def span(self) -> Span:
        """Its characters in the document version's canonical text."""
        ...

    @property
    def text(self) -> str:
        """What stands there."""
        ...


class Reader(Protocol):
    """Answers by quoting. Safe to call from several threads."""

    def answer(self, question: str, context: Context, located: Located | None, /) -> Sequence[Quote]:
        """The quotes that answer, in reading order; none when the context holds no answer.

        `located` is where in it an answer was seen, None where nobody looked.
        """
        ...


def said_by(reader: Reader, question: str, context: Context, located: Located | None) -> Said:
    """What the reader says to a question, from what the model was given; nothing from an empty context."""
    if not context.sources:
        return nothing_said()
    quotes = reader.answer(question, context, located)
    return quoted([(quote.source.hit.chunk.document_id, quote.span, quote.text) for quote in quotes])
