"""Writes the rows of a table as canonical text in which each row is self-contained: `city: Oslo | people: 717,710`."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from ingestion.builder import TextBuilder, one_line
from ingestion.column_names import CellKind, kind_of, names_columns
from ingestion.readers.sheet_cells import address_of
from ingestion.readers.table_heads import is_head_row, labels_of
from ingestion.types import BlockKind

_LABEL_CHARS = 60  # a longer name is not repeated in each row: it may be prose in a layout table
_LOOKED_AT = 50  # rows below the first that show of which kind the columns are
_MOST_LINES = 8  # of words in one column that are read as paragraphs: a title, notes
_MOST_TITLES = 6  # rows above the names that are captions


@dataclass(frozen=True, slots=True)
class TableParts:
    """A table taken apart: captions, the row that names its columns (None where none does), and the other rows.

    `labels` are the names as the rows repeat them (`table_heads.labels_of`).
    """

    captions: tuple[Sequence[str], ...]
    names: tuple[str, ...] | None
    labels: tuple[str, ...]
    rows: tuple[Sequence[str], ...]


def parts_of(rows: Iterable[Sequence[str]]) -> TableParts:
    """Finds the captions and names of a table by the content of its first rows; blank rows and columns are left out.

    Rows of words that fill some of the columns are captions where a row of names follows.
    """
    filled = _without_blanks(rows)
    for at in range(min(_MOST_TITLES, len(filled) - 1)):
        if _has_fuller_names(filled, at):
            continue
        if _are_names(filled, at):
            if _are_names_below(filled, at + 1):
                continue
            names = tuple(map(one_line, filled[at]))
            return TableParts(tuple(filled[:at]), names, labels_of(names, filled[:at]), tuple(filled[at + 1 :]))
        if not is_head_row(filled[at], filled[at + 1]):
            break
    return TableParts((), None, (), tuple(filled))


def append_table(rows: Iterable[Sequence[str]], builder: TextBuilder) -> None:
    """Append a table whose names are to be found by content; a few lines of words in one column are paragraphs.

    Raises:
        LimitExceeded: More text than the limits allow.
    """
    parts = parts_of(rows)
    lone = len(parts.rows) == 1 and sum(bool(cell.strip()) for cell in parts.rows[0]) == 1
    if parts.names is None and (lone or (len(parts.rows) <= _MOST_LINES and all(map(_is_line, parts.rows)))):
        for row in parts.rows:
            _append(BlockKind.PARAGRAPH, _line(row), builder)
        return
    for caption in parts.captions:
        _append(BlockKind.CAPTION, _line(caption), builder)
    append_rows(parts.rows, builder, names=parts.names, labels=parts.labels)


def append_rows(
    rows: Iterable[Sequence[str]],
    builder: TextBuilder,
    *,
    names: Sequence[str] | None,
    labels: Sequence[str] | None = None,
) -> None:
    """Append a table's row of `names`, if any, and its other rows, whose cells repeat `labels`, else the names.

    The row of names is written as the rows repeat it, with the names that are too long to repeat.

    Raises:
        LimitExceeded: More text than the limits allow.
    """
    repeated = [name if len(name) <= _LABEL_CHARS else "" for name in names or ()] if labels is None else labels
    written = [label or name for label, name in zip(repeated, names or (), strict=True)]
    for line in _lines([written] if written else [], labels=()):
        _append(BlockKind.TABLE_ROW, line, builder)
    for line in _lines(rows, labels=[one_line(label) for label in repeated]):
        _append(BlockKind.TABLE_ROW, line, builder)


@dataclass(frozen=True, slots=True)
class _Line:
    """The text of a row, and the addresses of its cells in a spreadsheet: as many as the text has cells, or none."""

    text: str
    cells: tuple[str, ...]


def _append(kind: BlockKind, line: _Line, builder: TextBuilder) -> None:
    builder.append(kind, line.text, cells=line.cells)


def _lines(rows: Iterable[Sequence[str]], *, labels: Sequence[str]) -> Iterator[_Line]:
    """One line per row: its cells joined by ` | `, each after its column's label where there is one.

    Blank cells are left out, so is a row without any; `labels` are not themselves among the lines. A row with words in
    its first cell alone is the label of the section below it and has no name.
    """
    for row in rows:
        if len(labels) > 2 and _is_label(row):
            yield _line(row)
            continue
        cells, addresses = [], []
        for column, raw in enumerate(row):
            cell = one_line(raw)
            label = labels[column] if column < len(labels) else ""
            if cell:
                named = bool(label) and label != cell
                cells.append(f"{label.removesuffix(':')}: {cell}" if named else cell)
                addresses.append(address_of(raw))
        if cells:
            yield _Line(" | ".join(cells), _known(addresses))


def _known(addresses: Sequence[str]) -> tuple[str, ...]:
    """The addresses of a row's cells; none where one is missing."""
    return tuple(addresses) if all(addresses) else ()


def _are_names(rows: Sequence[Sequence[str]], at: int) -> bool:
    return names_columns(rows[at], rows[at + 1 : at + 1 + _LOOKED_AT])


def _are_names_below(rows: Sequence[Sequence[str]], at: int) -> bool:
    """Whether a row below names has the names, and that above it the groups: words over data, and none over labels."""
    if at >= min(_MOST_TITLES, len(rows) - 1) or not rows[at] or rows[at][0].strip():
        return False
    words = all(kind_of(cell) in {CellKind.WORDS, CellKind.BLANK} for cell in rows[at])
    return words and _are_names(rows, at)


def _has_fuller_names(rows: Sequence[Sequence[str]], at: int) -> bool:
    """Whether names stand below, in every column, where this row lacks some, with nothing but words in between."""
    for below in range(at, min(_MOST_TITLES, len(rows) - 1)):
        kinds = {kind_of(cell) for cell in rows[below]}
        if not kinds <= {CellKind.WORDS, CellKind.BLANK}:
            return False
        if CellKind.BLANK not in kinds:
            return below > at and len(rows[below]) == max(map(len, rows)) and _are_names(rows, below)
    return False


def _without_blanks(rows: Iterable[Sequence[str]]) -> list[Sequence[str]]:
    """The rows and columns that have a filled cell."""
    filled = [row for row in rows if any(cell.strip() for cell in row)]
    used = sorted({at for row in filled for at, cell in enumerate(row) if cell.strip()})
    if len(used) == max(map(len, filled), default=0):
        return filled
    return [[row[at] for at in used if at < len(row)] for row in filled]


def _line(row: Sequence[str]) -> _Line:
    filled = [cell for cell in row if cell.strip()]
    return _Line(" | ".join(map(one_line, filled)), _known([address_of(cell) for cell in filled]))


def _is_line(row: Sequence[str]) -> bool:
    """Whether a row is one cell of words."""
    filled = [cell for cell in row if cell.strip()]
    return len(filled) == 1 and kind_of(filled[0]) is CellKind.WORDS


def _is_label(row: Sequence[str]) -> bool:
    return bool(row) and kind_of(row[0]) is CellKind.WORDS and not any(cell.strip() for cell in row[1:])
