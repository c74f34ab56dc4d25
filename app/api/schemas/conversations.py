"""Bodies of conversations."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, WithJsonSchema

from app.answering.answers.parts import LeadPart, ProsePart, QuotePart, of_kind
from app.answering.conversations.answer_record import AnswerRecord
from app.api.schemas.answers import (
    ANSWERS,
    CONFLICTS,
    LEAD,
    PARTS,
    QUOTED_SPANS,
    WORDS,
    AbstentionBody,
    SourcesBody,
    WindowUseBody,
    WordsBody,
)
from app.api.schemas.feedback import OwnFeedbackBody
from app.api.schemas.kept_citations import KEPT_CITATIONS, Places, kept_citation
from app.api.schemas.parts import ConflictBody, PartBody, QuotedSpanBody, SpanBody, part_body
from app.api.schemas.shape import Metadata, RequestBody, ResponseBody, bounded_metadata, rfc3339
from app.api.schemas.token_usage import UsageBody
from app.db.asked_questions import InterruptedQuestion
from app.db.conversation_search import ConversationHit
from app.db.feedback import Feedback
from app.types import Conversation, KeptTurn

_MOST_FIELDS, _NAME_CHARS, _VALUE_CHARS = 16, 64, 512


def _small(metadata: dict[str, Any]) -> dict[str, Any]:
    for name, value in metadata.items():
        if len(name) > _NAME_CHARS:
            raise ValueError(f"a name has at most {_NAME_CHARS} characters")
        if isinstance(value, list) and len(value) > _MOST_FIELDS:
            raise ValueError(f"a list has at most {_MOST_FIELDS} values")
        for item in value if isinstance(value, list) else [value]:
            if isinstance(item, str) and len(item) > _VALUE_CHARS:
                raise ValueError(f"a string has at most {_VALUE_CHARS} characters")
    return metadata


_Metadata = Annotated[
    dict[str, Any],
    Field(max_length=_MOST_FIELDS),
    AfterValidator(_small),
    WithJsonSchema(
        {
            **bounded_metadata(fields=_MOST_FIELDS, chars=_VALUE_CHARS),
            "propertyNames": {"type": "string", "maxLength": _NAME_CHARS},
        }
    ),
]
_METADATA = f"Your own fields, at most {_MOST_FIELDS}: names of {_NAME_CHARS} characters, strings of {_VALUE_CHARS}."


class NewConversation(RequestBody):
    """A conversation to create."""

    title: str | None = Field(
        default=None,
        min_length=1,
        max_length=200,
        description="Title; default: the beginning of the first question.",
        examples=["The annual report"],
    )
    metadata: _Metadata = Field(default_factory=dict, description=_METADATA)


class ConversationPatch(RequestBody):
    """Changes to a conversation; null and omitted fields stay."""

    title: str | None = Field(default=None, min_length=1, max_length=200, description="New title.")
    metadata: _Metadata | None = Field(
        default=None, description=f"Replaces its metadata. {_METADATA}", examples=[{"team": "a"}]
    )
    pinned: bool | None = Field(default=None, description="Put it first in the list.", examples=[True])
    folder: str | None = Field(
        default=None,
        max_length=60,
        description="Put it into the folder of this name; an empty name takes it out.",
        examples=["Contracts"],
    )
    shared: bool | None = Field(
        default=None,
        description="Share it with the tenant: all users who have its id may read it, but not continue it. Keys "
        "limited to collections may not read it.",
        examples=[True],
    )


class ConversationHitBody(ResponseBody):
    """The place in a conversation that holds the text searched for."""

    place: Literal["title", "question", "answer"] = Field(description="In its title, a question or an answer.")
    request_id: str | None = Field(description="The turn's request; null for a title.", examples=["req_01k9"])
    snippet: str = Field(description="The words around it, in one line.", examples=["… the notice period is 30 days …"])

    @classmethod
    def of(cls, hit: ConversationHit) -> "ConversationHitBody":
        """The body for a hit."""
        return cls(place=hit.place, request_id=hit.request_id, snippet=hit.snippet)


class ConversationBody(ResponseBody):
    """A conversation."""

    id: str = Field(description="The conversation's id; pass it to /v1/ask.", examples=["conv_01k9"])
    object: Literal["conversation"] = Field(default="conversation", description="Always `conversation`.")
    title: str | None = Field(description="Title; null while it has neither a title nor a turn.")
    metadata: Metadata = Field(description="Your own fields.")
    user_id: str = Field(description="The user who owns it.", examples=["user_1"])
    user_name: str = Field(description="The user's display name; its id when none was set.", examples=["Ada Lovelace"])
    turns: int = Field(description="Number of turns.", examples=[3])
    shared: bool = Field(description="Whether all users of the tenant who have its id may read it.", examples=[False])
    pinned: bool = Field(description="Whether it is first in the list.", examples=[False])
    folder: str | None = Field(description="The folder it is in; null without one.", examples=["Contracts"])
    unanswered: int = Field(description="Questions that are being answered or were interrupted.", examples=[0])
    created_at: str = Field(description="RFC 3339 UTC.", examples=["2026-11-21T10:00:00.000Z"])
    updated_at: str = Field(
        description="When its last turn ended, RFC 3339 UTC.", examples=["2026-11-21T10:00:03.000Z"]
    )
    hit: ConversationHitBody | None = Field(
        default=None, description="Where the list's `q` was found; null without a search."
    )

    @classmethod
    def of(cls, conversation: Conversation, hit: ConversationHit | None = None) -> "ConversationBody":
        """The body for a conversation, and where a search found its text."""
        return cls(**_fields(conversation), hit=None if hit is None else ConversationHitBody.of(hit))


class MakingBody(ResponseBody):
    """How an answer was generated: fields of `AnswerBody` with their values at the time."""

    model: str = Field(
        description="The language model that wrote the answer; where quotes answer, the model that read the passages. "
        "Empty when no model was called; `usage.calls` names them all.",
        examples=["evidence-minilm-l6"],
    )
    reason: str | None = Field(description="Why `answered` is false; null when it is true.", examples=[None])
    finish_reason: str = Field(description="stop, length or repetition.", examples=["stop"])
    uncited_spans: list[SpanBody] = Field(description="Sentences of the answer that no source supports.")
    quoted_spans: list[QuotedSpanBody] = Field(description=QUOTED_SPANS)
    parts: list[PartBody] = Field(description=PARTS)
    conflicts: list[ConflictBody] = Field(description=CONFLICTS)
    answers: float | None = Field(description=ANSWERS, examples=[0.97])
    words: WordsBody = Field(description=WORDS)
    lead: SpanBody | None = Field(description=LEAD, examples=[None])
    abstention: AbstentionBody = Field(description="The stage at which the answer was refused.")
    sources: SourcesBody = Field(description="The chunks at each step from retrieval to citation.")
    usage: UsageBody = Field(description="Token usage and cost at the time; the ledger has later price corrections.")
    budget: WindowUseBody = Field(description="The use of the context window.")
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
            uncited_spans=[SpanBody.of(span) for part in of_kind(making.parts, ProsePart) for span in part.uncited],
            quoted_spans=[QuotedSpanBody.of_part(part) for part in of_kind(making.parts, QuotePart)],
            parts=[part_body(part) for part in making.parts],
            conflicts=[ConflictBody.of(one) for one in making.conflicts],
            answers=making.probability,
            words=WordsBody.of(making.words),
            lead=next((SpanBody.of(part.words) for part in of_kind(making.parts, LeadPart)), None),
            abstention=AbstentionBody.of(making.abstention),
            sources=SourcesBody.of(making.sources),
            usage=UsageBody.of(making.usage),
            budget=WindowUseBody.of(making.budget),
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
    citations: list[dict[str, Any]] = Field(description=KEPT_CITATIONS)
    making: MakingBody | None = Field(
        description="How the answer was generated; null for answers from before this was recorded."
    )
    feedback: OwnFeedbackBody | None = Field(description="The caller's feedback on the answer; null without any.")
    created_at: str = Field(description="When it ended, RFC 3339 UTC.", examples=["2026-11-21T10:00:03.000Z"])

    @classmethod
    def of(cls, turn: KeptTurn, feedback: Feedback | None, places: Places) -> "TurnBody":
        """The body for a turn, the caller's feedback on it, and what became of its passages."""
        record = AnswerRecord.of_turn(turn)
        return cls(
            ordinal=turn.ordinal,
            request_id=turn.request_id,
            question=turn.question,
            standalone_question=turn.standalone,
            answered=turn.answered,
            answer=turn.answer,
            citations=[kept_citation(citation, places) for citation in turn.citations],
            making=None if record is None else MakingBody.of(record),
            feedback=OwnFeedbackBody.said(feedback),
            created_at=rfc3339(turn.created_at),
        )


