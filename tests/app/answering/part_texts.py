"""The texts of an answer's parts, and the rule that parts keep: they tile the text."""

import re
from collections.abc import Sequence

from app.answering.answers.parts import AnyPart, LeadPart, ProsePart, QuotePart, of_kind
from app.answering.citing.citation import Citation
from retrieval.types import Span

BETWEEN = re.compile(r"[\s>]*")


def text_of(text: str, place: Span | AnyPart) -> str:
    """The characters of an answer at a place."""
    return text[place.start_char : place.end_char]


def texts_of(text: str, parts: Sequence[AnyPart]) -> list[tuple[str, str]]:
    """Of each part its kind and its text."""
    return [(part.kind, text_of(text, part)) for part in parts]


def quotes_in(parts: Sequence[AnyPart]) -> list[QuotePart]:
    """The quotes."""
    return of_kind(parts, QuotePart)


def quoted_in(text: str, parts: Sequence[AnyPart]) -> list[str]:
    """The texts of the quotes."""
    return [text_of(text, one.quoted) for one in quotes_in(parts)]


def highlighted_in(text: str, parts: Sequence[AnyPart]) -> list[list[str]]:
    """Of each quote the words that are highlighted."""
    return [[text_of(text, span) for span in one.highlights] for one in quotes_in(parts)]


def lead_in(parts: Sequence[AnyPart]) -> Span | None:
    """The words that lead, without their marker."""
    leads = [part.words for part in of_kind(parts, LeadPart)]
    assert len(leads) <= 1, "an answer has one lead"
    return leads[0] if leads else None


def uncited_in(parts: Sequence[AnyPart]) -> list[Span]:
    """The sentences that no source supports."""
    return [span for part in of_kind(parts, ProsePart) for span in part.uncited]


def require_tiling(text: str, parts: Sequence[AnyPart], citations: Sequence[Citation] = ()) -> None:
    """Fails unless each character is in one part, but for white space and signs of quotation between them.

    A part holds all of what it says of its characters, and each marker is in one part.
    """
    at = 0
    for part in parts:
        assert at <= part.start_char < part.end_char <= len(text)
        assert BETWEEN.fullmatch(text, at, part.start_char), text
        at = part.end_char
        for span in _inside(part):
            assert part.start_char <= span.start_char <= span.end_char <= part.end_char
    assert BETWEEN.fullmatch(text, at), text
    for quote in quotes_in(parts):
        for mark in quote.highlights:
            assert quote.quoted.start_char <= mark.start_char < mark.end_char <= quote.quoted.end_char
    for one in citations:
        around = [part for part in parts if part.start_char <= one.answer_start and one.answer_end <= part.end_char]
        assert len(around) == 1


def _inside(part: AnyPart) -> Sequence[Span]:
    match part:
        case LeadPart():
            return [part.words]
        case QuotePart():
            return [part.quoted, *part.highlights]
        case ProsePart():
            return part.uncited
        case _:
            return []
