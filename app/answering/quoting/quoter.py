"""Selects the parts of the sources that answer a question, and meters the models that read them."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Protocol

from app.answering.calls import CallNumber, Calls, CallsClosed
from app.answering.question import Question
from app.answering.quoting.breadth import breadth_of
from app.answering.quoting.quotes import Selection, answered_from
from app.answering.quoting.selection import NEAREST, OnBatch, QuoteSelector
from app.answering.token_usage import ModelCall, Purpose, called
from app.types import Operation, Reservation
from app.usage.ledger.ledger import Ledger
from retrieval.ports import Embedder, SpanReader, Vectors
from retrieval.types import Context


def _ignored() -> None:
    """What happens by default when the first call of a selection is accepted: nothing."""


class CachedVectors(Protocol):
    """The vectors of questions that were searched for."""

    def __call__(self, question: str, /, *, tenant_id: str) -> Vectors | None:
        """The (dim,) unit vector of a tenant's question; None where it is not cached."""


class _Metered:
    """The metered calls of one selection, which end when the calls of its question are closed.

    `read` are the calls with the tokens that they read.
    """

    def __init__(self, ledger: Ledger, *, calls: Calls, on_accepted: Callable[[], None]) -> None:
        self._ledger = ledger
        self._calls = calls
        self._accepted = iter((on_accepted,))
        self._read: dict[Purpose, ModelCall] = {}

    @property
    def read(self) -> tuple[ModelCall, ...]:
        return called(*self._read.values())

    @contextmanager
    def call(self, purpose: Purpose, reservation: Reservation) -> Iterator[OnBatch]:
        """Meter one call; the result is to be called after each of its batches.

        Raises:
            CallsClosed: No longer wanted; nothing was reserved. After a batch: it is settled with what was read.
            BudgetExceeded, StoreUnavailable, StorageFull: Nothing was reserved.
        """
        if self._calls.closed:
            raise CallsClosed
        with self._ledger.metered(reservation) as call:
            next(self._accepted, _ignored)()

            def note(tokens: int) -> None:
                self._read[purpose] = ModelCall(purpose=purpose, model=reservation.model, prompt_tokens=tokens)

            def on_batch(tokens: int) -> None:
                note(tokens)
                if self._calls.closed:
                    call.input_tokens, call.status_on_error = tokens, self._calls.aborted
                    raise CallsClosed

            yield on_batch
            note(reservation.input_tokens)


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

    def __init__(
        self,
        *,
        embedder: Embedder,
        ledger: Ledger,
        reader: SpanReader | None = None,
        cached: CachedVectors | None = None,
    ) -> None:
        """Without a reader, words and the embedder decide alone.

        Questions whose vectors are `cached` are not embedded, nor billed, again.
        """
        self._cached = cached
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
                only the calls with what they read until then.
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
            selection = self._selector.select(
                question.text,
                context,
                answered=answered,
                nearest=min(NEAREST, answered),
                reading=lambda tokens: metered.call(Purpose.LOCATE, self._reading(question, tokens)),
                embedding=lambda tokens: metered.call(Purpose.EXTRACT, self._embedding(question, tokens)),
                breadth=breadth_of(question.text),
                question_vector=self._cached_vector(question),
            )
        except CallsClosed:
            read = any(call.purpose is Purpose.LOCATE for call in metered.read)
            selection = Selection((), 0.0, "refused", decides=read, threshold=answered)
        return replace(selection, calls=metered.read)

    def _cached_vector(self, question: Question) -> Vectors | None:
        return None if self._cached is None else self._cached(question.text, tenant_id=question.principal.tenant_id)

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
