"""The floor that every model is compared with: sentences quoted from the same context, without a language model."""

from collections.abc import Sequence
from functools import partial
from typing import Protocol

from app.answering.quoting.passage_reader import PassageReader
from app.evaluation.said import Said, nothing_said, quoted
from retrieval.ports import Embedder
from retrieval.types import Context, Source, Span


class FloorQuote(Protocol):
    """A sentence of a source: `text` is the canonical text at `span`."""

    @property
    def source(self) -> Source:
        """The source of the sentence."""
        ...

    @property
    def span(self) -> Span:
        """Its characters in the document version's canonical text."""
        ...

    @property
    def text(self) -> str:
        """The sentence."""
        ...


class Floor(Protocol):
    """Answers by quoting. Safe to call from several threads.

    Example:
        >>> [quote.text for quote in floor.answer("When was the plant closed?", context)]
        ['The plant in Oslo closed on 4 May after a fire.']
    """

    def answer(self, question: str, context: Context, /) -> Sequence[FloorQuote]:
        """The quotes that answer, likeliest first; none when the context holds no answer."""
        ...


class ExtractiveFloor:
    """Implements `Floor` with the sentences that `FOOTNOTE_GENERATOR=extractive` would quote."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder
        self._passage_reader = PassageReader(embedder=embedder)

    def answer(self, question: str, context: Context, /) -> Sequence[FloorQuote]:
        """See `Floor.answer`."""
        vector = partial(self._embedder.embed_query, question)
        selection = self._passage_reader.select(question, context, question_vector=vector)
        return selection.quotes if selection.outcome == "answered" else ()


def said_by(floor: Floor, question: str, context: Context) -> Said:
    """The floor's answer to a question from the context that the model read; nothing from an empty context."""
    if not context.sources:
        return nothing_said()
    quotes = floor.answer(question, context)
    return quoted([(quote.source.hit.chunk.document_id, quote.span, quote.text) for quote in quotes])
