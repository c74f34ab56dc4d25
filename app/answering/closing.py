"""Finishes an answer: reports it, adds its bill, stores its turn, records its end and the documents that it cites."""

import asyncio
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from contextvars import copy_context
from dataclasses import replace
from typing import Protocol

from app.answering.answers.answer import Answer, SourceReport, WindowUse
from app.answering.answers.parts import Reason, cited
from app.answering.conversations.conversations import Conversations
from app.answering.metering.token_usage import ModelCall, Purpose, TokenUsage, called
from app.answering.question import Question
from app.answering.states.finished import Finished
from app.answering.states.sources import NO_SOURCES
from app.answering.states.strategy import Begun
from app.db.answer_citations import AnswerOutcome, AnswerResult
from app.errors import BudgetExceeded, Conflict, Forbidden, InvalidRequest, NotFound, StoreUnavailable
from app.telemetry.logs import logger
from app.types import Components
from app.usage.ledger.apportionment import components_of, shares_of
from app.usage.ledger.events import Bill
from app.usage.ledger.ledger import Ledger
from generation.errors import ConstraintInvalid, ContextLengthExceeded
from retrieval.errors import InvalidFilter
from retrieval.types import Span

RECORDING_SECONDS = 1.0
"""How long the last event waits for the record of the answer; after that it is written in the background."""

_REPORTED = (
    Purpose.ANSWER,
    Purpose.LOCATE,
    Purpose.COMPARE,
    Purpose.EXTRACT,
    Purpose.RERANK,
    Purpose.EMBED_QUERY,
    Purpose.REWRITE,
)

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

    def newer_versions(self, versions: Mapping[str, int], *, tenant_id: str) -> Mapping[str, int]:
        """The live versions of documents of which a newer one than that given is live, by document id.

        Raises:
            StoreUnavailable: The database cannot be read.
        """


class Closing:
    """Finishes answers. One instance serves every request."""

    def __init__(self, *, ledger: Ledger, conversations: Conversations, citations: CitationRecord) -> None:
        self._ledger = ledger
        self._conversations = conversations
        self._citations = citations

    async def ended(self, begun: Begun, finished: Finished) -> Answer:
        """The answer as it is reported, with its bill, stored in its conversation before the last event is sent.

        It is stored even if the client leaves meanwhile.
        """
        question, answer = begun.question, reported(begun, finished)
        ended = replace(
            await asyncio.to_thread(self._looked_up, question, answer),
            conversation_id=question.conversation_id,
            standalone_question=question.standalone,
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

    def _looked_up(self, question: Question, answer: Answer) -> Answer:
        """The answer with its bill; its footnotes say where a newer version became live meanwhile."""
        cited = {one.document_id: one.version for one in answer.citations}
        try:
            newer = self._citations.newer_versions(cited, tenant_id=question.principal.tenant_id) if cited else {}
        except StoreUnavailable:  # who reads the conversation later is told
            newer = {}
        return replace(
            answer,
            citations=tuple(replace(one, current_version=newer.get(one.document_id)) for one in answer.citations),
            usage=replace(answer.usage, bill=self.bill(question.request_id)),
        )

    def bill(self, request_id: str) -> Bill | None:
        """What a request has cost so far, None where the ledger cannot be read now."""
        try:
            return self._ledger.bill(request_id)
        except StoreUnavailable:  # an answer without its price is better than no answer
            return None


def reported(begun: Begun, finished: Finished) -> Answer:
    """The answer with its sources, its usage and its times until now, without its bill."""
    grounding, completion, cites = begun.grounding, finished.completion, finished.citations
    sources = SourceReport.of((), NO_SOURCES) if grounding is None else grounding.report
    usage = _usage(begun, finished)
    return Answer(
        id=begun.question.request_id,
        model=_model(usage.calls) if completion is None else finished.model,
        reason=finished.reason,
        text=finished.text,
        finish_reason=finished.finish_reason,
        citations=cites,
        parts=cited(finished.parts, [Span(one.answer_start, one.answer_end) for one in cites]),
        sources=replace(sources, cited=tuple(dict.fromkeys(one.chunk_id for one in cites))),
        usage=usage,
        budget=WindowUse(
            context_window=0 if grounding is None else grounding.budget.window,
            reserved_output=0 if grounding is None else grounding.budget.output,
            prompt_tokens=finished.prompt.components.total,
        ),
        timings_ms=_timings(begun, finished),
        error=finished.error,
        abstention=finished.abstention,
        logprobs=() if completion is None else completion.logprobs,
        probability=finished.probability,
        conflicts=finished.conflicts,
    )


def _usage(begun: Begun, finished: Finished) -> TokenUsage:
    """The usage of all calls. A dry run plans its prompt; else a prompt counts where the model has read it."""
    prompt, completion = finished.prompt, finished.completion
    components, planned = Components(), tuple[ModelCall, ...]()
    if completion is None and begun.question.dry_run:
        components = prompt.components
        call = ModelCall(purpose=Purpose.ANSWER, model=finished.model, prompt_tokens=components.total, planned=True)
        planned = called(call)
    elif completion is not None and completion.prompt_tokens:  # as on the ledger: one never read cost nothing
        components = components_of(prompt.components, completion.prompt_tokens)
    context = NO_SOURCES if begun.grounding is None else begun.grounding.context
    shares = shares_of(prompt.shares(context), components.context) if components.total else ()
    return TokenUsage(
        components=components,
        by_document={share.document_id: share.tokens for share in shares},
        calls=(*begun.meter.calls, *planned),
    )


def _model(calls: Sequence[ModelCall]) -> str:
    """The model of the first purpose of `_REPORTED` that an answer had a call for; "" for an answer without calls."""
    models = {call.purpose: call.model for call in calls}
    return next((models[purpose] for purpose in _REPORTED if purpose in models), "")


def _timings(begun: Begun, finished: Finished) -> dict[str, float | None]:
    """Milliseconds by stage; `first_token` counts from the question."""
    completion, grounding = finished.completion, begun.grounding
    total = (time.perf_counter() - begun.meter.started) * 1000
    first = None
    if completion is not None and completion.timings.first_token_ms is not None:
        first = total - completion.timings.total_ms + completion.timings.first_token_ms
    return {
        "queue": round(completion.timings.queue_ms, 1) if completion else 0.0,
        "retrieve": 0.0 if grounding is None else round(grounding.retrieve_ms, 1),
        "rerank": 0.0 if grounding is None else round(grounding.retrieved.rerank_ms, 1),
        "first_token": round(first, 1) if first is not None else None,
        "total": round(total, 1),
    }


def outcome_of(question: Question, answer: Answer) -> AnswerOutcome | None:
    """How a question ended with this answer; None for a dry run, which is no question.

    An answer is confirmed where at least one of its citations is verified. The reply to a greeting cites nothing.
    """
    total_ms = answer.timings_ms.get("total")
    total_us = None if total_ms is None else round(total_ms * 1000)
    if answer.reason is Reason.DRY_RUN:
        return None
    if answer.reason is Reason.CANCELLED or answer.finish_reason == "cancelled":
        return _outcome(question, AnswerResult.CANCELLED, total_us=total_us)
    if not answer.whole:
        return _outcome(question, AnswerResult.FAILED, reason=answer.finish_reason, total_us=total_us)
    if answer.reason is Reason.UNSURE or (answer.reason is not None and answer.reason.refuses):
        result = AnswerResult.UNSURE if answer.reason is Reason.UNSURE else AnswerResult.REFUSED
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
