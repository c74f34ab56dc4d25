"""Tells the names of a table's columns, and which cell of a row belongs to which.

The rows of spreadsheets and web pages repeat the names ("Part: Bolt | Price: 3 EUR"). Else the names are in the table's
first row where the source has it, or in its `table_header`.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from ingestion.column_names import is_data_column, names_columns
from ingestion.tables import cells
from retrieval.types import Span

RULE = re.compile(r"\s*+\|?\s*+:?-++:?\s*+(?:\|\s*+:?-++:?\s*+)*\|?\s*+")
"""The line below the names of a Markdown table."""

_BAR = re.compile(r"(?<!\\)\|")
_PAIR = re.compile(r":\s+\S")  # a label and its value
_OWN_LABEL = re.compile(r"(?P<name>[^:|]{1,120}): (?=\S)")  # as long as ingestion writes the names into rows
_LEAST_LABELS = 2
_YEAR = re.compile(r"(?:19|20)\d\d")
_MOST_NAME_CHARS = 600  # of all columns; longer ones are data
_LOOKED_AT = 12  # rows below the names that show whether they are names


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell under a column: its text without the column's name, and the characters of its line that it is."""

    text: str
    span: Span


BLANK = Cell("", Span(0, 0))


@dataclass(frozen=True, slots=True)
class TableRows:
    """Lines of a table, with those directly above and below them in the text.

    `cut` says that the text begins with the first of all these lines, so that the table may have begun before it.
    """

    above: tuple[str, ...]
    lines: tuple[str, ...]
    below: tuple[str, ...]
    cut: bool

    @property
    def data(self) -> list[str]:
        """The lines that are rows."""
        return [line for line in self.lines if not RULE.fullmatch(line)]


@dataclass(frozen=True, slots=True)
class Columns:
    """The names of a table's columns. `own` says that the first of its lines has them, `repeated` that each row has."""

    names: tuple[str, ...]
    own: bool = False
    repeated: bool = False


def columns_of(rows: TableRows, table_header: str) -> Columns | None:
    """The names of the columns; None where none are certain.

    Args:
        rows: Lines of the table.
        table_header: What the text lacks of a table that began before it.
    """
    columns: Columns | None = None
    if not rows.data:
        return None
    if rows.cut and (names := _names_before(table_header, rows)) is not None:
        columns = Columns(tuple(names))
    elif (names := _names_in(rows)) is not None:
        columns = Columns(tuple(names), own=not rows.above)
    elif (names := _names_repeated(rows)) is not None:
        columns = Columns(tuple(names), repeated=True)
    return None if columns is None or sum(map(len, columns.names)) > _MOST_NAME_CHARS else columns


def is_line_of_table(line: str) -> bool:
    """Whether a line has several cells, or rules a table."""
    return RULE.fullmatch(line) is not None or len(cells(line)) > 1


def _names_in(rows: TableRows) -> list[str] | None:
    """The names of the columns, where the first of all rows has them."""
    first, *rest = (*rows.above, *rows.lines, *rows.below)
    names = cells(first)
    if not rest or RULE.fullmatch(first) or any(map(_PAIR.search, names)):
        return None
    below = [cells(line) for line in rest[:_LOOKED_AT] if not RULE.fullmatch(line)]
    labelled = any(_label(cell, names) for row in below for cell in row)
    return names if RULE.fullmatch(rest[0]) or labelled or _are_names(names, below) else None


def _names_before(table_header: str, rows: TableRows) -> list[str] | None:
    """The names of the columns of a table that began before the source: the first line with as many as a row has."""
    below = [cells(line) for line in (*rows.data, *rows.below) if not RULE.fullmatch(line)]
    for line in table_header.split("\n"):
        names = cells(line)
        if len(names) == len(below[0]) and (line.startswith("|") or _are_names(names, below)):
            return names
    return None


def _names_repeated(rows: TableRows) -> list[str] | None:
    """The names that all cells of a row repeat, as do those of the row above or below it; None where that is not so.

    The first column may have no name, as the column of the rows' own names.
    """
    quoted, *beside = [
        [label["name"] if (label := _OWN_LABEL.match(cell)) else "" for cell in cells(line)]
        for line in (rows.lines[0], *rows.lines[1:], *rows.above[-1:], *rows.below[:1])
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


def placed(line: str, names: Sequence[str]) -> list[Cell] | None:
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
    row: list[Cell] = []
    for cell, label in zip(found, labels, strict=True):
        column = next((at for at, name in enumerate(names) if at >= len(row) and label == f"{name}: "), len(row))
        row += [BLANK] * (column - len(row))
        row.append(Cell(cell.text[len(label) :], Span(cell.span.start_char + len(label), cell.span.end_char)))
    row += [BLANK] * (len(names) - len(row))
    return row if len(row) == len(names) else None


def _cells_of(line: str) -> Iterator[Cell]:
    """The cells of a row, Markdown's bars at its ends left out."""
    before, behind = line.strip().startswith("|"), line.rstrip().endswith("|")
    bars = [match.start() for match in _BAR.finditer(line)]
    edges = [*([] if before else [-1]), *bars, *([] if behind else [len(line)])]
    for first, last in pairwise(edges):
        raw = line[first + 1 : last]
        start = first + 1 + len(raw) - len(raw.lstrip())
        yield Cell(raw.strip(), Span(start, start + len(raw.strip())))


def _label(cell: str, names: Sequence[str]) -> str:
    """The name of a column with the colon that a cell begins with; "" without one."""
    return next((f"{name}: " for name in names if name and cell.startswith(f"{name}: ")), "")
