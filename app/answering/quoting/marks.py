"""Cuts the words that the span reader points at to whole words, whole numbers and whole cells of a table.

The reader points at tokens, which are parts of words. Its words are widened to the borders of the words and numbers at
their ends; an abbreviation keeps its point ("1:01 p.m."), and half a range of amounts takes the other half in
("400K to 500K"). A bracket or quotation mark without its other half is left off at an end ("(92%" is 92%); inside it
takes the other half in where that is near, else the words end there.
"""

import re
from collections.abc import Sequence

from retrieval.types import Span
from retrieval.words import UNSPACED

_LONGEST_CELL = 80
"""The longest cell that is marked as a whole; a longer one holds sentences."""

_LONGEST_BRACKET = 40  # characters to the other half of a bracket
_PAIRS = {"(": ")", "[": "]", "{": "}", "“": "”", "«": "»", "„": "“"}
# A word or number: letters join by hyphens and apostrophes, digits by points, commas and colons; signs of money, of the
# minus and of per cent belong to numbers, the ending of the possessive to nothing. The date and time of a
# message are one word.
_LETTER, _LETTER_OR_DIGIT = rf"[^\W\d_{UNSPACED}]", rf"[^\W{UNSPACED}]"
_SENT = (  # RFC 5322 §3.3
    r"(?:(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun), )?\d{1,2} (?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec) \d{4}"
    r" \d\d:\d\d(?::\d\d)?(?: (?:[-+]\d{4}|[A-Z]{1,4}\b))?"
)
_ABBREVIATION = rf"(?<!\w)(?:(?:{_LETTER}\.){{2,4}}|(?:Inc|Ltd|Co|Corp|Bros|Jr|Sr)\.)"
_AMOUNT = rf"[$€£¥]?\d+(?:[.,:]\d+)*(?:{_LETTER}+(?:-{_LETTER}+)*)?(?:\s?[%‰]|[°€])?"
_WORD = re.compile(
    rf"[{UNSPACED}]"
    rf"|{_SENT}"
    rf"|{_ABBREVIATION}"
    r"|(?<![-–\w])\d+(?:[-–/]\d+){2,4}(?!\w)"  # a date, or the number of a file
    rf"|(?:(?<!\w)[-−+])?{_AMOUNT}"
    rf"|{_LETTER_OR_DIGIT}+(?:(?:(?<=[^\W\d_])['’](?!s\b)|(?<=\w)-(?=[^\W\d_])|(?<=[^\W\d_])-(?=\w)|&)"
    rf"{_LETTER_OR_DIGIT}+)*"
)
_RANGE = re.compile(rf"(?<![-\w.,:])(?P<low>{_AMOUNT}) to (?P<high>{_AMOUNT})(?![-\w])")
_CHANGES = re.compile(r"\bfrom $", re.IGNORECASE)  # "rose from 5 to 7" tells two amounts
_YEAR = re.compile(r"(?:1[5-9]|20)\d\d")
_LONGEST_SHORT = 8  # characters of an abbreviation
_ENDS_SHORT = re.compile(rf"{_ABBREVIATION}$")
_EDGES = " \t\r\n\u00a0,;:.!?|*_-–—'\"’‘"


def whole(text: str, piece: Span, pointed: Span, *, row: bool) -> Span | None:
    """The characters to mark where the reader points at `pointed`; None where these hold no letter and no number.

    Args:
        text: The text that all offsets count in.
        piece: The sentence or the cell that holds the words.
        pointed: What the reader points at, inside `piece`.
        row: Whether the piece is a cell of a row, which is marked as a whole.
    """
    if row and piece.end_char - piece.start_char <= _LONGEST_CELL:
        return _trimmed(text, piece.start_char, piece.end_char)
    start, end = pointed.start_char, pointed.end_char
    for word in _words(text, piece):
        if word.start_char < end and start < word.end_char:
            start, end = min(start, word.start_char), max(end, word.end_char)
    start, end = _paired(text, piece, start, end)
    found = _trimmed(text, start, end)
    return found and _ranged(text, piece, found)


def _words(text: str, piece: Span) -> Sequence[Span]:
    return [Span(*match.span()) for match in _WORD.finditer(text, piece.start_char, piece.end_char)]


def _ranged(text: str, piece: Span, marked: Span) -> Span:
    """The same with the other half of a range of amounts that begins or ends it; a period has two years of its own."""
    for match in _RANGE.finditer(text, piece.start_char, piece.end_char):
        inside = match.start() < marked.end_char and marked.start_char < match.end()
        changes = _CHANGES.search(text, piece.start_char, match.start())
        if inside and not changes and not (_YEAR.fullmatch(match["low"]) or _YEAR.fullmatch(match["high"])):
            return Span(min(marked.start_char, match.start()), max(marked.end_char, match.end()))
    return marked


def _paired(text: str, piece: Span, start: int, end: int) -> tuple[int, int]:
    """The same characters with both halves of each bracket, or without the one that has no other near."""
    for opening, closing in _PAIRS.items():
        marked = text[start:end]
        if marked.count(opening) > marked.count(closing):
            at = start + marked.rindex(opening)
            other = text.find(closing, end, min(piece.end_char, end + _LONGEST_BRACKET))
            if not text[start:at].strip(_EDGES):
                start = at + 1
            else:
                end = other + 1 if other >= 0 else at
        elif marked.count(closing) > marked.count(opening):
            at = start + marked.index(closing)
            other = text.rfind(opening, max(piece.start_char, start - _LONGEST_BRACKET), start)
            if not text[at + 1 : end].strip(_EDGES):
                end = at
            else:
                start = other if other >= 0 else at + 1
    return start, end


def _trimmed(text: str, start: int, end: int) -> Span | None:
    """The characters without spaces and marks at their ends, None where nothing is left."""
    while start < end and text[start] in _EDGES and not _signs(text, start, end):
        start += 1
    while (
        start < end and text[end - 1] in _EDGES and not _ENDS_SHORT.search(text, max(start, end - _LONGEST_SHORT), end)
    ):
        end -= 1
    return Span(start, end) if any(char.isalnum() for char in text[start:end]) else None


def _signs(text: str, at: int, end: int) -> bool:
    """Whether a mark is the minus of a number."""
    return text[at] in "-−" and at + 1 < end and text[at + 1].isdigit()
