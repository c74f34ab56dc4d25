"""Shows quoted rows of a table as a Markdown table, below the names of its columns.

Rows without names that are certain (`columns.py`) are shown as they are. The footnote always cites the rows as they are
in the document.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import takewhile

from app.answering.quoting.columns import RULE, Cell, TableRows, columns_of, is_line_of_table, placed
from app.answering.quoting.literal import literal
from app.answering.states.reading import Extract
from retrieval.footnote_numbers import without_markers
from retrieval.types import Span

_FRAME = re.compile(r"\s*+\|?\s*+")
_LOOKED_AT = 12  # rows below the quoted ones


@dataclass(frozen=True, slots=True)
class ShownTable:
    """A Markdown table, a line for each row, and the characters of it that answer; None where no single cell does."""

    text: str
    highlight: Span | None


def shown_table(quote: Extract) -> ShownTable | None:
    """The rows of a quote as a table; None for every other quote, and where the names of the columns are not known."""
    found = _rows_of(quote)
    if found is None:
        return None
    rows, starts = found
    columns = columns_of(rows, quote.source.hit.chunk.table_header)
    if columns is None:
        return None
    names = columns.names
    shown = _line([literal(name) for name in names]) + "\n" + _line(["---"] * len(names))
    highlight: Span | None = None
    data = [(line, at) for line, at in zip(rows.lines, starts, strict=True) if not RULE.fullmatch(line)]
    for line, at in data[columns.own :]:
        row = placed(line, names)
        if row is None:
            return None
        words = _highlighted(quote, row, at)
        if words is not None:
            highlight = Span(len(shown) + 1 + words.start_char, len(shown) + 1 + words.end_char)
        shown += "\n" + _line([_clean(cell.text) for cell in row])
    return ShownTable(shown, highlight) if len(data) > columns.own else None


def _rows_of(quote: Extract) -> tuple[TableRows, Sequence[int]] | None:
    """The lines of a quote that consists of whole rows, and where in the source's text each starts.

    None for every other quote.
    """
    chunk = quote.source.hit.chunk
    start, end = quote.span.start_char - chunk.start_char, quote.span.end_char - chunk.start_char
    text = chunk.text
    first = text.rfind("\n", 0, start) + 1
    last = text.find("\n", end)
    last = len(text) if last < 0 else last
    quoted = text[first:last].split("\n")
    if not _FRAME.fullmatch(text[first:start]) or not _FRAME.fullmatch(text[end:last]):
        return None
    if not all(map(is_line_of_table, quoted)) or all(map(RULE.fullmatch, quoted)):
        return None
    starts = [first]
    for line in quoted[:-1]:
        starts.append(starts[-1] + len(line) + 1)
    before = text[:first].split("\n")[:-1]
    above = list(takewhile(is_line_of_table, reversed(before)))[::-1]
    below = list(takewhile(is_line_of_table, text[last + 1 :].split("\n")[:_LOOKED_AT]))
    return TableRows(tuple(above), tuple(quoted), tuple(below), cut=len(above) == len(before)), starts


def _highlighted(quote: Extract, row: Sequence[Cell], at: int) -> Span | None:
    """Where in the shown row the highlighted words are; `at` is where the row's line starts in the source's text."""
    words = _clean(quote.words)
    if quote.highlight is None or not words:
        return None
    start = quote.highlight.start_char - quote.source.hit.chunk.start_char - at
    shown = len("| ")
    for cell in row:
        text = _clean(cell.text)
        if cell.span.start_char <= start < cell.span.end_char:
            earlier = _clean(cell.text[: start - cell.span.start_char]).count(words)
            place = -1
            for _ in range(earlier + 1):
                place = text.find(words, place + 1)
            return Span(shown + place, shown + place + len(words)) if place >= 0 else None
        shown += len(text) + len(" | ")
    return None


def _clean(cell: str) -> str:
    return literal(" ".join(without_markers(cell).split()))


def _line(row: Sequence[str]) -> str:
    return f"| {' | '.join(row)} |"