class InterruptedBody(ResponseBody):
    """A question whose answer was lost when the server stopped without warning."""

    request_id: str = Field(description="The request's id.", examples=["req_01k9"])
    question: str = Field(description="The question as it was asked.", examples=["And in 2024?"])
    created_at: str = Field(description="When it was asked, RFC 3339 UTC.", examples=["2026-11-21T10:00:03.000Z"])

    @classmethod
    def of(cls, question: InterruptedQuestion) -> "InterruptedBody":
        """The body for an interrupted question."""
        return cls(request_id=question.request_id, question=question.question, created_at=rfc3339(question.created_at))


class WholeConversationBody(ConversationBody):
    """A conversation with its turns."""

    data: list[TurnBody] = Field(description="Its turns, oldest first.")
    interrupted: list[InterruptedBody] = Field(
        description="Questions without an answer, because the server stopped while it was written, oldest first. One "
        "goes when the same question is answered in this conversation."
    )
    deleted_documents: list[str] = Field(
        description="The ids of documents that its turns cite and that are deleted: their passages are kept with the "
        "turns, and cannot be looked up any more."
    )

    @classmethod
    def with_turns(
        cls,
        conversation: Conversation,
        turns: tuple[KeptTurn, ...],
        feedback: Mapping[str, Feedback],
        interrupted: tuple[InterruptedQuestion, ...],
        *,
        places: Places,
        deleted_documents: Sequence[str] = (),
    ) -> "WholeConversationBody":
        """The body for a conversation, its turns, as they were at one moment, and the caller's feedback by request.

        `places` are those of the passages that the turns cite.
        """
        fields = {**_fields(conversation), "turns": len(turns)}
        data = [TurnBody.of(turn, feedback.get(turn.request_id), places) for turn in turns]
        return cls(
            **fields,
            data=data,
            interrupted=[InterruptedBody.of(question) for question in interrupted],
            deleted_documents=list(deleted_documents),
        )


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
        "user_name": conversation.user_name or conversation.user_id,
        "turns": conversation.turns,
        "shared": conversation.shared,
        "pinned": conversation.pinned,
        "folder": conversation.folder,
        "unanswered": conversation.unanswered,
        "created_at": rfc3339(conversation.created_at),
        "updated_at": rfc3339(conversation.updated_at),
    }
