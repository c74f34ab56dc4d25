"""Shows quoted rows of a table as a Markdown table, below the names of its columns.

The rows of spreadsheets and web pages repeat the names ("Part: Bolt | Price: 3 EUR"). Else the names are in the table's
first row where the source has it, or in its `table_header`. Rows without names that are certain are shown as they are.
The footnote always cites the rows as they are in the document.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise, takewhile

from app.answering.quoting.literal import literal
from app.answering.states.reading import Quote
from ingestion.column_names import is_data_column, names_columns
from ingestion.tables import cells
from retrieval.footnote_numbers import without_markers
from retrieval.types import Span

_BAR = re.compile(r"(?<!\\)\|")
_RULE = re.compile(r"\s*+\|?\s*+:?-++:?\s*+(?:\|\s*+:?-++:?\s*+)*\|?\s*+")
_FRAME = re.compile(r"\s*+\|?\s*+")
_PAIR = re.compile(r":\s+\S")  # a label and its value
_OWN_LABEL = re.compile(r"(?P<name>[^:|]{1,120}): (?=\S)")  # as long as ingestion writes the names into rows
_LEAST_LABELS = 2
_YEAR = re.compile(r"(?:19|20)\d\d")
_MOST_NAME_CHARS = 600  # of all columns; longer ones are data
_LOOKED_AT = 12  # rows below the names that show whether they are names


@dataclass(frozen=True, slots=True)
class ShownTable:
    """A Markdown table, a line for each row, and the characters of it that answer; None where no single cell does."""

    text: str
    highlight: Span | None


@dataclass(frozen=True, slots=True)
class _Cell:
    """A cell under a column: its text without the column's name, and the characters of its line that it is."""

    text: str
    span: Span


_BLANK = _Cell("", Span(0, 0))


@dataclass(frozen=True, slots=True)
class _Rows:
    """The lines of a quote with the lines of the same table directly above and below them in the source.

    `starts` are the offsets in the source's text where the quoted lines start; `cut` says that the source begins with
    the first of all these lines, so that the table may have begun before it.
    """

    above: tuple[str, ...]
    quoted: tuple[str, ...]
    below: tuple[str, ...]
    starts: tuple[int, ...]
    cut: bool


def shown_table(quote: Quote) -> ShownTable | None:
    """The rows of a quote as a table; None for every other quote, and where the names of the columns are not known."""
    rows = _rows_of(quote)
    if rows is None:
        return None
    before = _names_before(quote, rows) if rows.cut else None
    inside = _names_in(rows) if before is None else None
    own = inside is not None and not rows.above  # then the quote's first line has them
    names = before or inside or _names_repeated(rows)
    if names is None or sum(map(len, names)) > _MOST_NAME_CHARS:
        return None
    shown = _line([literal(name) for name in names]) + "\n" + _line(["---"] * len(names))
    highlight: Span | None = None
    data = [(line, at) for line, at in zip(rows.quoted, rows.starts, strict=True) if not _RULE.fullmatch(line)]
    for line, at in data[own:]:
        row = _placed(line, names)
        if row is None:
            return None
        found = _highlighted(quote, row, at)
        if found is not None:
            highlight = Span(len(shown) + 1 + found.start_char, len(shown) + 1 + found.end_char)
        shown += "\n" + _line([_clean(cell.text) for cell in row])
    return ShownTable(shown, highlight) if len(data) > own else None


def _rows_of(quote: Quote) -> _Rows | None:
    """The lines around a quote that consists of whole rows; None for every other quote."""
    chunk = quote.source.hit.chunk
    start, end = quote.span.start_char - chunk.start_char, quote.span.end_char - chunk.start_char
    text = chunk.text
    first = text.rfind("\n", 0, start) + 1
    last = text.find("\n", end)
    last = len(text) if last < 0 else last
    quoted = text[first:last].split("\n")
    if not _FRAME.fullmatch(text[first:start]) or not _FRAME.fullmatch(text[end:last]):
        return None
    if not all(map(_is_line_of_table, quoted)) or all(map(_RULE.fullmatch, quoted)):
        return None
    starts = [first]
    for line in quoted[:-1]:
        starts.append(starts[-1] + len(line) + 1)
    before = text[:first].split("\n")[:-1]
    above = list(takewhile(_is_line_of_table, reversed(before)))[::-1]
    below = list(takewhile(_is_line_of_table, text[last + 1 :].split("\n")[:_LOOKED_AT]))
    return _Rows(tuple(above), tuple(quoted), tuple(below), tuple(starts), cut=len(above) == len(before))


