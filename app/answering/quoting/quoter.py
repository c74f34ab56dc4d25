"""Selects the parts of the sources that answer a question, and meters the models that read them."""

from collections.abc import Generator, Iterator
from contextlib import contextmanager

from app.answering.metering.meter import CallsClosed, Meter, OnBatch
from app.answering.metering.token_usage import Purpose
from app.answering.quoting.breadth import breadth_of
from app.answering.quoting.selection import NEAREST, OpenSelection, QuoteSelector
from app.answering.states.reading import ANSWERED, Selection
from app.answering.states.sources import Grounding
from app.types import DocumentShare
from retrieval.ports import CandidateJudge, Embedder, SpanReader


class PassageReader:
    """Selects quotes from sources. One instance serves every request.

    Its selection is the answer where quotes answer; where a language model answers, it points the model at the
    likeliest words, tells how likely the question is answered, and follows answers of which nothing is verified.

    Example:
        >>> quoter = PassageReader(embedder=embedder, reader=reader)
        >>> selection = quoter.open(grounding, meter=meter).read()
        >>> selection.outcome, [quote.text for quote in selection.quotes]
        ('answered', ['The plant in Oslo closed on 4 May after a fire.'])
    """

    def __init__(
        self, *, embedder: Embedder, reader: SpanReader | None = None, judge: CandidateJudge | None = None
    ) -> None:
        """Without a reader, words and the embedder decide alone; `judge` compares what the reader has read."""
        self._selector = QuoteSelector(embedder, reader, judge)

    def open(self, grounding: Grounding, *, meter: Meter, abstention: float | None = None) -> OpenSelection:
        """Select the parts of the sources that answer, and tell whether they do: the first model is about to read.

        Args:
            grounding: The question as it was understood, whose principal pays, and its sources.
            meter: Meters the models that read. Closing it ends the selection with the batch that is being read; the
                result then has no quotes.
            abstention: The probability of there being no answer from which on the question is refused; None takes the
                thresholds of `app.answering.quoting.selection`.

        Raises:
            BudgetExceeded: Nothing is left for a call; a later one raises where the selection is read.
            StoreUnavailable, StorageFull: A call could not be written to the ledger, and was not made.
        """
        return OpenSelection(self._selecting(grounding, meter, answered_from(abstention)))

    def _selecting(self, grounding: Grounding, meter: Meter, answered: float) -> Generator[None, None, Selection]:
        @contextmanager
        def metered(
            purpose: Purpose, model: str, revision: str, tokens: int, *, documents: tuple[DocumentShare, ...] = ()
        ) -> Iterator[OnBatch]:
            meter.require_open()
            with meter.reading(purpose, model=model, revision=revision, tokens=tokens, documents=documents) as on_batch:
                yield on_batch

        question = grounding.question.text
        try:
            return (
                yield from self._selector.selecting(
                    question,
                    grounding.context,
                    answered=answered,
                    nearest=min(NEAREST, answered),
                    metering=metered,
                    breadth=breadth_of(question),
                    question_vector=grounding.retrieved.vector,
                )
            )
        except CallsClosed:
            read = any(call.purpose is Purpose.LOCATE for call in meter.calls)
            return Selection((), 0.0, "refused", decides=read, threshold=answered)


def answered_from(abstention: float | None) -> float:
    """The probability of an answer from which on a question counts as answered, by that of none which refuses it."""
    return ANSWERED if abstention is None else 1 - abstention
