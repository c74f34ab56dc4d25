"""Anthropic's protocol: messages, whose citations name the exact characters of a document."""

from dataclasses import replace

import anyio
from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, Response

from app.answering.question import Question
from app.api.anthropic.content_blocks import BlockPiece
from app.api.anthropic.message_stream import EVENTS, MessageStream, MessageWriter, message_of
from app.api.anthropic.schemas import MessageBody, MessageRequest
from app.api.dependencies import (
    AnswerDeadline,
    CorpusDep,
    ModelsDep,
    PrincipalDep,
    RequestId,
    SettingsDep,
)
from app.api.event_stream import EventStream, event_stream, unless_disconnected, with_terminal_error
from app.api.openai.asking import Asked
from app.api.openai.choices import Several, open_choices
from app.api.openai.models import chat_scope
from app.api.schemas.shape import problems
from app.server.state import DocumentsState
from app.settings import Settings
from app.types import Principal

router = APIRouter(tags=["anthropic"])


@router.post(
    "/v1/messages",
    response_model=MessageBody,
    summary="Chat with your documents, in Anthropic's protocol",
    responses={
        200: {
            "description": "A message; with `stream: true` Anthropic's events, citations behind the text of a block.",
            "content": event_stream(*EVENTS),
        },
        **problems(400, 404, 422, 429, 503, 504),
    },
)
async def create_message(
    body: MessageRequest,
    request: Request,
    corpus: CorpusDep,
    settings: SettingsDep,
    models: ModelsDep,
    principal: PrincipalDep,
    request_id: RequestId,
    deadline: AnswerDeadline,
) -> Response:
    """The last user message is the question; earlier turns are history; usage counts all of it.

    The key is sent as `x-api-key`, as Anthropic's clients do, or as a bearer key.
    """
    asked = await anyio.to_thread.run_sync(_question, body, corpus, settings, principal, request_id)
    question = replace(asked, deadline=deadline)

    async def opened() -> Several:
        return await open_choices(models.answerer, question, n=1)

    if body.stream:
        choices = await unless_disconnected(request, opened)
        message = MessageStream(choices, model=body.model)
        whole_stream = with_terminal_error(message.events(), request, request_id, render=message.error_event)
        return EventStream(whole_stream, on_close=choices.close)

    async def whole() -> MessageBody:
        choices, writer = await opened(), MessageWriter()
        pieces: list[BlockPiece] = []
        async for _, event in choices.stream():
            pieces += writer.pieces(event)
        assert writer.answer is not None, "an answer's events end with the answer"
        return message_of(writer, pieces, await choices.usage([writer.answer]), model=body.model)

    return JSONResponse((await unless_disconnected(request, whole)).model_dump())


def _question(
    body: MessageRequest, corpus: DocumentsState, settings: Settings, principal: Principal, request_id: str
) -> Question:
    options = body.footnote
    asked = Asked.of(((turn.role, turn.text) for turn in body.messages), param="messages")
    sampling = replace(body.sampling_params(), top_k=body.top_k or 0, stop=tuple(body.stop_sequences or ()))
    question = Question(
        request_id=request_id,
        endpoint="messages",
        principal=principal,
        text=asked.text,
        scope=chat_scope(body.model, options, corpus, principal),
        top_k=options.top_k,
        max_context_tokens=options.max_context_tokens,
        max_output_tokens=body.max_tokens,
        sampling=sampling,
        strict=settings.strict,
        format="markdown",
    )
    return replace(asked, instructions=body.instructions).in_question(question)
