"""Routes of conversations."""

from fastapi import APIRouter

from app.api.dependencies import Cursor, HistoryDep, Limit, PrincipalDep
from app.api.documents import checked_metadata
from app.api.schemas.conversations import (
    ConversationBody,
    ConversationDeletedBody,
    ConversationPatch,
    NewConversation,
    WholeConversationBody,
)
from app.api.schemas.shape import Page, problems
from app.db.values import KEEP

router = APIRouter(tags=["conversations"])


@router.post("/v1/conversations", status_code=201, summary="Create a conversation", responses=problems(422, 503))
def create_conversation(
    history: HistoryDep, principal: PrincipalDep, body: NewConversation | None = None
) -> ConversationBody:
    """Pass its id to `/v1/ask` as `conversation_id`, so that follow-up questions are understood from earlier turns."""
    new = body or NewConversation()
    metadata = checked_metadata(new.metadata)
    return ConversationBody.of(history.conversations.create(principal, title=new.title, metadata=metadata))


@router.get("/v1/conversations", summary="List conversations", responses=problems(422, 503))
def list_conversations(
    history: HistoryDep, principal: PrincipalDep, limit: Limit = 50, cursor: Cursor = None
) -> Page[ConversationBody]:
    """The caller's conversations, newest first; for administrators those of all users."""
    found, next_cursor = history.conversations.list(principal, limit=limit, cursor=cursor)
    bodies = [ConversationBody.of(item) for item in found]
    return Page(data=bodies, has_more=next_cursor is not None, next_cursor=next_cursor)


@router.get("/v1/conversations/{conversation_id}", summary="Read a conversation", responses=problems(404, 503))
def read_conversation(conversation_id: str, history: HistoryDep, principal: PrincipalDep) -> WholeConversationBody:
    """A conversation of the caller, or one shared with the caller, with its questions and answers."""
    found = history.conversations.get(conversation_id, principal=principal)
    turns = history.conversations.turns(conversation_id, principal=principal)
    feedback = history.feedback.of_conversation(conversation_id, principal=principal)
    return WholeConversationBody.with_turns(found, turns, feedback)


@router.patch("/v1/conversations/{conversation_id}", summary="Change a conversation", responses=problems(404, 422, 503))
def patch_conversation(
    conversation_id: str, body: ConversationPatch, history: HistoryDep, principal: PrincipalDep
) -> ConversationBody:
    """Change title or metadata, or share it: all users of the tenant who have its id may then read it."""
    changed = history.conversations.update(
        conversation_id,
        principal=principal,
        title=body.title if body.title is not None else KEEP,
        metadata=checked_metadata(body.metadata) if body.metadata is not None else KEEP,
        shared=body.shared if body.shared is not None else KEEP,
    )
    return ConversationBody.of(changed)


@router.delete("/v1/conversations/{conversation_id}", summary="Delete a conversation", responses=problems(404, 503))
def delete_conversation(conversation_id: str, history: HistoryDep, principal: PrincipalDep) -> ConversationDeletedBody:
    """Delete it for good with its turns and their feedback. A running answer is not stored."""
    history.conversations.delete(conversation_id, principal=principal)
    return ConversationDeletedBody(id=conversation_id)
