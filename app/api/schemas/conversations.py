"""Bodies of conversations."""

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import Field

from app.answering.conversations import AnswerRecord
from app.api.schemas.answers import AbstentionBody, BudgetBody, SourcesBody, SpanBody
from app.api.schemas.feedback import OwnFeedbackBody
from app.api.schemas.shape import Metadata, RequestBody, ResponseBody, rfc3339
from app.api.schemas.token_usage import UsageBody
from app.db.feedback import Feedback
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


class ConversationPatch(RequestBody):
    """What to change of a conversation; null or left out stays as it is."""

    title: str | None = Field(default=None, min_length=1, max_length=200, description="Its name.")
    metadata: Metadata | None = Field(default=None, description="Replaces its metadata.", examples=[{"team": "a"}])
    shared: bool | None = Field(
        default=None,
        description="Whether everybody of the tenant who has its id may read it. A key that is limited to "
        "collections may not, and nobody else may go on with it.",
        examples=[True],
    )


class ConversationBody(ResponseBody):
    """A conversation."""

    id: str = Field(description="The conversation's id; pass it to /v1/ask.", examples=["conv_01k9"])
    object: Literal["conversation"] = Field(default="conversation", description="Always `conversation`.")
    title: str | None = Field(description="Its name; null while it has neither a title nor a turn.")
    metadata: Metadata = Field(description="Your own fields.")
    user_id: str = Field(description="Whose it is.", examples=["user_1"])
    turns: int = Field(description="Questions answered in it.", examples=[3])
    shared: bool = Field(description="Whether everybody of the tenant who has its id may read it.", examples=[False])
    created_at: str = Field(description="RFC 3339 UTC.", examples=["2026-11-21T10:00:00.000Z"])
    updated_at: str = Field(
        description="When its last turn ended; RFC 3339 UTC.", examples=["2026-11-21T10:00:03.000Z"]
    )

    @classmethod
    def of(cls, conversation: Conversation) -> "ConversationBody":
        """The body for a conversation."""
        return cls(**_fields(conversation))


class MakingBody(ResponseBody):
    """How an answer was made: the fields of these names that it had when it ended."""

    model: str = Field(description="The generator.", examples=["SmolLM2-135M-Instruct"])
    reason: str | None = Field(description="Why `answered` is false; null where it is true.", examples=[None])
    finish_reason: str = Field(description="stop or length.", examples=["stop"])
    uncited_spans: list[SpanBody] = Field(description="Sentences of the answer without a supporting source.")
    quoted_spans: list[SpanBody] = Field(
        description="What is quoted from the documents, word for word, and no model wrote: all of an answer without a "
        "language model, or what follows one of which nothing could be verified."
    )
    abstention: AbstentionBody = Field(description="Where answering was given up, as data.")
    sources: SourcesBody = Field(description="From retrieval to citation.")
    usage: UsageBody = Field(
        description="The bill as it was told then; the ledger has what it is after a price was put right."
    )
    budget: BudgetBody = Field(description="The context window.")
    timings_ms: dict[str, float | None] = Field(
        description="Milliseconds: queue, retrieve, rerank, first_token, total."
    )

    @classmethod
    def of(cls, making: AnswerRecord) -> "MakingBody":
        """The body for how an answer was made."""
        return cls(
            model=making.model,
            reason=making.reason,
            finish_reason=making.finish_reason,
            uncited_spans=[SpanBody.of(span) for span in making.uncited],
            quoted_spans=[SpanBody.of(span) for span in making.quoted],
            abstention=AbstentionBody.of(making.abstention),
            sources=SourcesBody.of(making.sources),
            usage=UsageBody.of(making.usage),
            budget=BudgetBody.of(making.budget),
            timings_ms=dict(making.timings_ms),
        )


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
    making: MakingBody | None = Field(
        description="How the answer was made; null where it was given before that was kept."
    )
    feedback: OwnFeedbackBody | None = Field(description="What the caller said of the answer; null where nothing.")
    created_at: str = Field(description="When it ended; RFC 3339 UTC.", examples=["2026-11-21T10:00:03.000Z"])

    @classmethod
    def of(cls, turn: KeptTurn, feedback: Feedback | None) -> "TurnBody":
        """The body for a turn and what the caller said of it."""
        return cls(
            ordinal=turn.ordinal,
            request_id=turn.request_id,
            question=turn.question,
            standalone_question=turn.standalone,
            answered=turn.answered,
            answer=turn.answer,
            citations=[dict(citation) for citation in turn.citations],
            making=None if turn.making is None else MakingBody.of(AnswerRecord.from_json(turn.making)),
            feedback=OwnFeedbackBody.said(feedback),
            created_at=rfc3339(turn.created_at),
        )


class WholeConversationBody(ConversationBody):
    """A conversation with its turns."""

    data: list[TurnBody] = Field(description="Its turns, oldest first.")

    @classmethod
    def with_turns(
        cls, conversation: Conversation, turns: tuple[KeptTurn, ...], feedback: Mapping[str, Feedback]
    ) -> "WholeConversationBody":
        """The body for a conversation, its turns, as they were at one moment, and the caller's feedback by request."""
        fields = {**_fields(conversation), "turns": len(turns)}
        return cls(**fields, data=[TurnBody.of(turn, feedback.get(turn.request_id)) for turn in turns])


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
        "shared": conversation.shared,
        "created_at": rfc3339(conversation.created_at),
        "updated_at": rfc3339(conversation.updated_at),
    }
