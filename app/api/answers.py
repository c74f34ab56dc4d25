"""Routes of answers: ask a question, and cancel a running answer."""

import json
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import replace
from functools import partial

import anyio
from fastapi import APIRouter, Request
from fastapi.responses import Response
from pydantic import Field

from app.answering.answers.answer import Answer, QuotesFound, SourcesFound, TextDelta
from app.answering.formats.answer_formats import ANSWER_SCHEMA, schema_text
from app.answering.question import Question
from app.answering.running.open_answer import OpenAnswer
from app.answering.running.registry import may_stop
from app.api.dependencies import (
    AnswerDeadline,
    CorpusDep,
    HistoryDep,
    ModelsDep,
    PrincipalDep,
    RequestId,
    SettingsDep,
    scope_for,
)
from app.api.errors import failure_of
from app.api.event_stream import EventStream, event_stream, sse, unless_disconnected, with_terminal_error
from app.api.schemas.answers import DONE_LEAVES_OUT, AnswerBody, AskRequest, CitationBody, DoneBody
from app.api.schemas.bounds import Id
from app.api.schemas.quotes_event import QuotesEventBody
from app.api.schemas.shape import Problem, ResponseBody, problems
from app.api.schemas.sources_event import SourcesEventBody
from app.api.schemas.token_usage import UsageBody
from app.errors import InvalidRequest, NotFound
from app.server.state import DocumentsState
from app.settings import Settings
from app.types import Principal

router = APIRouter(tags=["answers"])


class Cancelled(ResponseBody):
    """A cancellation was accepted."""

    cancelled: bool = Field(default=True, description="Always true.")


@router.post(
    "/v1/ask",
    response_model=AnswerBody,
    summary="Ask your documents",
    responses={
        200: {
            "description": "The answer; with `stream: true` server-sent events: `sources`, `quotes` where a model "
            "words the answer and some were found, `delta` {text, part} …, `citation` …, `usage`, `done`, or `error` "
            "with a problem document.",
            "content": event_stream(
                *("sources", "quotes", "delta", "citation", "usage", "done", "error"),
                bodies={
                    "sources": SourcesEventBody,
                    "quotes": QuotesEventBody,
                    "citation": CitationBody,
                    "usage": UsageBody,
                    "done": DoneBody,
                    "error": Problem,
                },
            ),
        },
        **problems(404, 422, 429, 503, 504),
    },
)
async def ask(
    body: AskRequest,
    request: Request,
    corpus: CorpusDep,
    settings: SettingsDep,
    models: ModelsDep,
    principal: PrincipalDep,
    request_id: RequestId,
    deadline: AnswerDeadline,
) -> Response:
    """Search the documents and answer with footnotes. Disconnecting cancels the answer."""
    answerer = models.answerer
    made = partial(question_of, body, corpus, settings, principal, request_id)
    takes_long = body.collection_ids or body.filter is not None or body.json_schema is not None
    asked = await anyio.to_thread.run_sync(made) if takes_long else made()
    question = replace(asked, deadline=deadline)
    if body.stream:
        begun = await unless_disconnected(request, lambda: answerer.begun(question))
        return EventStream(
            with_terminal_error(_events(begun), request, request_id, render=_error_event), on_close=begun.close
        )

    async def whole() -> Answer:
        return await answerer.open(question).whole()

    answer = await unless_disconnected(request, whole)
    if (failure := failure_of(answer)) is not None:
        raise failure
    return Response(AnswerBody.of(answer).model_dump_json(), media_type="application/json")


@router.post("/v1/requests/{id}/cancel", summary="Cancel a running answer", responses=problems(404))
def cancel(
    id: Id,  # noqa: A002 - the contract's name
    models: ModelsDep,
    history: HistoryDep,
    principal: PrincipalDep,
) -> Cancelled:
    """Cancel an answer that is being prepared or generated; its stream ends with `done`, `finish_reason: cancelled`.

    Of processes that share a database any may be asked; one where it does not run tells the other within a second.
    """
    try:
        models.answerer.running.cancel(id, principal=principal)
    except NotFound:
        cancels = history.cancels
        asker = None if cancels is None else cancels.asker(id, tenant_id=principal.tenant_id)
        if (
            cancels is None
            or asker is None
            or not may_stop(principal, replace(principal, user_id=asker[0], key_id=asker[1]))
        ):
            raise
        cancels.ask(id)
    return Cancelled()


def question_of(
    body: AskRequest,
    corpus: DocumentsState,
    settings: Settings,
    principal: Principal,
    request_id: str,
    endpoint: str = "ask",
) -> Question:
    """The question of a request, which the ledger names by `endpoint`.

    Raises:
        NotFound: A named collection does not exist for this caller.
        InvalidFilter: The filter is malformed.
        InvalidRequest: There is a schema, but the format is not JSON.
    """
    return Question(
        request_id=request_id,
        endpoint=endpoint,
        principal=principal,
        text=body.question,
        scope=scope_for(
            corpus,
            principal,
            collection_ids=body.collection_ids,
            document_ids=body.document_ids,
            raw_filter=body.filter,
        ),
        conversation_id=body.conversation_id,
        alone=body.standalone,
        top_k=body.top_k,
        mode=body.mode,
        rerank=body.rerank,
        max_context_tokens=body.max_context_tokens,
        max_output_tokens=body.max_output_tokens,
        sampling=body.sampling_params(),
        abstention_threshold=body.abstention_threshold,
        strict=settings.strict if body.strict is None else body.strict,
        on_no_evidence=body.on_no_evidence,
        dry_run=body.dry_run,
        length=body.length,
        format=body.format,
        json_schema=_json_schema(body),
    )


def _json_schema(body: AskRequest) -> str | None:
    """The schema of the answer as JSON text, None for prose.

    Raises:
        InvalidRequest: There is a schema, but the format is not JSON.
    """
    if body.format != "json":
        if body.json_schema is not None:
            raise InvalidRequest("json_schema needs format json.", param="json_schema")
        return None
    return ANSWER_SCHEMA if body.json_schema is None else schema_text(body.json_schema, param="json_schema")


async def _events(answer: OpenAnswer) -> AsyncGenerator[bytes, None]:
    async with aclosing(answer.events()) as stream:
        async for event in stream:
            match event:
                case SourcesFound():
                    yield sse("sources", SourcesEventBody.found(event).model_dump_json())
                case QuotesFound():
                    yield sse("quotes", QuotesEventBody.of(event).model_dump_json())
                case TextDelta():
                    yield sse("delta", json.dumps({"text": event.text, "part": event.part}, ensure_ascii=False))
                case Answer():
                    for citation in event.citations:
                        yield sse("citation", CitationBody.of(citation).model_dump_json())
                    yield sse("usage", UsageBody.of(event.usage).model_dump_json())
                    yield _last(event)


def _last(answer: Answer) -> bytes:
    if (failure := failure_of(answer)) is not None:
        raise failure
    return sse("done", AnswerBody.of(answer).model_dump_json(exclude=set(DONE_LEAVES_OUT)))


def _error_event(body: dict[str, object]) -> bytes:
    return sse("error", json.dumps(body))
