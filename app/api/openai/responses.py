"""OpenAI's protocol: the Responses API."""

import time
from dataclasses import replace

import anyio
from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, Response

from app.answering.answers.answer import Answer
from app.answering.formats.answer_formats import ANY_OBJECT, SCHEMA_FIELDS, schema_text
from app.answering.question import Question
from app.answering.running.open_answer import OpenAnswer
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
from app.api.event_stream import EventStream, event_stream, unless_disconnected, with_terminal_error
from app.api.openai.asking import Asked, refuse_logprobs_in_strict
from app.api.openai.models import collection_of
from app.api.openai.response_keeping import ResponseKeeping, conversation_of
from app.api.openai.response_object import ResponseObject, refuses, status_of
from app.api.openai.response_stream import RESPONSE_EVENTS, ResponseStream
from app.api.openai.schemas.chat import JsonObjectFormat
from app.api.openai.schemas.responses import ResponseObjectBody, ResponseRequest, ResponseText, SchemaFormat
from app.api.openai.vector_stores import translated
from app.api.schemas.shape import problems
from app.errors import InvalidRequest
from app.server.state import DocumentsState, History
from app.settings import Settings
from app.types import Principal
from retrieval.types import Scope

router = APIRouter(tags=["openai"])

_FOUND = 8  # hits where `max_num_results` is left out, as in chat completions


@router.post(
    "/v1/responses",
    response_model=ResponseObjectBody,
    summary="Ask your documents, in OpenAI's Responses API",
    responses={
        200: {
            "description": "The response; with `stream: true` OpenAI's events, each with its `type` and "
            "`sequence_number`.",
            "content": event_stream(*RESPONSE_EVENTS),
        },
        **problems(400, 404, 422, 429, 503, 504),
    },
)
async def create_response(
    body: ResponseRequest,
    request: Request,
    corpus: CorpusDep,
    history: HistoryDep,
    settings: SettingsDep,
    models: ModelsDep,
    principal: PrincipalDep,
    request_id: RequestId,
    deadline: AnswerDeadline,
) -> Response:
    """The last user message is the question. Every answer is searched for, with or without the tool `file_search`."""
    answerer = models.answerer
    asked = await anyio.to_thread.run_sync(_question, body, corpus, history, settings, principal, request_id)
    question = replace(asked, deadline=deadline)
    keeping = ResponseKeeping(body, question, history.responses)
    if question.sampling.logprobs is not None:
        await anyio.to_thread.run_sync(models.tokenizer.piece, 0)  # the first time it spells the whole vocabulary
    made = ResponseObject(
        body,
        id=request_id,
        tokenizer=models.tokenizer,
        metadata_of=corpus.openai_files.rows.metadata_of,
        created_at=int(time.time()),
    )
    if body.stream:
        begun = await unless_disconnected(request, lambda: answerer.begun(question))
        stream = ResponseStream(made, begun, keeping=keeping)
        whole_stream = with_terminal_error(stream.events(), request, request_id, render=stream.error_event)
        return EventStream(whole_stream, on_close=begun.close)

    async def whole() -> tuple[OpenAnswer, Answer]:
        opened = answerer.open(question)
        return opened, await opened.whole()

    opened, answer = await unless_disconnected(request, whole)
    if (failure := failure_of(answer)) is not None:
        raise failure
    refused = refuses(answer, in_json=question.json_schema is not None)
    search = await made.searched(opened)
    message = made.message(status_of(answer), [made.part(answer.text, refused=refused, answer=answer)])
    response = made.ended(answer, [message] if search is None else [search, message])
    return JSONResponse(await keeping.kept(answer, response))


def _question(
    body: ResponseRequest,
    corpus: DocumentsState,
    history: History,
    settings: Settings,
    principal: Principal,
    request_id: str,
) -> Question:
    messages = [("system", body.instructions)] if body.instructions else []
    asked = Asked.of([*messages, *((one.role, one.text) for one in body.messages)], param="input")
    sampling = body.sampling_params()
    refuse_logprobs_in_strict(wanted=sampling.logprobs is not None, strict=settings.strict, param="include")
    tool = body.file_search
    ranking = tool.ranking_options if tool is not None else None
    schema = _json_schema(body.text)
    question = Question(
        request_id=request_id,
        endpoint="responses",
        principal=principal,
        text=asked.text,
        scope=_scope(body, corpus, principal),
        conversation_id=conversation_of(body, history, principal, text=asked.text),
        top_k=(tool.max_num_results if tool is not None else None) or _FOUND,
        rerank=False if ranking is not None and ranking.ranker == "none" else None,
        min_score=ranking.score_threshold if ranking is not None else None,
        max_output_tokens=body.max_output_tokens,
        sampling=sampling,
        strict=settings.strict,
        format="markdown" if schema is None else "json",
        json_schema=schema,
    )
    return asked.in_question(question)


def _scope(body: ResponseRequest, corpus: DocumentsState, principal: Principal) -> Scope:
    """The collection of the model's name, else those of the tool, else every one of the key.

    Raises:
        InvalidFilter: The filter is malformed.
        InvalidRequest: The model names another collection than the tool.
        NotFound: The model, or a collection, does not exist for this caller.
    """
    named, tool = collection_of(body.model, corpus, principal), body.file_search
    stores = None if tool is None else tool.vector_store_ids
    if named is not None:
        if stores is not None and set(stores) != {named}:
            raise InvalidRequest("The model names another collection than 'vector_store_ids'.", param="model")
        stores = [named]
    filters = translated(tool.filters) if tool is not None and tool.filters is not None else None
    return scope_for(corpus, principal, collection_ids=stores, document_ids=None, raw_filter=filters)


def _json_schema(text: ResponseText | None) -> str | None:
    """The schema asked for as JSON text, None for prose.

    Raises:
        InvalidRequest: It is not Unicode text.
    """
    match text.format if text is not None else None:
        case JsonObjectFormat():
            return ANY_OBJECT
        case SchemaFormat(json_schema=schema):
            return schema_text(schema, param=SCHEMA_FIELDS["responses"])
        case _:
            return None
