"""Selects the parts of the sources that answer a question, and meters the models that read them."""

from contextlib import AbstractContextManager

from app.answering.calls import CallNumber
from app.answering.question import Question
from app.answering.quoting.breadth import breadth_of
from app.answering.quoting.selection import NEAREST, Metering, QuoteSelector, Selection, answered_from
from app.types import Operation
from app.usage.ledger.ledger import Ledger
from retrieval.ports import Embedder, SpanReader
from retrieval.types import Context


class Quoter:
    """Selects quotes from sources. One instance serves every request.

    Its selection is the answer where quotes answer; where a language model answers, it points the model at the
    likeliest words, tells how likely the question is answered, and follows answers of which nothing is verified.

    Example:
        >>> quoter = Quoter(embedder=embedder, reader=reader, ledger=ledger)
        >>> selection = quoter.select(question, context)
        >>> selection.outcome, [quote.text for quote in selection.quotes]
        ('answered', ['The plant in Oslo closed on 4 May after a fire.'])
    """

    def __init__(self, *, embedder: Embedder, ledger: Ledger, reader: SpanReader | None = None) -> None:
        """Without a reader, words and the embedder decide alone."""
        self._selector = QuoteSelector(embedder, reader)
        self._embedder = embedder
        self._reader = reader
        self._ledger = ledger

    def select(self, question: Question, context: Context, *, abstention: float | None = None) -> Selection:
        """The parts of `context` that answer `question`, and whether they do.

        Args:
            question: As it was asked, or rewritten to stand alone; its principal pays.
            context: The sources presented.
            abstention: The probability of there being no answer from which on the question is refused; None takes the
                thresholds of `app.answering.quoting.selection`.

        Raises:
            BudgetExceeded: Nothing is left for a call.
            StoreUnavailable, StorageFull: A call could not be written to the ledger, and was not made.
        """
        answered = answered_from(abstention)
        return self._selector.select(
            question.text,
            context,
            answered=answered,
            nearest=min(NEAREST, answered),
            reading=self._reading(question),
            embedding=self._embedding(question),
            breadth=breadth_of(question.text),
        )

    def _reading(self, question: Question) -> Metering:
        def metering(tokens: int) -> AbstractContextManager[object]:
            assert self._reader is not None, "only a reader reads"
            reservation = question.reservation(
                call=CallNumber.READ,
                operation=Operation.JUDGE,
                model=self._reader.model,
                tokenizer_revision=self._reader.revision,
                input_tokens=tokens,
            )
            return self._ledger.metered(reservation)

        return metering

    def _embedding(self, question: Question) -> Metering:
        info = self._embedder.info

        def metering(tokens: int) -> AbstractContextManager[object]:
            reservation = question.reservation(
                call=CallNumber.FIND_QUOTES,
                operation=Operation.EMBED_QUERY,
                model=info.model,
                tokenizer_revision=info.revision,
                input_tokens=tokens,
            )
            return self._ledger.metered(reservation)

        return metering
