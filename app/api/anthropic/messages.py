"""Anthropic's protocol: messages, whose citations name the exact characters of a document."""

from dataclasses import dataclass, replace

import anyio
from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, Response

from app.answering.answerer import Answerer
from app.answering.question import Question
from app.api.anthropic.content_blocks import BlockPiece
from app.api.anthropic.message_stream import (
    EVENTS,
    DocumentNumbers,
    MessageStream,
    MessageWriter,
    Numbers,
    message_of,
)
from app.api.anthropic.schemas import MessageBody, MessageRequest
from app.api.anthropic.sent_documents import SentDocuments, SentNumbers
from app.api.dependencies import (
    AnswerDeadline,
    CorpusDep,
    ModelsDep,
    PrincipalDep,
    RequestId,
    SettingsDep,
)
from app.api.event_stream import EventStream, event_stream, unless_disconnected, with_terminal_error
from app.api.gate.idempotency import UNKEPT
from app.api.openai.asking import Asked
from app.api.openai.choices import Several, open_choices
from app.api.openai.models import chat_scope, collection_of
from app.api.schemas.shape import problems
from app.errors import UnsupportedParameter
from app.server.serving import Models
from app.server.state import DocumentsState
from app.settings import Settings
from app.types import Principal
from retrieval.types import Scope

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
        **problems(400, 404, 413, 422, 429, 503, 504),
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

    Documents in the messages are read for this request alone: it is answered from them, and nothing of them is stored.
    The key is sent as `x-api-key`, as Anthropic's clients do, or as a bearer key.
    """
    asked = await anyio.to_thread.run_sync(_asked, body, corpus, settings, models, principal, request_id)
    question = replace(asked.question, deadline=deadline)
    if asked.documents.sources == "sent":
        request.scope["state"][UNKEPT] = True

    async def opened() -> Several:
        return await open_choices(asked.answerer, question, n=1)

    if body.stream:
        choices = await unless_disconnected(request, opened)
        message = MessageStream(choices, model=body.model, documents=asked.documents)
        whole_stream = with_terminal_error(message.events(), request, request_id, render=message.error_event)
        return EventStream(whole_stream, on_close=choices.close)

    async def whole() -> MessageBody:
        choices, writer = await opened(), MessageWriter(asked.documents)
        pieces: list[BlockPiece] = []
        async for _, event in choices.stream():
            pieces += writer.pieces(event)
        assert writer.answer is not None, "an answer's events end with the answer"
        return message_of(writer, pieces, await choices.usage([writer.answer]), model=body.model)

    return JSONResponse((await unless_disconnected(request, whole)).model_dump())


@dataclass(frozen=True, slots=True)
class _Asked:
    """A question, what answers it, and what numbers the documents of its answer."""

    question: Question
    answerer: Answerer
    documents: Numbers


def _asked(
    body: MessageRequest,
    corpus: DocumentsState,
    settings: Settings,
    models: Models,
    principal: Principal,
    request_id: str,
) -> _Asked:
    """The question of a request, which is asked of the documents that are sent in it, if there are any. Blocks."""
    sent = SentDocuments.of(body.messages)
    if sent is None:
        scope = chat_scope(body.model, body.footnote, corpus, principal)
        return _Asked(_question(body, settings, principal, request_id, scope), models.answerer, DocumentNumbers())
    _refuse_stored(body)
    collection_of(body.model, corpus, principal)
    library = models.inline.read(sent.documents, tenant_id=principal.tenant_id)
    question = _question(body, settings, principal, request_id, library.scope)
    instructions = "\n".join(filter(None, (question.instructions, sent.context)))
    return _Asked(
        replace(question, instructions=instructions),
        models.inline.over(library),
        SentNumbers(library, cites=sent.cites),
    )


def _refuse_stored(body: MessageRequest) -> None:
    """Refuse the fields that choose among stored documents, beside documents that are sent.

    Raises:
        UnsupportedParameter: One is there; `param` names it.
    """
    chosen = {
        "model": ":" in body.model,
        "footnote.collection_ids": body.footnote.collection_ids is not None,
        "footnote.document_ids": body.footnote.document_ids is not None,
        "footnote.filter": body.footnote.filter is not None,
    }
    for field, given in chosen.items():
        if given:
            raise UnsupportedParameter(
                f"'{field}' chooses among stored documents; documents that are sent are answered from alone.",
                param=field,
            )


def _question(
    body: MessageRequest, settings: Settings, principal: Principal, request_id: str, scope: Scope
) -> Question:
    options = body.footnote
    asked = Asked.of(((turn.role, turn.text) for turn in body.messages), param="messages")
    sampling = replace(body.sampling_params(), top_k=body.top_k or 0, stop=tuple(body.stop_sequences or ()))
    question = Question(
        request_id=request_id,
        endpoint="messages",
        principal=principal,
        text=asked.text,
        scope=scope,
        top_k=options.top_k,
        max_context_tokens=options.max_context_tokens,
        max_output_tokens=body.max_tokens,
        sampling=sampling,
        strict=settings.strict,
        format="markdown",
    )
    return replace(asked, instructions=body.instructions).in_question(question)
