"""Bodies of conversations."""

from typing import Any, Literal

from pydantic import Field

from app.api.schemas.shape import Metadata, RequestBody, ResponseBody, rfc3339
from app.types import Conversation, KeptTurn


class NewConversation(RequestBody):
    """A conversation to begin."""

    title: str | None = Field(
        default=None,
        min_length=1,
        max_length=200,
        description="Its name; by default the beginning of the first question.",
        examples=["The annual report"],
    )
    metadata: Metadata = Field(default_factory=dict, description="Your own fields.")


class ConversationBody(ResponseBody):
    """A conversation."""

    id: str = Field(description="The conversation's id; pass it to /v1/ask.", examples=["conv_01k9"])
    object: Literal["conversation"] = Field(default="conversation", description="Always `conversation`.")
    title: str | None = Field(description="Its name; null while it has neither a title nor a turn.")
    metadata: Metadata = Field(description="Your own fields.")
    user_id: str = Field(description="Whose it is.", examples=["user_1"])
    turns: int = Field(description="Questions answered in it.", examples=[3])
    created_at: str = Field(description="RFC 3339 UTC.", examples=["2026-11-21T10:00:00.000Z"])
    updated_at: str = Field(
        description="When its last turn ended; RFC 3339 UTC.", examples=["2026-11-21T10:00:03.000Z"]
    )

    @classmethod
    def of(cls, conversation: Conversation) -> "ConversationBody":
        """The body for a conversation."""
        return cls(**_fields(conversation))


class TurnBody(ResponseBody):
    """A question and its answer."""

    ordinal: int = Field(description="Its place in the conversation, from 1.", examples=[1])
    request_id: str = Field(description="The request that asked; the ledger knows it.", examples=["req_01k9"])
    question: str = Field(description="As it was asked.", examples=["And in 2024?"])
    standalone_question: str | None = Field(
        description="As it was understood and searched for; null where it stood alone as it was asked.",
        examples=["How did revenue develop in 2024?"],
    )
    answered: bool = Field(description="False where the documents did not hold an answer.")
    answer: str = Field(description="The answer, with markers.", examples=["Revenue rose 12% [1]."])
    citations: list[dict[str, Any]] = Field(description="Its footnotes, with the fields they had in the answer.")
    created_at: str = Field(description="When it ended; RFC 3339 UTC.", examples=["2026-11-21T10:00:03.000Z"])

    @classmethod
    def of(cls, turn: KeptTurn) -> "TurnBody":
        """The body for a turn."""
        return cls(
            ordinal=turn.ordinal,
            request_id=turn.request_id,
            question=turn.question,
            standalone_question=turn.standalone,
            answered=turn.answered,
            answer=turn.answer,
            citations=[dict(citation) for citation in turn.citations],
            created_at=rfc3339(turn.created_at),
        )


class WholeConversationBody(ConversationBody):
    """A conversation with its turns."""

    data: list[TurnBody] = Field(description="Its turns, oldest first.")

    @classmethod
    def with_turns(cls, conversation: Conversation, turns: tuple[KeptTurn, ...]) -> "WholeConversationBody":
        """The body for a conversation and its turns, as they were at one moment."""
        fields = {**_fields(conversation), "turns": len(turns)}
        return cls(**fields, data=[TurnBody.of(turn) for turn in turns])


class ConversationDeletedBody(ResponseBody):
    """A conversation is gone, with its turns; that is final when you read this."""

    id: str = Field(description="The conversation's id.", examples=["conv_01k9"])
    deleted: Literal[True] = Field(default=True, description="Always true.")


def _fields(conversation: Conversation) -> dict[str, Any]:
    return {
        "id": conversation.id,
        "title": conversation.title,
        "metadata": dict(conversation.metadata),
        "user_id": conversation.user_id,
        "turns": conversation.turns,
        "created_at": rfc3339(conversation.created_at),
        "updated_at": rfc3339(conversation.updated_at),
    }
