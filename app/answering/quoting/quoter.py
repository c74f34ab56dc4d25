"""Selects the parts of the sources that answer a question, and meters the models that read them."""

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from app.answering.calls import CallNumber, Calls, CallsClosed
from app.answering.question import Question
from app.answering.quoting.breadth import breadth_of
from app.answering.quoting.selection import NEAREST, OnBatch, QuoteSelector, Selection, answered_from
from app.types import Operation, Reservation
from app.usage.ledger.ledger import Ledger
from retrieval.ports import Embedder, SpanReader
from retrieval.types import Context


def _ignored() -> None:
    """What happens by default when the first call of a selection is accepted: nothing."""


class _Metered:
    """The metered calls of one selection, which end when the calls of its question are closed.

    `tokens` are those that were read, by call.
    """

    def __init__(self, ledger: Ledger, *, calls: Calls, on_accepted: Callable[[], None]) -> None:
        self._ledger = ledger
        self._calls = calls
        self._accepted = iter((on_accepted,))
        self.tokens: Counter[CallNumber] = Counter()

    @contextmanager
    def call(self, number: CallNumber, reservation: Reservation) -> Iterator[OnBatch]:
        """Meter one call; the result is to be called after each of its batches.

        Raises:
            CallsClosed: No longer wanted; nothing was reserved. After a batch: it is settled with what was read.
            BudgetExceeded, StoreUnavailable, StorageFull: Nothing was reserved.
        """
        if self._calls.closed:
            raise CallsClosed
        with self._ledger.metered(reservation) as call:
            next(self._accepted, _ignored)()

            def on_batch(tokens: int) -> None:
                self.tokens[number] = tokens
                if self._calls.closed:
                    call.input_tokens, call.status_on_error = tokens, self._calls.aborted
                    raise CallsClosed

            yield on_batch
            self.tokens[number] = reservation.input_tokens


class Quoter:
    """Selects quotes from sources. One instance serves every request.

    Its selection is the answer where quotes answer; where a language model answers, it points the model at the
    likeliest words, tells how likely the question is answered, and follows answers of which nothing is verified.

    Example:
        >>> quoter = Quoter(embedder=embedder, reader=reader, ledger=ledger)
        >>> selection = quoter.select(question, context, calls=Calls(question))
        >>> selection.outcome, [quote.text for quote in selection.quotes]
        ('answered', ['The plant in Oslo closed on 4 May after a fire.'])
    """

    def __init__(self, *, embedder: Embedder, ledger: Ledger, reader: SpanReader | None = None) -> None:
        """Without a reader, words and the embedder decide alone."""
        self._selector = QuoteSelector(embedder, reader)
        self._embedder = embedder
        self._reader = reader
        self._ledger = ledger

    def select(
        self,
        question: Question,
        context: Context,
        *,
        calls: Calls,
        abstention: float | None = None,
        on_accepted: Callable[[], None] = _ignored,
    ) -> Selection:
        """The parts of `context` that answer `question`, and whether they do.

        Args:
            question: As it was asked, or rewritten to stand alone; its principal pays.
            context: The sources presented.
            calls: Closing them ends the selection with the batch that is being read. Its result then has no quotes,
                only the tokens that were read until then.
            abstention: The probability of there being no answer from which on the question is refused; None takes the
                thresholds of `app.answering.quoting.selection`.
            on_accepted: Called before the first model reads, once its call is on the ledger.

        Raises:
            BudgetExceeded: Nothing is left for a call.
            StoreUnavailable, StorageFull: A call could not be written to the ledger, and was not made.
        """
        answered = answered_from(abstention)
        metered = _Metered(self._ledger, calls=calls, on_accepted=on_accepted)
        try:
            return self._selector.select(
                question.text,
                context,
                answered=answered,
                nearest=min(NEAREST, answered),
                reading=lambda tokens: metered.call(CallNumber.READ, self._reading(question, tokens)),
                embedding=lambda tokens: metered.call(CallNumber.FIND_QUOTES, self._embedding(question, tokens)),
                breadth=breadth_of(question.text),
            )
        except CallsClosed:
            return Selection(
                (),
                0.0,
                "refused",
                tokens=metered.tokens[CallNumber.FIND_QUOTES],
                read_tokens=metered.tokens[CallNumber.READ],
                threshold=answered,
            )

    def _reading(self, question: Question, tokens: int) -> Reservation:
        assert self._reader is not None, "only a reader reads"
        return question.reservation(
            call=CallNumber.READ,
            operation=Operation.JUDGE,
            model=self._reader.model,
            tokenizer_revision=self._reader.revision,
            input_tokens=tokens,
        )

    def _embedding(self, question: Question, tokens: int) -> Reservation:
        info = self._embedder.info
        return question.reservation(
            call=CallNumber.FIND_QUOTES,
            operation=Operation.EMBED_QUERY,
            model=info.model,
            tokenizer_revision=info.revision,
            input_tokens=tokens,
        )
