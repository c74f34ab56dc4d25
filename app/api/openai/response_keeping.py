"""Keeps a response and its input: with the turn of a conversation, or as the first turn of one of its own."""

import json
from dataclasses import dataclass
from typing import Any

import anyio

from app.answering.answers.answer import Answer
from app.answering.conversations.conversations import turn_of
from app.answering.question import Question
from app.api.openai.schemas.response_input import InputMessage
from app.api.openai.schemas.responses import ResponseRequest
from app.db.stored_responses import StoredResponseRepository
from app.db.values import require_text
from app.errors import StorageFull, StoreUnavailable
from app.server.state import History
from app.telemetry.logs import logger
from app.types import Principal

RESPONSE, INPUT = "response", "input"
"""The members of what is stored: the response as it was returned, and its input items."""


def conversation_of(request: ResponseRequest, history: History, principal: Principal, *, text: str) -> str | None:
    """The id of the conversation that a response continues; None where it continues none.

    Raises:
        Conflict: The previous response was continued already, or the user has no room for another conversation.
        InvalidRequest: The question has characters that cannot be stored.
        NotFound: There is no such response or conversation for this caller.
    """
    if not request.keeps:
        return None
    require_text(text, param="input")
    if request.previous_response_id is not None:
        return history.responses.conversation_after(request.previous_response_id, principal=principal)
    if request.conversation_id is None:
        history.conversations.require_room(principal)
    return request.conversation_id


@dataclass(frozen=True, slots=True)
class ResponseKeeping:
    """Stores the response to one request, if it is to be stored.

    Attributes:
        request: The request.
        question: The question in it; the turn of one in a conversation is stored by the answer itself.
        responses: Has the stored responses.
    """

    request: ResponseRequest
    question: Question
    responses: StoredResponseRepository

    async def kept(self, answer: Answer, response: dict[str, Any]) -> dict[str, Any]:
        """The response, with `store` false where it was to be stored and is not: it is not whole, or storing failed."""
        if not self.request.keeps:
            return response
        stored = answer.whole and await anyio.to_thread.run_sync(self._store, answer, response)
        return {**response, "store": stored}

    def _store(self, answer: Answer, response: dict[str, Any]) -> bool:
        text = json.dumps({RESPONSE: response, INPUT: input_items(self.request, str(response["id"]))})
        try:
            if self.question.conversation_id is not None:
                return self.responses.note(self.question.request_id, text)
            self.responses.begin(self.question.principal, turn_of(self.question, answer), text)
        except (StoreUnavailable, StorageFull) as error:
            logger().warning("response.not_stored", request_id=self.question.request_id, error=type(error).__name__)
            return False
        return True


def input_items(request: ResponseRequest, response_id: str) -> list[dict[str, Any]]:
    """The items of the input as OpenAI lists them, each message with an id and its content in parts."""
    items = [InputMessage(role="user", content=request.input)] if isinstance(request.input, str) else request.input
    return [_item(item, f"in_{response_id.partition('_')[2]}_{place}") for place, item in enumerate(items)]


def _item(item: Any, item_id: str) -> dict[str, Any]:
    sent: dict[str, Any] = item.model_dump(exclude_none=True)
    if isinstance(content := sent.get("content"), str):
        kind = "output_text" if sent["role"] == "assistant" else "input_text"
        sent["content"] = [{"type": kind, "text": content}]
    return {"id": item_id, "status": "completed", **sent}
