"""Decides which words of a quoted unit are marked: those that the span reader points at, or the cell asked for."""

import re
from collections.abc import Iterator, Sequence
from itertools import takewhile

from app.answering.quoting.asked_cells import chosen_cell
from app.answering.quoting.candidates import Candidate, moved
from app.answering.quoting.columns import is_line_of_table
from app.answering.quoting.features import Read
from app.answering.quoting.headed_rows import HeadedCell, HeadedRow, headed_row, is_amount, years_in
from app.answering.quoting.marks import whole
from app.answering.quoting.named_cells import cell_asked
from app.answering.states.reading import AskedCell
from retrieval.types import Span

UNREAD_MARGIN = -12.0
"""The margin of what holds no words that the span reader could read."""

_SCALE = re.compile(
    r"\b(?P<word>thousand|million|billion)s?\b|['’]\s?(?P<zeros>000)s?\b|(?:[$€£]|USD|EUR|RMB)\s?(?P<short>m|bn)\b",
    re.IGNORECASE,
)
_SHORT = {"000": "thousand", "m": "million", "bn": "billion"}
# What is counted in ones where a table says "in millions, except ...".
_ONES = re.compile(
    r"%|\bper\b|\b(?:percentages?|rate|ratio|margin|number|shares?|units?|years?|months?|days|term|life|price|"
    r"employees|headcount|yield)\b",
    re.IGNORECASE,
)
_NAMES_MORE = re.compile(r"\d|[^\W\d_]{3}")
_PERIOD = re.compile(r"\b(?:ended|ending|as of|as at)\b|^[A-Z][a-z]{2,8} \d{1,2},$", re.IGNORECASE)
_LONGEST_COLUMN = 80  # characters of a column's names beside a lead


def marked_in(question: str, candidate: Candidate, read: Read) -> tuple[Span | None, AskedCell | None]:
    """The characters of the document to mark in a candidate, and what is known of the cell that they are.

    Both are None where the span reader points at nothing.
    """
    if read.words is None:
        return None, None
    found = row_of(candidate) if "|" in candidate.core_text else None
    if found is None:
        return _pointed(question, candidate, read.words), None
    row, start = found
    margins = cell_margins(row, start, read)
    chosen = chosen_cell(question, row, margins)
    if row.labelled:  # its cells say themselves what they are
        marked = _pointed(question, candidate, read.words)
        agreed = marked is not None and _meet(marked, moved(chosen.cell.span, start))
        return marked, _known(row, chosen.cell, chosen.sure) if agreed else None
    span = moved(chosen.cell.span, start)
    inside = [piece for piece in read.pieces if _meet(piece.words, span)]
    words = max(inside, key=lambda piece: piece.margin).words if inside else span
    words = Span(max(words.start_char, span.start_char), min(words.end_char, span.end_char))
    marked = _whole(candidate, span, words, row=True)
    if marked is None:
        return _pointed(question, candidate, read.words), None
    return marked, _known(row, chosen.cell, chosen.sure)


def row_of(candidate: Candidate) -> tuple[HeadedRow, int] | None:
    """A candidate's row, and the character of the document that its line starts at.

    None for what is not one whole line of a table, and where no name of a column is known.
    """
    chunk = candidate.source.hit.chunk
    at = candidate.core.start_char - chunk.start_char
    start = chunk.text.rfind("\n", 0, at) + 1
    end = chunk.text.find("\n", at)
    line = chunk.text[start : end if end >= 0 else len(chunk.text)]
    if line.strip("| \t") != candidate.core_text.strip("| \t") or not is_line_of_table(line):
        return None
    before = chunk.text[:start].split("\n")[:-1]
    above = list(takewhile(is_line_of_table, reversed(before)))[::-1]
    row = headed_row(line, above, chunk.table_header if len(above) == len(before) else "")
    return None if row is None else (row, chunk.start_char + start)


def cell_margins(row: HeadedRow, start: int, read: Read) -> list[float]:
    """For each cell of a row the margin of the best words in it; `start` is where in the document the row's line is."""
    return [
        max(
            (piece.margin for piece in read.pieces if _meet(piece.words, moved(cell.span, start))),
            default=UNREAD_MARGIN,
        )
        for cell in row.cells
    ]


def unit_of(row: HeadedRow, cell: HeadedCell) -> str:
    """Of how many a table says that the amount in a cell is: "thousand", "million", "billion", or "".

    Its column and its row say so before the table does, which does not for what is counted in ones.
    """
    if not is_amount(cell.text) or "%" in cell.text:
        return ""
    column = " ".join(cell.names)
    if said := _scale(column) or _scale(row.label):
        return said
    if _ONES.search(f"{column} {row.label} {row.section}"):
        return ""
    own = row.cells[0].names if row.labelled else ()
    return _scale(" ".join((*_of_all(row.heads), *own)))


def _is_period(line: str) -> bool:
    """Whether a line names a day that a year is lacking behind."""
    return _PERIOD.search(line) is not None and line.rstrip(",")[-1:].isdigit()


def _of_all(heads: Sequence[str]) -> Iterator[str]:
    """What lines of names say of the whole table: their first cell, or their only one."""
    for head in heads:
        parts = [part.strip() for part in head.split("|")]
        lone = [part for part in parts if part]
        yield lone[0] if len(lone) == 1 else parts[0]


def _known(row: HeadedRow, cell: HeadedCell, sure: float) -> AskedCell:
    numbered = cell.column and (is_amount(cell.text) or cell.text.endswith("%"))
    column = column_of(row, cell) if numbered else ""
    return AskedCell(sure, unit_of(row, cell), column if len(column) <= _LONGEST_COLUMN else "")


def column_of(row: HeadedRow, cell: HeadedCell) -> str:
    """The names of a cell's column in one line, without units; a bare year is behind the period that it ends."""
    names = [name for name in cell.names if _NAMES_MORE.search(_SCALE.sub("", name))]
    if len(names) == 1 and years_in(names[0]) == {names[0]}:
        names = [*filter(_is_period, _of_all(row.heads)), *names]
    return " ".join(" ".join(names).split())


def _scale(text: str) -> str:
    found = _SCALE.search(text)
    if found is None:
        return ""
    return (found["word"] or _SHORT[(found["zeros"] or found["short"]).lower()]).lower()


def _pointed(question: str, candidate: Candidate, pointed: Span) -> Span | None:
    """What the reader points at as whole words, or the cell beside it whose label has the question's words."""
    row = "|" in candidate.core_text
    if row:
        core = candidate.core.start_char
        pointed = moved(cell_asked(question, candidate.core_text, moved(pointed, -core)), core)
    piece = next(
        (one for one in candidate.pieces if one.start_char <= pointed.start_char < one.end_char), candidate.span
    )
    return _whole(candidate, piece, pointed, row=row)


def _whole(candidate: Candidate, piece: Span, pointed: Span, *, row: bool) -> Span | None:
    at = candidate.span.start_char
    found = whole(candidate.text, moved(piece, -at), moved(pointed, -at), row=row)
    return None if found is None else moved(found, at)


def _meet(one: Span, other: Span) -> bool:
    return one.start_char < other.end_char and other.start_char < one.end_char
