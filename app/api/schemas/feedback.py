"""Bodies of feedback on answers."""

from typing import Literal

from pydantic import Field

from app.api.schemas.shape import RequestBody, ResponseBody, rfc3339
from app.db.feedback import Feedback, ListedFeedback


class NewFeedback(RequestBody):
    """A rating of an answer."""

    score: float = Field(ge=-1, le=1, description="Rating from -1 (bad) to 1 (good).", examples=[-1])
    comment: str | None = Field(
        default=None,
        max_length=4000,
        description="Comment; a blank one is ignored.",
        examples=["It quotes last year's report."],
    )


class OwnFeedbackBody(ResponseBody):
    """The caller's feedback on an answer."""

    score: float = Field(description="Rating from -1 (bad) to 1 (good).", examples=[-1])
    comment: str | None = Field(description="Comment.", examples=["It quotes last year's report."])

    @classmethod
    def said(cls, feedback: Feedback | None) -> "OwnFeedbackBody | None":
        """The body for feedback; None without any."""
        return None if feedback is None else cls(score=feedback.score, comment=feedback.comment)


class FeedbackBody(OwnFeedbackBody):
    """A user's feedback on an answer."""

    object: Literal["feedback"] = Field(default="feedback", description="Always `feedback`.")
    request_id: str = Field(description="The request that was answered.", examples=["req_01k9"])
    user_id: str = Field(description="The user who gave it.", examples=["user_1"])
    created_at: str = Field(description="When it was first given, RFC 3339 UTC.", examples=["2026-11-21T10:00:00.000Z"])
    updated_at: str = Field(
        description="When it was last changed, RFC 3339 UTC.", examples=["2026-11-21T10:00:03.000Z"]
    )

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
    """A user's feedback on an answer, with the question and its conversation."""

    user_name: str = Field(description="The user's display name; its id when none was set.", examples=["Ada Lovelace"])
    conversation_id: str | None = Field(
        description="The conversation that stores the answer; null when it was asked outside of one.",
        examples=["conv_01k9"],
    )
    question: str | None = Field(
        description="The question, as stored in the conversation.", examples=["How did revenue develop?"]
    )

    @classmethod
    def listed(cls, feedback: ListedFeedback) -> "ListedFeedbackBody":
        """The body for feedback in the list."""
        return cls(
            **FeedbackBody.of(feedback).model_dump(),
            user_name=feedback.user_name or feedback.user_id,
            conversation_id=feedback.conversation_id,
            question=feedback.question,
        )


class FeedbackDeletedBody(ResponseBody):
    """The caller's feedback on an answer is deleted."""

    request_id: str = Field(description="The request that was answered.", examples=["req_01k9"])
    deleted: Literal[True] = Field(default=True, description="Always true.")