def _is_line_of_table(line: str) -> bool:
    return _RULE.fullmatch(line) is not None or len(cells(line)) > 1


def _names_in(rows: _Rows) -> list[str] | None:
    """The names of the columns, where the first of all rows has them."""
    first, *rest = (*rows.above, *rows.quoted, *rows.below)
    names = cells(first)
    if not rest or _RULE.fullmatch(first) or any(map(_PAIR.search, names)):
        return None
    below = [cells(line) for line in rest[:_LOOKED_AT] if not _RULE.fullmatch(line)]
    labelled = any(_label(cell, names) for row in below for cell in row)
    return names if _RULE.fullmatch(rest[0]) or labelled or _are_names(names, below) else None


def _names_before(quote: Quote, rows: _Rows) -> list[str] | None:
    """The names of the columns of a table that began before the source: the first line with as many as a row has."""
    below = [cells(line) for line in (*rows.quoted, *rows.below) if not _RULE.fullmatch(line)]
    for line in quote.source.hit.chunk.table_header.split("\n"):
        names = cells(line)
        if len(names) == len(below[0]) and (line.startswith("|") or _are_names(names, below)):
            return names
    return None


def _names_repeated(rows: _Rows) -> list[str] | None:
    """The names that all cells of a row repeat, as do those of the row above or below it; None where that is not so.

    The first column may have no name, as the column of the rows' own names.
    """
    quoted, *beside = [
        [label["name"] if (label := _OWN_LABEL.match(cell)) else "" for cell in cells(line)]
        for line in (rows.quoted[0], *rows.quoted[1:], *rows.above[-1:], *rows.below[:1])
    ]
    named = all(quoted[1:]) and sum(map(bool, quoted)) >= _LEAST_LABELS
    return quoted if named and quoted in beside else None


def _are_names(names: Sequence[str], below: Sequence[Sequence[str]]) -> bool:
    """Whether cells that nothing says to be names certainly are: different words above a column of data.

    Of words above words nobody can be sure, since a glossary's first row names nothing; and a printed table's names,
    which take several lines, are often in another order than its columns.
    """
    data = any(is_data_column([row[at] for row in below if at < len(row)]) for at in range(len(names)))
    words = all(_YEAR.fullmatch(name) or not any(char.isdigit() for char in name) for name in names)
    return data and words and len(set(names)) == len(names) and names_columns(names, below)


def _placed(line: str, names: Sequence[str]) -> list[_Cell] | None:
    """The cells of a row under its columns; None where it cannot be told under which.

    A row has a cell for each column, or its cells begin with the names of theirs and blank ones are left out. Cells
    that begin with other labels need no names.
    """
    found = list(_cells_of(line))
    labels = [_label(cell.text, names) for cell in found]
    if not any(labels):
        filled = [cell for cell in found if cell.text]
        says_itself = 2 * sum(bool(_PAIR.search(cell.text)) for cell in filled) > len(filled)
        return found if len(found) == len(names) and not says_itself else None
    row: list[_Cell] = []
    for cell, label in zip(found, labels, strict=True):
        column = next((at for at, name in enumerate(names) if at >= len(row) and label == f"{name}: "), len(row))
        row += [_BLANK] * (column - len(row))
        row.append(_Cell(cell.text[len(label) :], Span(cell.span.start_char + len(label), cell.span.end_char)))
    row += [_BLANK] * (len(names) - len(row))
    return row if len(row) == len(names) else None


def _cells_of(line: str) -> Iterator[_Cell]:
    """The cells of a row, Markdown's bars at its ends left out."""
    before, behind = line.strip().startswith("|"), line.rstrip().endswith("|")
    bars = [match.start() for match in _BAR.finditer(line)]
    edges = [*([] if before else [-1]), *bars, *([] if behind else [len(line)])]
    for first, last in pairwise(edges):
        raw = line[first + 1 : last]
        start = first + 1 + len(raw) - len(raw.lstrip())
        yield _Cell(raw.strip(), Span(start, start + len(raw.strip())))


def _label(cell: str, names: Sequence[str]) -> str:
    """The name of a column with the colon that a cell begins with; "" without one."""
    return next((f"{name}: " for name in names if name and cell.startswith(f"{name}: ")), "")


def _highlighted(quote: Quote, row: Sequence[_Cell], at: int) -> Span | None:
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
