"""OpenAI's protocol: chat completions and models."""

import json
import time
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import replace
from typing import Any

import anyio
from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, Response

from app.answer import Answer, TextDelta
from app.answering import Answerer, prepare
from app.api.dependencies import AnswerDeadline, ModelsDep, PrincipalDep, RequestId, StateDep, scope_for
from app.api.errors import failure_of, openai_error
from app.api.event_stream import EventStream, sse, unless_disconnected, with_terminal_error
from app.api.schemas.answers import CitationBody
from app.api.schemas.chat import (
    ChatCompletionBody,
    ChatCompletionRequest,
    JsonObjectFormat,
    JsonSchemaFormat,
    ModelBody,
    ModelList,
    TextFormat,
)
from app.api.schemas.shape import problems
from app.api.schemas.token_usage import UsageBody
from app.errors import InvalidRequest, NotFound
from app.followup import exchanges_of, stand_alone
from app.footnote import Citation
from app.formats import ANY_OBJECT, schema_text
from app.prepared import Prepared
from app.prompt import Message
from app.question import Question
from app.state import Models, State
from app.types import Principal

router = APIRouter(tags=["openai"])

_NAME = "footnote"
_REFUSALS = frozenset({"no_evidence", "not_in_sources"})


@router.post(
    "/v1/chat/completions",
    response_model=ChatCompletionBody,
    summary="Chat with your documents, in OpenAI's protocol",
    responses={
        200: {
            "description": "A completion; with `stream: true` OpenAI's chunks, annotations in the last delta.",
            "content": {"text/event-stream": {"schema": {"type": "string"}}},
        },
        **problems(404, 422, 429, 503, 504),
    },
)
async def create_chat_completion(
    body: ChatCompletionRequest,
    request: Request,
    state: StateDep,
    models: ModelsDep,
    principal: PrincipalDep,
    request_id: RequestId,
    deadline: AnswerDeadline,
) -> Response:
    """The last user message is the question; earlier turns are history; usage counts all of it."""
    answerer = models.answerer
    asked = await anyio.to_thread.run_sync(_question, body, state, principal, request_id)
    question = replace(asked, deadline=deadline)
    if body.stream:
        prepared = await unless_disconnected(request, lambda: prepare(answerer, question))
        include_usage = body.stream_options is not None and body.stream_options.include_usage
        events = _chunks(answerer, prepared, model=body.model, include_usage=include_usage)
        whole_stream = with_terminal_error(events, request_id, render=_error_chunk)
        return EventStream(whole_stream, on_close=lambda: answerer.release(prepared))

    async def whole() -> Answer:
        return await answerer.answer(await prepare(answerer, question))

    answer = await unless_disconnected(request, whole)
    if (failure := failure_of(answer)) is not None:
        raise failure
    refused = question.json_schema is not None and answer.reason in _REFUSALS  # a sentence would be no JSON
    message = {
        "role": "assistant",
        "content": None if refused else answer.text,
        "refusal": answer.text if refused else None,
        "annotations": [_annotation(citation) for citation in answer.citations],
    }
    choice = {"index": 0, "message": message, "finish_reason": _finish_reason(answer), "logprobs": None}
    completion = ChatCompletionBody(
        id=answer.id,
        created=int(time.time()),
        model=body.model,
        choices=[choice],
        usage=UsageBody.of(answer.usage).model_dump(),
    )
    return JSONResponse(completion.model_dump())


@router.get("/v1/models", summary="Models that can be asked", responses=problems())
def list_models(state: StateDep, models: ModelsDep, principal: PrincipalDep) -> ModelList:
    """`footnote` asks every collection of the key, `footnote:NAME` one."""
    found = state.collections.list(principal.tenant_id, allowed=principal.collections)
    names = [_NAME, *(f"{_NAME}:{collection.name}" for collection in found)]
    return ModelList(data=[_model(name, state, models) for name in names])


@router.get("/v1/models/{model:path}", summary="One model", responses=problems(404))
def read_model(model: str, state: StateDep, models: ModelsDep, principal: PrincipalDep) -> ModelBody:
    """Whether a model can be asked, and what is behind it."""
    _collection_of(model, state, principal)
    return _model(model, state, models)


def _model(name: str, state: State, models: Models) -> ModelBody:
    info = models.engine.info
    return ModelBody(
        id=name,
        created=int(state.started_at),
        generator=info.model,
        embedder=models.embedder.info.model,
        context_window=info.context_window,
    )


