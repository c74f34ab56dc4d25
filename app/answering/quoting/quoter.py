"""Selects the sentences of the sources that answer a question, and meters the embedder's tokens."""

from collections.abc import Set
from contextlib import AbstractContextManager

from app.answering.calls import CallNumber
from app.answering.formats import ANSWER_SCHEMA, ANY_OBJECT
from app.answering.locator import Located
from app.answering.question import Question
from app.answering.quoting.selection import THRESHOLD, Selection, SentenceSelector
from app.errors import InvalidRequest, UnsupportedParameter
from app.types import Operation
from app.usage.ledger.ledger import Ledger
from retrieval.ports import Embedder
from retrieval.types import Context

CALLS = frozenset({CallNumber.ANSWER, CallNumber.FIND_SENTENCES, CallNumber.QUOTE_AFTER_ANSWER})
"""The calls a quoter can make."""


class Quoter:
    """Quotes sentences of the sources: as the answer, as pointers for the model, or behind an unverified answer.

    One instance serves every request. `calls` are those of `CALLS` that this server uses:

    - ANSWER: quotes are the answer, and no language model is served;
    - FIND_SENTENCES: the prompt points the model at the likeliest sentences;
    - QUOTE_AFTER_ANSWER: quotes follow a model's answer of which nothing is verified.

    Example:
        >>> quoter = Quoter(embedder=embedder, ledger=ledger, calls={CallNumber.ANSWER})
        >>> selection = quoter.select(question, context, located=None, call=CallNumber.ANSWER)
        >>> [quote.text for quote in selection.quotes]
        ['The plant in Oslo closed on 4 May after a fire.']
    """

    def __init__(self, *, embedder: Embedder, ledger: Ledger, calls: Set[CallNumber]) -> None:
        assert calls <= CALLS, "a quoter makes no other calls"
        self.calls = frozenset(calls)
        self._selector = SentenceSelector(embedder)
        self._embedder = embedder
        self._ledger = ledger

    def check(self, question: Question) -> None:
        """Check that quotes can be the answer to `question`, before anything is spent.

        Raises:
            InvalidRequest: It needs an answer without sources, or a JSON document that quotes cannot fill.
            UnsupportedParameter: It needs log probabilities.
        """
        if question.on_no_evidence == "answer":
            raise InvalidRequest(
                "on_no_evidence: this server has no language model and answers from documents alone; use refuse.",
                param="on_no_evidence",
            )
        if question.sampling.logprobs is not None:
            raise UnsupportedParameter(
                "logprobs: this server has no language model, and quotes have no probabilities.",
                param="logprobs",
            )
        if question.json_schema not in {None, ANSWER_SCHEMA, ANY_OBJECT}:
            raise InvalidRequest(
                "This server has no language model and cannot fill a JSON schema; leave it out to get the answer "
                "and the numbers of its sources.",
                param="json_schema" if question.endpoint == "ask" else "response_format",
            )

    def select(self, question: Question, context: Context, located: Located | None, *, call: CallNumber) -> Selection:
        """The sentences of `context` that answer `question`.

        Args:
            question: As it was asked. Its `abstention_threshold` sets the least score that is quoted, but not for
                pointers (FIND_SENTENCES), which refuse nothing.
            context: The sources presented.
            located: The span reader's findings in them, None where it did not read; see `SentenceSelector.select`.
            call: Which call is written to the ledger; one of `calls`.

        Raises:
            BudgetExceeded: Nothing is left for the call.
            StoreUnavailable, StorageFull: The call could not be written to the ledger, and was not made.
        """
        assert call in self.calls, "the server does not use this call"
        asked = None if call is CallNumber.FIND_SENTENCES else question.abstention_threshold
        info = self._embedder.info

        def metering(tokens: int) -> AbstractContextManager[object]:
            reservation = question.reservation(
                call=call,
                operation=Operation.EMBED_QUERY,
                model=info.model,
                tokenizer_revision=info.revision,
                input_tokens=tokens,
            )
            return self._ledger.metered(reservation)

        return self._selector.select(
            question.text, context, located, threshold=THRESHOLD if asked is None else 1 - asked, metering=metering
        )
