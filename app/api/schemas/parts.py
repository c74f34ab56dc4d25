"""Bodies of the parts of an answer: what leads it, what it quotes, what was written, and what Footnote says itself."""

from dataclasses import fields
from typing import Annotated, Literal, TypeAlias

from pydantic import Field, TypeAdapter

from app.answering.answers.parts import AnyPart, CitedConflict, NoteCode, QuotePart, Reason
from app.api.schemas.shape import ResponseBody
from retrieval.types import Span


class SpanBody(ResponseBody):
    """A range of characters of the answer."""

    start: int = Field(description="First character.")
    end: int = Field(description="One past the last character.")

    @classmethod
    def of(cls, span: Span) -> "SpanBody":
        """The body for a span."""
        return cls(start=span.start_char, end=span.end_char)


class QuotedSpanBody(SpanBody):
    """A range of characters of the answer that are quoted word for word from a document."""

    answers: float | None = Field(
        description="The probability in [0, 1] that the quote answers the question; null where nothing estimated it.",
        examples=[0.97],
    )
    highlights: list[SpanBody] = Field(description="The characters of the answer, inside the quote, that answer.")

    @classmethod
    def of_part(cls, part: QuotePart) -> "QuotedSpanBody":
        """The body for the quoted characters of a part."""
        return cls(
            start=part.quoted.start_char,
            end=part.quoted.end_char,
            answers=part.answers,
            highlights=[SpanBody.of(one) for one in part.highlights],
        )


class PartFields(SpanBody):
    """Characters of the answer as they are shown, markers included."""

    citations: list[int] = Field(
        description="The citations whose markers are in the part: their places in `citations`, from 0.", examples=[[0]]
    )


class ConflictBody(ResponseBody):
    """Two footnotes whose passages say different things of what is asked."""

    what: Literal["number", "date", "name"] = Field(description="What they disagree about.", examples=["number"])
    citations: list[int] = Field(
        description="Both footnotes: their places in `citations`, from 0. They are equal in JSON answers where both "
        "passages are of one source.",
        min_length=2,
        max_length=2,
        examples=[[1, 2]],
    )

    @classmethod
    def of(cls, conflict: CitedConflict) -> "ConflictBody":
        """The body for a conflict."""
        return cls(what=conflict.what, citations=list(conflict.citations))


class LeadPartBody(PartFields):
    """The line at the beginning that answers in a few words of a document."""

    kind: Literal["lead"] = Field(description="Always `lead`.")
    words: SpanBody = Field(description="The words that answer, without their marker.")


class QuotePartBody(PartFields):
    """A quotation from a document, word for word."""

    kind: Literal["quote"] = Field(description="Always `quote`.")
    quoted: SpanBody = Field(description="The quoted characters, without their marker.")
    answers: float | None = Field(
        description="The probability in [0, 1] that the quote answers the question; null where nothing estimated it.",
        examples=[0.97],
    )
    highlights: list[SpanBody] = Field(description="The quoted characters that answer.")


class ProsePartBody(PartFields):
    """Text that a language model wrote."""

    kind: Literal["prose"] = Field(description="Always `prose`.")
    uncited: list[SpanBody] = Field(description="Sentences that no source supports.")


class NotePartBody(PartFields):
    """A sentence by Footnote beside an answer or a refusal."""

    kind: Literal["note"] = Field(description="Always `note`.")
    code: NoteCode = Field(
        description="`other_language`: the passages that were found are in another language than the question; "
        "`nearest_passages`: the quotes below it may not answer; `sources_disagree`: two passages give other values, "
        "and the answer's `conflicts` name their footnotes."
    )
    language: str | None = Field(
        description="The language of the passages, by its own name; null for other notes.", examples=["English"]
    )


class RefusalPartBody(PartFields):
    """A refusal, by Footnote or in the model's words."""

    kind: Literal["refusal"] = Field(description="Always `refusal`.")
    reason: Reason = Field(description="Why, as in the answer's `reason`.")


class ClarifyPartBody(PartFields):
    """The question back, which document is meant."""

    kind: Literal["clarify"] = Field(description="Always `clarify`.")


class ReplyPartBody(PartFields):
    """A reply to a greeting, to thanks, or to a question about Footnote and its documents."""

    kind: Literal["reply"] = Field(description="Always `reply`.")


class JsonPartBody(PartFields):
    """An answer that is one JSON document."""

    unsupported: list[str] = Field(
        description="JSON pointers (RFC 6901) of its values with a number, a date or a name that no source states.",
        examples=[["/total", "/lines/0/date"]],
    )
    kind: Literal["json"] = Field(description="Always `json`.")


PartBody: TypeAlias = Annotated[
    LeadPartBody
    | QuotePartBody
    | ProsePartBody
    | NotePartBody
    | RefusalPartBody
    | ClarifyPartBody
    | ReplyPartBody
    | JsonPartBody,
    Field(discriminator="kind"),
]


_PART = TypeAdapter[PartBody](PartBody)
_NAMES = {"start_char": "start", "end_char": "end"}


def part_body(part: AnyPart) -> PartBody:
    """The body for a part, which has the same fields."""
    return _PART.validate_python(
        {_NAMES.get(one.name, one.name): _shown(getattr(part, one.name)) for one in fields(part)}
    )


def _shown(value: object) -> object:
    if isinstance(value, Span):
        return SpanBody.of(value)
    return [_shown(one) for one in value] if isinstance(value, tuple) else value