def _collection_of(model: str, state: State, principal: Principal) -> str | None:
    """The collection a model name asks, None for all.

    Raises:
        NotFound: The model or its collection does not exist for this caller.
    """
    name, _, collection = model.partition(":")
    if name != _NAME or (":" in model and not collection):
        raise NotFound(f"There is no model '{model[:100]}'; ask 'footnote' or 'footnote:COLLECTION'.")
    if not collection:
        return None
    for found in state.collections.list(principal.tenant_id, allowed=principal.collections):
        if collection in {found.name, found.id}:
            return found.id
    raise NotFound("There is no such collection.")


def _question(body: ChatCompletionRequest, state: State, principal: Principal, request_id: str) -> Question:
    options = body.footnote
    collection_id = _collection_of(body.model, state, principal)
    instructions = "\n".join(message.text for message in body.messages if message.role in {"system", "developer"})
    turns = [message for message in body.messages if message.role in {"user", "assistant"}]
    if not turns or turns[-1].role != "user" or not turns[-1].text.strip():
        raise InvalidRequest("The last message must be the user's, and not empty.", param="messages")
    schema = _json_schema(body.response_format)
    history = tuple(Message(turn.role, turn.text) for turn in turns[:-1])
    stop = (body.stop,) if isinstance(body.stop, str) else tuple(body.stop or ())
    question = Question(
        request_id=request_id,
        endpoint="chat.completions",
        principal=principal,
        text=turns[-1].text,
        scope=scope_for(
            state,
            principal,
            collection_ids=[collection_id] if collection_id is not None else options.collection_ids,
            document_ids=options.document_ids,
            raw_filter=options.filter,
        ),
        top_k=options.top_k,
        max_context_tokens=options.max_context_tokens,
        max_output_tokens=body.max_completion_tokens or body.max_tokens,
        temperature=body.temperature if body.temperature is not None else 0.0,
        top_p=body.top_p if body.top_p is not None else 1.0,
        seed=body.seed,
        stop=tuple(text for text in stop if text),
        history=history,
        instructions=instructions,
        strict=state.settings.strict,
        format="markdown" if schema is None else "json",
        json_schema=schema,
    )
    return question.standing_alone(stand_alone(question.text, exchanges_of(history)))


def _json_schema(form: TextFormat | JsonObjectFormat | JsonSchemaFormat | None) -> str | None:
    """The schema asked for as JSON text, None for prose.

    Raises:
        InvalidRequest: It is not Unicode text.
    """
    match form:
        case JsonObjectFormat():
            return ANY_OBJECT
        case JsonSchemaFormat(json_schema=named):
            return schema_text(named.json_schema, param="response_format")
        case _:
            return None


async def _chunks(
    answerer: Answerer, prepared: Prepared, *, model: str, include_usage: bool
) -> AsyncGenerator[bytes, None]:
    created = int(time.time())

    def chunk(delta: dict[str, Any], *, finish: str | None = None) -> bytes:
        choice = {"index": 0, "delta": delta, "finish_reason": finish, "logprobs": None}
        return rendered([choice], usage=None)

    def rendered(choices: list[dict[str, Any]], *, usage: dict[str, Any] | None) -> bytes:
        body: dict[str, Any] = {
            "id": prepared.question.request_id,
            "object": "chat.completion.chunk",
            "created": created,
            "model": model,
            "choices": choices,
        }
        if include_usage:
            body["usage"] = usage
        return sse(None, json.dumps(body, ensure_ascii=False))

    refused = prepared.question.json_schema is not None and not (prepared.generates or prepared.quotes)
    yield chunk({"role": "assistant", "content": None if refused else ""})
    async with aclosing(answerer.stream(prepared)) as stream:
        async for event in stream:
            if isinstance(event, TextDelta):
                yield chunk({"refusal" if refused else "content": event.text})
            elif isinstance(event, Answer):
                if (failure := failure_of(event)) is not None:
                    if include_usage:
                        yield rendered([], usage=UsageBody.of(event.usage).model_dump())
                    raise failure
                annotations = [_annotation(citation) for citation in event.citations]
                yield chunk({"annotations": annotations}, finish=_finish_reason(event))
                if include_usage:
                    yield rendered([], usage=UsageBody.of(event.usage).model_dump())
                yield sse(None, "[DONE]")


def _annotation(citation: Citation) -> dict[str, object]:
    """OpenAI's file citation: `index` is the character the marker ends at; our own fields follow."""
    fields = CitationBody.of(citation).model_dump()
    return {
        "type": "file_citation",
        "file_id": citation.document_id,
        **fields,
        "index": citation.answer_end,
        "number": citation.index,
    }


def _finish_reason(answer: Answer) -> str:
    """OpenAI knows stop and length; a cancelled answer has no reader left to tell."""
    return "length" if answer.finish_reason == "length" else "stop"


def _error_chunk(body: dict[str, object]) -> bytes:
    return sse(None, json.dumps({"error": openai_error(body)}))
