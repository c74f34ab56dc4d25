"""Bodies of feedback on answers."""

from typing import Literal

from pydantic import Field

from app.api.schemas.shape import RequestBody, ResponseBody, rfc3339
from app.db.feedback import Feedback, ListedFeedback


class NewFeedback(RequestBody):
    """What an answer was worth."""

    score: float = Field(ge=-1, le=1, description="From -1, bad, to 1, good.", examples=[-1])
    comment: str | None = Field(
        default=None,
        max_length=4000,
        description="What was good or bad; a blank one is none.",
        examples=["It quotes last year's report."],
    )


class OwnFeedbackBody(ResponseBody):
    """What the caller said of an answer."""

    score: float = Field(description="From -1, bad, to 1, good.", examples=[-1])
    comment: str | None = Field(description="What was good or bad.", examples=["It quotes last year's report."])

    @classmethod
    def said(cls, feedback: Feedback | None) -> "OwnFeedbackBody | None":
        """The body for feedback; None where nothing was said."""
        return None if feedback is None else cls(score=feedback.score, comment=feedback.comment)


class FeedbackBody(OwnFeedbackBody):
    """What somebody said of an answer."""

    object: Literal["feedback"] = Field(default="feedback", description="Always `feedback`.")
    request_id: str = Field(description="The request that was answered.", examples=["req_01k9"])
    user_id: str = Field(description="Who said it.", examples=["user_1"])
    created_at: str = Field(description="When it was said first; RFC 3339 UTC.", examples=["2026-11-21T10:00:00.000Z"])
    updated_at: str = Field(description="When it was said last; RFC 3339 UTC.", examples=["2026-11-21T10:00:03.000Z"])

    @classmethod
    def of(cls, feedback: Feedback) -> "FeedbackBody":
        """The body for feedback."""
        return cls(
            request_id=feedback.request_id,
            user_id=feedback.user_id,
            score=feedback.score,
            comment=feedback.comment,
            created_at=rfc3339(feedback.created_at),
            updated_at=rfc3339(feedback.updated_at),
        )


class ListedFeedbackBody(FeedbackBody):
    """What somebody said of an answer, with where the answer is kept."""

    conversation_id: str | None = Field(
        description="The conversation the answer is kept in; null for one that was asked outside of any.",
        examples=["conv_01k9"],
    )
    question: str | None = Field(
        description="The question, as its conversation keeps it.", examples=["How did revenue develop?"]
    )

    @classmethod
    def listed(cls, feedback: ListedFeedback) -> "ListedFeedbackBody":
        """The body for feedback in the list."""
        return cls(
            **FeedbackBody.of(feedback).model_dump(),
            conversation_id=feedback.conversation_id,
            question=feedback.question,
        )


class FeedbackDeletedBody(ResponseBody):
    """What the caller said of an answer is taken back."""

    request_id: str = Field(description="The request that was answered.", examples=["req_01k9"])
    deleted: Literal[True] = Field(default=True, description="Always true.")
