"""Writes the rows of a table as canonical text in which each row is self-contained: `city: Oslo | people: 717,710`."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from ingestion.builder import TextBuilder, one_line
from ingestion.column_names import CellKind, kind_of, names_columns
from ingestion.types import BlockKind

_YEAR = re.compile(r"(?:19|20)\d\d")
_LABEL_CHARS = 60  # a longer name is not repeated in each row: it may be prose in a layout table
_LONG_LABEL_CHARS = 120  # the same where the content of the table shows that it is a name
_LOOKED_AT = 50  # rows below the first that show of which kind the columns are
_MOST_LINES = 8  # of words in one column that are read as paragraphs: a title, notes
_MOST_TITLES = 6  # rows above the names that are captions


@dataclass(frozen=True, slots=True)
class Parts:
    """A table taken apart: captions, the row that names its columns (None where none does), and the other rows.

    `labels` are the names as the rows repeat them: of columns with one name, each has the name of its group first.
    """

    captions: tuple[str, ...]
    names: tuple[str, ...] | None
    labels: tuple[str, ...]
    rows: tuple[Sequence[str], ...]


def parts_of(rows: Iterable[Sequence[str]]) -> Parts:
    """Finds the captions and names of a table by the content of its first rows; blank rows and columns are left out.

    Rows of words that fill some of the columns are captions where a row of names follows.
    """
    filled = _without_blanks(rows)
    for at in range(min(_MOST_TITLES, len(filled) - 1)):
        if names_columns(filled[at], filled[at + 1 : at + 1 + _LOOKED_AT]):
            names = tuple(map(one_line, filled[at]))
            captions = tuple(_line(row) for row in filled[:at])
            return Parts(captions, names, _labels(names, filled[at - 1] if at else ()), tuple(filled[at + 1 :]))
        if not (_is_title(filled[at]) or _are_groups(filled[at], filled[at + 1])):
            break
    return Parts((), None, (), tuple(filled))


def append_table(rows: Iterable[Sequence[str]], builder: TextBuilder) -> None:
    """Append a table whose names are to be found by content; a few lines of words in one column are paragraphs.

    Raises:
        LimitExceeded: More text than the limits allow.
    """
    parts = parts_of(rows)
    if parts.names is None and len(parts.rows) <= _MOST_LINES and all(map(_is_line, parts.rows)):
        for row in parts.rows:
            builder.append(BlockKind.PARAGRAPH, _line(row))
        return
    for caption in parts.captions:
        builder.append(BlockKind.CAPTION, caption)
    append_rows(parts.rows, builder, names=parts.names, labels=parts.labels)


def append_rows(
    rows: Iterable[Sequence[str]],
    builder: TextBuilder,
    *,
    names: Sequence[str] | None,
    labels: Sequence[str] | None = None,
) -> None:
    """Append a table's row of `names`, if any, and its other rows, whose cells repeat `labels`, else the names.

    Raises:
        LimitExceeded: More text than the limits allow.
    """
    for line in row_texts([names] if names else [], names=None):
        builder.append(BlockKind.TABLE_ROW, line)
    repeated = [name if len(name) <= _LABEL_CHARS else "" for name in names or ()] if labels is None else labels
    for line in row_texts(rows, names=repeated):
        builder.append(BlockKind.TABLE_ROW, line)


def row_texts(rows: Iterable[Sequence[str]], *, names: Sequence[str] | None) -> Iterator[str]:
    """One line per row: its cells joined by ` | `, each after its column's name where there is one.

    Blank cells are left out, so is a row without any; `names` are not themselves among the lines. A row with words in
    its first cell alone is the label of the section below it and has no name.
    """
    labels = [one_line(name) for name in names or ()]
    for row in rows:
        if len(labels) > 2 and _is_label(row):
            yield one_line(row[0])
            continue
        cells = []
        for column, raw in enumerate(row):
            cell = one_line(raw)
            label = labels[column] if column < len(labels) else ""
            if cell:
                named = bool(label) and label != cell
                cells.append(f"{label.removesuffix(':')}: {cell}" if named else cell)
        if cells:
            yield " | ".join(cells)


def _without_blanks(rows: Iterable[Sequence[str]]) -> list[Sequence[str]]:
    """The rows and columns that have a filled cell."""
    filled = [row for row in rows if any(cell.strip() for cell in row)]
    used = sorted({at for row in filled for at, cell in enumerate(row) if cell.strip()})
    if len(used) == max(map(len, filled), default=0):
        return filled
    return [[row[at] for at in used if at < len(row)] for row in filled]


def _labels(names: Sequence[str], groups: Sequence[str]) -> tuple[str, ...]:
    """The names, each after the name of its group where another group has a column of the same name."""
    counts = Counter(names)
    above, labels = "", []
    for at, name in enumerate(names):
        above = one_line(groups[at]) if at < len(groups) and groups[at].strip() else above
        labels.append(f"{above} {name}" if name and counts[name] > 1 and above else name)
    return tuple(label if len(label) <= _LONG_LABEL_CHARS else "" for label in labels)


def _are_groups(row: Sequence[str], following: Sequence[str]) -> bool:
    """Whether a row has words alone, and none over some filled cells below it: the names of groups of columns."""
    words = all(kind_of(cell) in {CellKind.WORDS, CellKind.BLANK} or _YEAR.fullmatch(cell.strip()) for cell in row)
    return words and any(not cell.strip() and below.strip() for cell, below in zip(row, following, strict=False))


def _line(row: Sequence[str]) -> str:
    return " | ".join(filter(None, map(one_line, row)))


def _is_title(row: Sequence[str]) -> bool:
    """Whether a row fills few of several columns, with words."""
    filled = [cell for cell in row if cell.strip()]
    few = len(filled) == 1 or 3 * len(filled) <= len(row)
    return len(row) > 1 and few and all(kind_of(cell) is CellKind.WORDS for cell in filled)


def _is_line(row: Sequence[str]) -> bool:
    """Whether a row is one cell of words."""
    filled = [cell for cell in row if cell.strip()]
    return len(filled) == 1 and kind_of(filled[0]) is CellKind.WORDS


def _is_label(row: Sequence[str]) -> bool:
    return bool(row) and kind_of(row[0]) is CellKind.WORDS and not any(cell.strip() for cell in row[1:])
