"""Selects the parts of the sources that answer a question, and meters the models that read them."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from app.answering.metering.meter import CallsClosed, Meter, OnBatch
from app.answering.metering.token_usage import Purpose
from app.answering.question import Question
from app.answering.quoting.breadth import breadth_of
from app.answering.quoting.quotes import Selection, answered_from
from app.answering.quoting.selection import NEAREST, QuoteSelector
from retrieval.ports import Embedder, SpanReader, Vectors
from retrieval.types import Context


def _ignored() -> None:
    """What happens by default when the first call of a selection is accepted: nothing."""


class Quoter:
    """Selects quotes from sources. One instance serves every request.

    Its selection is the answer where quotes answer; where a language model answers, it points the model at the
    likeliest words, tells how likely the question is answered, and follows answers of which nothing is verified.

    Example:
        >>> quoter = Quoter(embedder=embedder, reader=reader)
        >>> selection = quoter.select(question, context, vector=vector, meter=meter)
        >>> selection.outcome, [quote.text for quote in selection.quotes]
        ('answered', ['The plant in Oslo closed on 4 May after a fire.'])
    """

    def __init__(self, *, embedder: Embedder, reader: SpanReader | None = None) -> None:
        """Without a reader, words and the embedder decide alone."""
        self._selector = QuoteSelector(embedder, reader)

    def select(
        self,
        question: Question,
        context: Context,
        *,
        vector: Callable[[], Vectors],
        meter: Meter,
        abstention: float | None = None,
        on_accepted: Callable[[], None] = _ignored,
    ) -> Selection:
        """The parts of `context` that answer `question`, and whether they do.

        Args:
            question: As it was asked, or rewritten to stand alone; its principal pays.
            context: The sources presented.
            vector: The question's (dim,) unit vector; called where passages are compared with it.
            meter: Meters the models that read. Closing it ends the selection with the batch that is being read; the
                result then has no quotes.
            abstention: The probability of there being no answer from which on the question is refused; None takes the
                thresholds of `app.answering.quoting.selection`.
            on_accepted: Called before the first model reads, once its call is on the ledger.

        Raises:
            BudgetExceeded: Nothing is left for a call.
            StoreUnavailable, StorageFull: A call could not be written to the ledger, and was not made.
        """
        answered = answered_from(abstention)
        accepted = iter((on_accepted,))

        @contextmanager
        def metered(purpose: Purpose, model: str, revision: str, tokens: int) -> Iterator[OnBatch]:
            meter.require_open()
            with meter.reading(purpose, model=model, revision=revision, tokens=tokens) as on_batch:
                next(accepted, _ignored)()
                yield on_batch

        try:
            return self._selector.select(
                question.text,
                context,
                answered=answered,
                nearest=min(NEAREST, answered),
                metering=metered,
                breadth=breadth_of(question.text),
                question_vector=vector,
            )
        except CallsClosed:
            read = any(call.purpose is Purpose.LOCATE for call in meter.calls)
            return Selection((), 0.0, "refused", decides=read, threshold=answered)
