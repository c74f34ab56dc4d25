"""The sources of an answer: what was retrieved for a question, the room that there is, and what fits."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from app.answering.answers.answer import AbstentionReport, SourceReport
from app.answering.citing.citation import Pages
from app.answering.languages.other_language import OtherLanguage
from app.answering.metering.meter import Meter
from app.answering.question import Question
from retrieval.compress import Order
from retrieval.ports import Vectors
from retrieval.types import Context, Hit, Span

NO_SOURCES = Context(sources=(), dropped=(), tokens=0)


@dataclass(frozen=True, slots=True)
class Overview:
    """What is shown of a document as a whole. Spans are characters of its live version.

    Attributes:
        hits: The chunks with the opening, and those with the headings, at most as many as the question asks for.
        opening: The opening; None where there is no text.
        headings: The headings in reading order.
        title: The line of the document that is its title; None without one.
        score: The probability in (0, 1) that this document is meant, and so that the question is answered.
    """

    hits: tuple[Hit, ...]
    opening: Span | None
    headings: tuple[Span, ...]
    title: Span | None
    score: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Retrieved:
    """The hits for a question.

    Attributes:
        hits: Best first; none where those that were found are no evidence.
        found: All that were found.
        evidence: Their score and the least that counts as evidence; empty for an overview.
        vector: Returns the question's (dim,) unit vector, which is embedded when it is first needed.
        overview: Of the document that the question asks about as a whole; `hits` are its own.
        rerank_ms: Milliseconds of reranking.
    """

    hits: tuple[Hit, ...]
    found: tuple[Hit, ...]
    evidence: AbstentionReport
    vector: Callable[[], Vectors]
    overview: Overview | None = None
    rerank_ms: float = 0.0


@dataclass(frozen=True, slots=True)
class Fitted:
    """A context, and the chunk ids of its sources of which a model reads a summary."""

    context: Context
    summarised: tuple[str, ...] = ()


class Overflow(Protocol):
    """Fits hits into a context that has too little room for them, by other means than to leave them out."""

    def fitted(
        self,
        question: Question,
        hits: Sequence[Hit],
        *,
        budget: int,
        fit: Callable[[int], Context],
        order: Order,
        meter: Meter,
    ) -> Fitted:
        """The context of `hits`, best first, in `budget` tokens. Blocks.

        Args:
            question: The question that they are for.
            hits: Best first.
            budget: Most tokens of all headers and bodies together.
            fit: Compresses the hits to a number of tokens.
            order: How the sources are arranged.
            meter: Meters model calls; closing it stops them.

        Raises:
            BudgetExceeded, StoreUnavailable, StorageFull: A model's call was not reserved, and not made.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenBudget:
    """The room of an answer, in tokens of the serving tokenizer.

    Attributes:
        window: The context window.
        output: Reserved for the text of the answer.
        sources: Most tokens of the sources.
        overview: Most tokens of the sources where they are a document as a whole.
        repeated: Most tokens of what is shown of the sources a second time.
        count: Counts the tokens of a document's text as it is shown.
        order: Arranges the sources.
        overflow: Makes more fit; None leaves out what does not.
    """

    window: int
    output: int
    sources: int
    overview: int
    repeated: int = 0
    count: Callable[[str], int]
    order: Order
    overflow: Overflow | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Grounding:
    """The sources of an answer.

    Attributes:
        question: As it was understood.
        retrieved: What was found for it.
        budget: The room for it.
        context: The sources that fit.
        summarised: Chunk ids of the sources of which a model reads a summary.
        pages: Returns the pages by which citations name their place, read from the database; called once.
        note: What goes with a refusal and with nearest passages.
        retrieve_ms: Milliseconds until the hits were found, without reranking.
    """

    question: Question
    retrieved: Retrieved
    budget: TokenBudget
    context: Context = NO_SOURCES
    summarised: tuple[str, ...] = ()
    pages: Callable[[], Pages] = dict
    note: OtherLanguage | None = None
    retrieve_ms: float = 0.0

    @property
    def report(self) -> SourceReport:
        """The sources as they are reported before anything is cited."""
        return SourceReport.of(self.retrieved.found, self.context, summarised=self.summarised)
