"""OpenAI's protocol: chat completions."""

import time
from dataclasses import replace

import anyio
from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, Response

from app.answering.answers.answer import Answer
from app.answering.formats.answer_formats import ANY_OBJECT, schema_text
from app.answering.question import Question
from app.api.dependencies import (
    AnswerDeadline,
    CorpusDep,
    ModelsDep,
    PrincipalDep,
    RequestId,
    ServingDep,
    SettingsDep,
)
from app.api.errors import failure_of
from app.api.event_stream import EventStream, event_stream, unless_disconnected, with_terminal_error
from app.api.openai.asking import Asked, refuse_logprobs_in_strict
from app.api.openai.chat_choices import choice_of
from app.api.openai.chat_stream import ChatStream
from app.api.openai.choices import Several, open_choices
from app.api.openai.models import chat_scope, fingerprint
from app.api.openai.schemas.chat import (
    ChatCompletionBody,
    ChatCompletionRequest,
    JsonObjectFormat,
    JsonSchemaFormat,
    TextFormat,
)
from app.api.schemas.shape import problems
from app.api.schemas.token_usage import UsageBody
from app.server.state import DocumentsState
from app.settings import Settings
from app.types import Principal

router = APIRouter(tags=["openai"])


@router.post(
    "/v1/chat/completions",
    response_model=ChatCompletionBody,
    summary="Chat with your documents, in OpenAI's protocol",
    responses={
        200: {
            "description": "A completion; with `stream: true` OpenAI's chunks, annotations in the last delta.",
            "content": event_stream(),
        },
        **problems(400, 404, 422, 429, 503, 504),
    },
)
async def create_chat_completion(
    body: ChatCompletionRequest,
    request: Request,
    corpus: CorpusDep,
    serving: ServingDep,
    settings: SettingsDep,
    models: ModelsDep,
    principal: PrincipalDep,
    request_id: RequestId,
    deadline: AnswerDeadline,
) -> Response:
    """The last user message is the question; earlier turns are history; usage counts all of it."""
    answerer = models.answerer
    asked = await anyio.to_thread.run_sync(_question, body, corpus, settings, principal, request_id)
    question = replace(asked, deadline=deadline)
    if question.sampling.logprobs is not None:
        await anyio.to_thread.run_sync(models.tokenizer.piece, 0)  # the first time it spells the whole vocabulary

    async def opened() -> Several:
        return await open_choices(answerer, question, n=body.n or 1)

    if body.stream:
        choices = await unless_disconnected(request, opened)
        chat = ChatStream(
            choices,
            model=body.model,
            fingerprint=fingerprint(serving, models),
            tokenizer=models.tokenizer,
            options=body.stream_options,
        )
        whole_stream = with_terminal_error(chat.events(), request, request_id, render=chat.error_event)
        return EventStream(whole_stream, on_close=choices.close)

    async def whole() -> tuple[Several, tuple[Answer, ...]]:
        choices = await opened()
        return choices, await choices.whole()

    choices, answers = await unless_disconnected(request, whole)
    for answer in answers:
        if (failure := failure_of(answer)) is not None:
            raise failure
    in_json = question.json_schema is not None
    usage = await choices.usage(answers)
    completion = ChatCompletionBody(
        id=request_id,
        created=int(time.time()),
        model=body.model,
        system_fingerprint=fingerprint(serving, models),
        choices=[
            choice_of(answer, index=index, in_json=in_json, tokenizer=models.tokenizer)
            for index, answer in enumerate(answers)
        ],
        usage=UsageBody.of(usage).model_dump(),
    )
    return JSONResponse(completion.model_dump())


def _question(
    body: ChatCompletionRequest, corpus: DocumentsState, settings: Settings, principal: Principal, request_id: str
) -> Question:
    options = body.footnote
    asked = Asked.of(((message.role, message.text) for message in body.messages), param="messages")
    refuse_logprobs_in_strict(wanted=bool(body.logprobs), strict=settings.strict, param="logprobs")
    schema = _json_schema(body.response_format)
    question = Question(
        request_id=request_id,
        endpoint="chat.completions",
        principal=principal,
        text=asked.text,
        scope=chat_scope(body.model, options, corpus, principal),
        top_k=options.top_k,
        max_context_tokens=options.max_context_tokens,
        max_output_tokens=body.max_completion_tokens or body.max_tokens,
        sampling=body.sampling_params(),
        strict=settings.strict,
        format="markdown" if schema is None else "json",
        json_schema=schema,
    )
    return asked.in_question(question)


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
