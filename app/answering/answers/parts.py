"""The parts of an answer's text, each of which says what it is; all offsets count characters of the answer.

Every character of an answer is in one part, but for white space between parts and the signs of a Markdown quotation.
A part includes its markers. A reader of an answer therefore searches its text for nothing.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Literal, Self, TypeAlias, TypeVar

from retrieval.types import Span


class Reason(StrEnum):
    """Why a question was not answered.

    Attributes:
        meaning: The reason in words, for the API's description.
        refuses: Whether the answer is a refusal. One that is unsure quotes; the others were not tried or not finished.
    """

    meaning: str
    refuses: bool

    NO_EVIDENCE = "no_evidence", "no passage is about the question, nothing was generated", True
    NOT_IN_SOURCES = "not_in_sources", "no answer was found in the sources", True
    NOT_VERIFIED = "not_verified", "strict mode, and no sentence could be verified", True
    UNSURE = "unsure", "the answer quotes the nearest passages, which may not answer the question"
    DRY_RUN = "dry_run", "the request asked for no answer"
    CANCELLED = "cancelled", "before anything was written"
    ERROR = "error", "the answer was not finished"

    def __new__(cls, value: str, meaning: str = "", refuses: bool = False) -> Self:
        """A member whose value is `value`."""
        member = str.__new__(cls, value)
        member._value_, member.meaning, member.refuses = value, meaning, refuses
        return member


class NoteCode(StrEnum):
    """What Footnote says beside an answer: the passages are in another language, are only the nearest, or disagree."""

    OTHER_LANGUAGE = "other_language"
    NEAREST_PASSAGES = "nearest_passages"
    SOURCES_DISAGREE = "sources_disagree"


What: TypeAlias = Literal["number", "date", "name"]
"""What two sources disagree about."""


@dataclass(frozen=True, slots=True)
class CitedConflict:
    """Two footnotes whose passages say different things of what is asked; `citations` are places in `Answer.citations`.

    The places are equal in JSON, where a source has one footnote, and both passages are of one source.
    """

    what: What
    citations: tuple[int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerPart:
    """Characters `[start_char, end_char)` of the answer; `citations` are places in `Answer.citations`."""

    start_char: int
    end_char: int
    citations: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class LeadPart(AnswerPart):
    """The line that answers in a few words of a document; `words` are those words."""

    words: Span
    kind: Literal["lead"] = "lead"


@dataclass(frozen=True, slots=True, kw_only=True)
class QuotePart(AnswerPart):
    """A quotation, word for word.

    Attributes:
        quoted: The quoted characters, without the marker.
        answers: The probability in [0, 1] that they answer; None in answers stored before it was estimated.
        highlights: The characters inside that answer.
    """

    quoted: Span
    answers: float | None = None
    highlights: tuple[Span, ...] = ()
    kind: Literal["quote"] = "quote"


@dataclass(frozen=True, slots=True, kw_only=True)
class ProsePart(AnswerPart):
    """What a language model wrote; `uncited` are its sentences that no source supports."""

    uncited: tuple[Span, ...] = ()
    kind: Literal["prose"] = "prose"


@dataclass(frozen=True, slots=True, kw_only=True)
class NotePart(AnswerPart):
    """A sentence by Footnote beside an answer or a refusal.

    `language` is that of the passages, by its own name, where it is another than the question's.
    """

    code: NoteCode
    language: str | None = None
    kind: Literal["note"] = "note"


@dataclass(frozen=True, slots=True, kw_only=True)
class RefusedPart(AnswerPart):
    """A refusal, by Footnote or in a model's words."""

    reason: Reason
    kind: Literal["refusal"] = "refusal"


@dataclass(frozen=True, slots=True, kw_only=True)
class ClarifyPart(AnswerPart):
    """The question back, which document is meant."""

    kind: Literal["clarify"] = "clarify"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplyPart(AnswerPart):
    """A reply to a greeting, to thanks, or to a question about Footnote and its documents."""

    kind: Literal["reply"] = "reply"


@dataclass(frozen=True, slots=True, kw_only=True)
class JsonPart(AnswerPart):
    """An answer that is one JSON document.

    `unsupported` are the JSON pointers (RFC 6901) of its values with a number, a date or a name that no source states.
    """

    unsupported: tuple[str, ...] = ()
    kind: Literal["json"] = "json"


AnyPart: TypeAlias = LeadPart | QuotePart | ProsePart | NotePart | RefusedPart | ClarifyPart | ReplyPart | JsonPart
Kind = TypeVar("Kind", bound=AnswerPart)


def paragraphs(*drafts: tuple[str, Callable[..., AnyPart]]) -> tuple[str, tuple[AnyPart, ...]]:
    """Texts joined as paragraphs, and the part of each; an empty text is left out.

    >>> paragraphs(("I don't know.", partial(RefusedPart, reason=Reason.NOT_IN_SOURCES)))
    """
    text, parts = "", []
    for piece, part in drafts:
        if not piece:
            continue
        text += "\n\n" if text else ""
        parts.append(part(start_char=len(text), end_char=len(text) + len(piece)))
        text += piece
    return text, tuple(parts)


def moved(part: AnyPart, by: int) -> AnyPart:
    """The part `by` characters further on."""
    further = replace(part, start_char=part.start_char + by, end_char=part.end_char + by)
    match further:
        case LeadPart():
            return replace(further, words=_moved(further.words, by))
        case QuotePart():
            marks = tuple(_moved(one, by) for one in further.highlights)
            return replace(further, quoted=_moved(further.quoted, by), highlights=marks)
        case ProsePart():
            return replace(further, uncited=tuple(_moved(one, by) for one in further.uncited))
        case _:
            return further


def cited(parts: Iterable[AnyPart], markers: Sequence[Span]) -> tuple[AnyPart, ...]:
    """The parts with the places of the citations whose `markers` are in them."""
    return tuple(
        replace(
            part,
            citations=tuple(
                at
                for at, marker in enumerate(markers)
                if part.start_char <= marker.start_char and marker.end_char <= part.end_char
            ),
        )
        for part in parts
    )


def of_kind(parts: Iterable[AnyPart], kind: type[Kind]) -> list[Kind]:
    """The parts of one kind, in order."""
    return [part for part in parts if isinstance(part, kind)]


def _moved(span: Span, by: int) -> Span:
    return Span(span.start_char + by, span.end_char + by)
