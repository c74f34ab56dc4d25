"""Finishes an answer: adds its bill, stores its turn, records how its question ended and the documents it cites."""

import asyncio
from collections import Counter
from collections.abc import Mapping
from contextvars import copy_context
from dataclasses import replace
from typing import Protocol

from app.answering.abstention import REFUSED
from app.answering.answer import Answer
from app.answering.conversations import Conversations
from app.answering.question import Question
from app.db.answer_citations import AnswerOutcome, AnswerResult
from app.errors import BudgetExceeded, Conflict, Forbidden, InvalidRequest, NotFound, StoreUnavailable
from app.telemetry.logs import logger
from app.usage.ledger.events import Bill
from app.usage.ledger.ledger import Ledger
from generation.errors import ConstraintInvalid, ContextLengthExceeded
from retrieval.errors import InvalidFilter

RECORDING_SECONDS = 1.0
"""How long the last event waits for the record of the answer; after that it is written in the background."""

_OF_THE_CALLER = (
    BudgetExceeded,
    Conflict,
    ConstraintInvalid,
    ContextLengthExceeded,
    Forbidden,
    InvalidFilter,
    InvalidRequest,
    NotFound,
)
"""Errors that refuse a request; it is no question that failed."""


class CitationRecord(Protocol):
    """Records how questions ended, and the documents that their answers cite.

    >>> record.record("req_1", tenant_id="acme", citations={"doc_1": 2}, outcome=outcome)
    """

    def record(
        self,
        request_id: str,
        *,
        tenant_id: str,
        citations: Mapping[str, int],
        outcome: AnswerOutcome | None = None,
    ) -> None:
        """Store how often an answer cites each document, by document id, and its outcome. Idempotent for each answer.

        Raises:
            StoreUnavailable, StorageFull: Nothing was stored.
        """


class Closing:
    """Finishes answers. One instance serves every request."""

    def __init__(self, *, ledger: Ledger, conversations: Conversations, citations: CitationRecord) -> None:
        self._ledger = ledger
        self._conversations = conversations
        self._citations = citations

    async def ended(self, question: Question, answer: Answer) -> Answer:
        """The answer with its bill, stored in its conversation before the last event is sent.

        It is stored even if the client leaves meanwhile.
        """
        ended = replace(
            answer,
            conversation_id=question.conversation_id,
            standalone_question=question.standalone,
            usage=replace(answer.usage, bill=await asyncio.to_thread(self.bill, question.request_id)),
        )
        if question.conversation_id is not None:
            await asyncio.shield(asyncio.to_thread(self._conversations.keep, question, ended))
        return ended

    def left(self, question: Question) -> None:
        """No answer will be kept for a question of a conversation. Blocks; idempotent."""
        self._conversations.left(question)

    def left_soon(self, question: Question) -> None:
        """As `left`, in a thread that nobody waits for."""
        if question.conversation_id is not None:
            asyncio.get_running_loop().run_in_executor(None, copy_context().run, self._conversations.left, question)

    def recording(self, question: Question, answer: Answer) -> "asyncio.Future[None]":
        """Start to record how a question ended, and the documents that a complete answer cites.

        The future ends when that is done or has failed. It continues in a thread if the caller stops waiting. A failure
        is logged and not raised: the answer is sent. Of several answers to one request the first to end is recorded.
        """
        cited = Counter(citation.document_id for citation in answer.citations) if answer.whole else Counter[str]()
        return self._recorded(question, outcome_of(question, answer), cited)

    def failed(self, question: Question, error: BaseException) -> "asyncio.Future[None]":
        """Start to record a question that ended with an error, or was left by its client, as in `recording`.

        A request that was refused for a fault of its own is not recorded.
        """
        outcome = None
        if not question.dry_run and not isinstance(error, _OF_THE_CALLER):
            left = not isinstance(error, Exception)  # cancelled, or its stream was closed
            result = AnswerResult.CANCELLED if left else AnswerResult.FAILED
            outcome = _outcome(question, result, reason="" if left else type(error).__name__)
        return self._recorded(question, outcome, {})

    def _recorded(
        self, question: Question, outcome: AnswerOutcome | None, cited: Mapping[str, int]
    ) -> "asyncio.Future[None]":
        loop = asyncio.get_running_loop()
        if outcome is None and not cited:
            nothing = loop.create_future()
            nothing.set_result(None)
            return nothing
        context = copy_context()
        return loop.run_in_executor(None, context.run, self._record, question, outcome, cited)

    def _record(self, question: Question, outcome: AnswerOutcome | None, cited: Mapping[str, int]) -> None:
        tenant_id = question.principal.tenant_id
        try:
            self._citations.record(question.request_id, tenant_id=tenant_id, citations=cited, outcome=outcome)
        except Exception as error:  # noqa: BLE001 - the answer is sent all the same; the error is logged
            logger().warning("citations.unwritten", request_id=question.request_id, error=type(error).__name__)

    def bill(self, request_id: str) -> Bill | None:
        """What a request has cost so far, None where the ledger cannot be read now."""
        try:
            return self._ledger.bill(request_id)
        except StoreUnavailable:  # an answer without its price is better than no answer
            return None


def outcome_of(question: Question, answer: Answer) -> AnswerOutcome | None:
    """How a question ended with this answer; None for a dry run, which is no question.

    An answer is confirmed where at least one of its citations is verified. The reply to a greeting cites nothing.
    """
    total_ms = answer.timings_ms.get("total")
    total_us = None if total_ms is None else round(total_ms * 1000)
    if answer.reason == "dry_run":
        return None
    if "cancelled" in {answer.reason, answer.finish_reason}:
        return _outcome(question, AnswerResult.CANCELLED, total_us=total_us)
    if not answer.whole:
        return _outcome(question, AnswerResult.FAILED, reason=answer.finish_reason, total_us=total_us)
    if answer.reason == "unsure" or answer.reason in REFUSED:
        result = AnswerResult.UNSURE if answer.reason == "unsure" else AnswerResult.REFUSED
        return _outcome(question, result, reason=answer.reason, total_us=total_us)
    replied = not answer.citations and not answer.usage.answer_tokens
    confirmed = None if replied else any(citation.verified for citation in answer.citations)
    return _outcome(question, AnswerResult.ANSWERED, confirmed=confirmed, total_us=total_us)


def _outcome(
    question: Question,
    result: AnswerResult,
    *,
    reason: str = "",
    confirmed: bool | None = None,
    total_us: int | None = None,
) -> AnswerOutcome:
    return AnswerOutcome(
        request_id=question.request_id,
        tenant_id=question.principal.tenant_id,
        user_id=question.principal.user_id,
        endpoint=question.endpoint,
        result=result,
        reason=reason,
        confirmed=confirmed,
        total_us=total_us,
    )
