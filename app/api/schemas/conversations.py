"""Bodies of conversations."""

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import Field

from app.answering.conversations import AnswerRecord
from app.api.schemas.answers import (
    ANSWERS,
    LEAD,
    QUOTED_SPANS,
    AbstentionBody,
    BudgetBody,
    QuotedSpanBody,
    SourcesBody,
    SpanBody,
)
from app.api.schemas.feedback import OwnFeedbackBody
from app.api.schemas.shape import Metadata, RequestBody, ResponseBody, rfc3339
from app.api.schemas.token_usage import UsageBody
from app.db.feedback import Feedback
from app.types import Conversation, KeptTurn


class NewConversation(RequestBody):
    """A conversation to create."""

    title: str | None = Field(
        default=None,
        min_length=1,
        max_length=200,
        description="Title; default: the beginning of the first question.",
        examples=["The annual report"],
    )
    metadata: Metadata = Field(default_factory=dict, description="Your own fields.")


class ConversationPatch(RequestBody):
    """Changes to a conversation; null and omitted fields stay."""

    title: str | None = Field(default=None, min_length=1, max_length=200, description="New title.")
    metadata: Metadata | None = Field(default=None, description="Replaces its metadata.", examples=[{"team": "a"}])
    shared: bool | None = Field(
        default=None,
        description="Share it with the tenant: all users who have its id may read it, but not continue it. Keys "
        "limited to collections may not read it.",
        examples=[True],
    )


class ConversationBody(ResponseBody):
    """A conversation."""

    id: str = Field(description="The conversation's id; pass it to /v1/ask.", examples=["conv_01k9"])
    object: Literal["conversation"] = Field(default="conversation", description="Always `conversation`.")
    title: str | None = Field(description="Title; null while it has neither a title nor a turn.")
    metadata: Metadata = Field(description="Your own fields.")
    user_id: str = Field(description="The user who owns it.", examples=["user_1"])
    turns: int = Field(description="Number of turns.", examples=[3])
    shared: bool = Field(description="Whether all users of the tenant who have its id may read it.", examples=[False])
    created_at: str = Field(description="RFC 3339 UTC.", examples=["2026-11-21T10:00:00.000Z"])
    updated_at: str = Field(
        description="When its last turn ended, RFC 3339 UTC.", examples=["2026-11-21T10:00:03.000Z"]
    )

    @classmethod
    def of(cls, conversation: Conversation) -> "ConversationBody":
        """The body for a conversation."""
        return cls(**_fields(conversation))


class MakingBody(ResponseBody):
    """How an answer was generated: fields of `AnswerBody` with their values at the time."""

    model: str = Field(description="The language model that generated the answer.", examples=["SmolLM2-135M-Instruct"])
    reason: str | None = Field(description="Why `answered` is false; null when it is true.", examples=[None])
    finish_reason: str = Field(description="stop or length.", examples=["stop"])
    uncited_spans: list[SpanBody] = Field(description="Sentences of the answer that no source supports.")
    quoted_spans: list[QuotedSpanBody] = Field(description=QUOTED_SPANS)
    answers: float | None = Field(description=ANSWERS, examples=[0.97])
    lead: SpanBody | None = Field(description=LEAD, examples=[None])
    abstention: AbstentionBody = Field(description="The stage at which the answer was refused.")
    sources: SourcesBody = Field(description="The chunks at each step from retrieval to citation.")
    usage: UsageBody = Field(description="Token usage and cost at the time; the ledger has later price corrections.")
    budget: BudgetBody = Field(description="The use of the context window.")
    timings_ms: dict[str, float | None] = Field(
        description="Durations in milliseconds: queue, retrieve, rerank, first_token, total."
    )

    @classmethod
    def of(cls, making: AnswerRecord) -> "MakingBody":
        """The body for the record of an answer."""
        return cls(
            model=making.model,
            reason=making.reason,
            finish_reason=making.finish_reason,
            uncited_spans=[SpanBody.of(span) for span in making.uncited],
            quoted_spans=[QuotedSpanBody.of(span) for span in making.quoted],
            answers=making.answers,
            lead=None if making.lead is None else SpanBody.of(making.lead),
            abstention=AbstentionBody.of(making.abstention),
            sources=SourcesBody.of(making.sources),
            usage=UsageBody.of(making.usage),
            budget=BudgetBody.of(making.budget),
            timings_ms=dict(making.timings_ms),
        )


class TurnBody(ResponseBody):
    """A question and its answer."""

    ordinal: int = Field(description="Its place in the conversation, from 1.", examples=[1])
    request_id: str = Field(description="The request's id, by which the usage ledger names it.", examples=["req_01k9"])
    question: str = Field(description="The question as it was asked.", examples=["And in 2024?"])
    standalone_question: str | None = Field(
        description="The question rewritten to be understood alone; null when it was used unchanged.",
        examples=["How did revenue develop in 2024?"],
    )
    answered: bool = Field(description="False when the documents did not contain an answer.")
    answer: str = Field(description="The answer, with markers.", examples=["Revenue rose 12% [1]."])
    citations: list[dict[str, Any]] = Field(description="Footnotes, with their fields in the answer.")
    making: MakingBody | None = Field(
        description="How the answer was generated; null for answers from before this was recorded."
    )
    feedback: OwnFeedbackBody | None = Field(description="The caller's feedback on the answer; null without any.")
    created_at: str = Field(description="When it ended, RFC 3339 UTC.", examples=["2026-11-21T10:00:03.000Z"])

    @classmethod
    def of(cls, turn: KeptTurn, feedback: Feedback | None) -> "TurnBody":
        """The body for a turn and the caller's feedback on it."""
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
    """A conversation was deleted with its turns; the deletion is complete and final."""

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
