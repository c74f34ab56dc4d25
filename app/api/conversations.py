"""Routes of conversations."""

from collections.abc import Sequence
from typing import Annotated

from fastapi import APIRouter, HTTPException, Query, Request
from fastapi.responses import PlainTextResponse

from app.api.conversation_markdown import accepts_markdown, conversation_markdown
from app.api.dependencies import Cursor, HistoryDep, Limit, PrincipalDep
from app.api.documents import checked_metadata
from app.api.schemas.bounds import Id
from app.api.schemas.conversations import (
    ConversationBody,
    ConversationDeletedBody,
    ConversationPatch,
    NewConversation,
    WholeConversationBody,
)
from app.api.schemas.kept_citations import Places
from app.api.schemas.shape import Page, problems
from app.db.conversations import Owner
from app.db.values import KEEP
from app.server.state import History
from app.types import Conversation, KeptTurn

router = APIRouter(tags=["conversations"])


@router.post("/v1/conversations", status_code=201, summary="Create a conversation", responses=problems(409, 422, 503))
def create_conversation(
    history: HistoryDep, principal: PrincipalDep, body: NewConversation | None = None
) -> ConversationBody:
    """Pass its id to `/v1/ask` as `conversation_id`, so that follow-up questions are understood from earlier turns.

    A user may have 10,000 conversations; above that it is a 409.
    """
    new = body or NewConversation()
    metadata = checked_metadata(new.metadata)
    return ConversationBody.of(history.conversations.create(principal, title=new.title, metadata=metadata))


@router.get("/v1/conversations", summary="List conversations", responses=problems(422, 503))
def list_conversations(
    history: HistoryDep,
    principal: PrincipalDep,
    owner: Annotated[Owner, Query(description="Only the caller's own (`me`), or only those of `others`.")] = "anybody",
    q: Annotated[
        str | None,
        Query(max_length=200, description="Only conversations whose title, questions or answers contain this."),
    ] = None,
    limit: Limit = 50,
    cursor: Cursor = None,
) -> Page[ConversationBody]:
    """The caller's conversations, pinned ones first, then the newest; for administrators those of all users.

    Conversations that others share are in no list.
    """
    if q is not None and q.strip():
        hits, next_cursor = history.conversations.search(principal, q.strip(), limit=limit, cursor=cursor, owner=owner)
        bodies = [ConversationBody.of(item, hit) for item, hit in hits]
    else:
        found, next_cursor = history.conversations.list(principal, limit=limit, cursor=cursor, owner=owner)
        bodies = [ConversationBody.of(item) for item in found]
    return Page(data=bodies, has_more=next_cursor is not None, next_cursor=next_cursor)


@router.get("/v1/conversations/{conversation_id}", summary="Read a conversation", responses=problems(404, 503))
def read_conversation(conversation_id: Id, history: HistoryDep, principal: PrincipalDep) -> WholeConversationBody:
    """A conversation of the caller, or one shared with the caller, with its questions and answers."""
    found = history.conversations.get(conversation_id, principal=principal)
    turns = history.conversations.turns(conversation_id, principal=principal)
    feedback = history.feedback.of_conversation(conversation_id, principal=principal)
    deleted = history.conversations.deleted_documents(turns, tenant_id=found.tenant_id)
    return WholeConversationBody.with_turns(
        found,
        turns,
        feedback,
        history.asked.interrupted(conversation_id),
        places=_places(history, found, turns),
        deleted_documents=deleted,
    )


@router.get(
    "/v1/conversations/{conversation_id}/export",
    summary="Export a conversation",
    response_class=PlainTextResponse,
    responses={
        200: {
            "description": "The conversation as a Markdown file.",
            "content": {"text/markdown": {"schema": {"type": "string"}}},
        },
        **problems(404, 406, 503),
    },
)
def export_conversation(
    conversation_id: Id, request: Request, history: HistoryDep, principal: PrincipalDep
) -> PlainTextResponse:
    """Questions and answers as Markdown, with each footnote's document, page and exact words in an appendix.

    The appendix says which passages have moved, were altered, with both wordings, or are gone since.

    Another format is a 406: for a PDF, the page prints the conversation.
    """
    if not accepts_markdown(request.headers.get("accept", "")):
        raise HTTPException(406, "A conversation is exported as text/markdown only. The web page prints it as a PDF.")
    found = history.conversations.get(conversation_id, principal=principal)
    turns = history.conversations.turns(conversation_id, principal=principal)
    return PlainTextResponse(
        conversation_markdown(found, turns, _places(history, found, turns)),
        media_type="text/markdown",
        headers={"Content-Disposition": f'attachment; filename="{conversation_id}.md"'},
    )


@router.patch("/v1/conversations/{conversation_id}", summary="Change a conversation", responses=problems(404, 422, 503))
def patch_conversation(
    conversation_id: Id, body: ConversationPatch, history: HistoryDep, principal: PrincipalDep
) -> ConversationBody:
    """Change title or metadata, pin it, put it into a folder, or share it.

    All users of the tenant who have a shared one's id may read it.
    """
    changed = history.conversations.update(
        conversation_id,
        principal=principal,
        title=body.title if body.title is not None else KEEP,
        metadata=checked_metadata(body.metadata) if body.metadata is not None else KEEP,
        shared=body.shared if body.shared is not None else KEEP,
        pinned=body.pinned if body.pinned is not None else KEEP,
        folder=body.folder.strip() if body.folder is not None else KEEP,
    )
    return ConversationBody.of(changed)


@router.delete("/v1/conversations/{conversation_id}", summary="Delete a conversation", responses=problems(404, 503))
def delete_conversation(conversation_id: Id, history: HistoryDep, principal: PrincipalDep) -> ConversationDeletedBody:
    """Delete it for good with its turns and their feedback. A running answer is not stored."""
    history.conversations.delete(conversation_id, principal=principal)
    return ConversationDeletedBody(id=conversation_id)


def _places(history: History, conversation: Conversation, turns: Sequence[KeptTurn]) -> Places:
    """What became of the passages that turns cite."""
    citations = [citation for turn in turns for citation in turn.citations]
    return history.passages.of_citations(citations, tenant_id=conversation.tenant_id)
