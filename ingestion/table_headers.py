"""Finds the column names and captions of tables, so that a chunk of a table's rows is read with them.

A chunk that begins inside a table has neither the table's caption nor the names of its columns, which are in an
earlier chunk.
"""

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ingestion.builder import one_line
from ingestion.column_names import names_columns
from ingestion.types import Block, BlockKind, Extraction, MediaType

_BAR = re.compile(r"(?<!\\)\|")
_PAIR = re.compile(r":\s+\S")  # a label and its value
_CAPTION_CHARS = 200  # a longer paragraph above a table is prose
_COLUMNS_CHARS = 600
_NAME_CHARS = 80  # of the first cell of a row
_CAPTION_BLOCKS = 3  # how far above the rows a caption may be
_ROW_CHARS = 200  # a shorter row is hardly ever cut
_LOOKED_AT = 12  # rows below the first that show of which kind the columns are


@dataclass(frozen=True, slots=True)
class Part:
    """A line that explains a table's rows, and the offset in the canonical text where it ends."""

    text: str
    end_char: int


@dataclass(frozen=True, slots=True)
class Table:
    """The rows of a table in document order, never empty, and the lines that explain them, top first."""

    rows: tuple[Block, ...]
    parts: tuple[Part, ...]


class TableHeaders:
    r"""The tables of an extraction, looked up by offset.

    Example:
        >>> TableHeaders(extraction).at(passage.start_char)
        'Table 3: Lakes\nlake | area'
    """

    def __init__(self, extraction: Extraction) -> None:
        self._text = extraction.text
        self._tables = list(_tables(extraction))
        self._starts = [table.rows[0].start_char for table in self._tables]

    def at(self, start: int) -> str:
        """The lines that a chunk lacks when it begins at offset `start`; empty outside tables.

        These are the table's caption and column names, where they are above `start`, and the first cell of the row
        when `start` is inside a row: one line each.
        """
        index = bisect_right(self._starts, start) - 1
        if index < 0 or start >= self._tables[index].rows[-1].end_char:
            return ""
        table = self._tables[index]
        lines = [part.text for part in table.parts if part.end_char <= start]
        if row := self.row_around(start):
            name = self._name(row)
            lines += [name] if name and start >= row.start_char + len(name) else []
        return "\n".join(lines)

    def row_around(self, at: int) -> Block | None:
        """The row that has characters on both sides of offset `at`."""
        index = bisect_right(self._starts, at) - 1
        if index < 0:
            return None
        rows = self._tables[index].rows
        row = rows[bisect_right(rows, at, key=lambda row: row.start_char) - 1]
        return row if row.start_char < at < row.end_char else None

    def within(self, start: int, end: int) -> list[str]:
        """The most that `at` may return inside each table that begins in `[start, end)`; tables without it left out."""
        first, last = bisect_right(self._starts, start - 1), bisect_right(self._starts, end - 1)
        return list(filter(None, map(self._most, self._tables[first:last])))

    def _most(self, table: Table) -> str:
        long = [row for row in table.rows if row.end_char - row.start_char > _ROW_CHARS]
        names = [self._name(row) for row in long]
        return "\n".join([*(part.text for part in table.parts), *sorted(names, key=len)[-1:]])

    def _name(self, row: Block) -> str:
        return next(filter(None, cells(self._text[row.start_char : row.end_char])), "")[:_NAME_CHARS]


def cells(row: str) -> list[str]:
    """The cells of a row of canonical text, `a | b` or Markdown's `| a | b |`, each on one line."""
    return [one_line(cell) for cell in _BAR.split(row.strip().removeprefix("|").removesuffix("|"))]


def _tables(extraction: Extraction) -> Iterator[Table]:
    """Every run of neighbouring table rows; running lines of a page may be between them."""
    blocks = [block for block in extraction.blocks if block.kind is not BlockKind.FURNITURE]
    at = 0
    while at < len(blocks):
        first = at
        while at < len(blocks) and blocks[at].kind is BlockKind.TABLE_ROW:
            at += 1
        if at > first:
            rows = blocks[first:at]
            yield Table(tuple(rows), (*_caption(extraction, blocks[:first]), *_columns(extraction, rows)))
        at += 1


def _caption(extraction: Extraction, above: Sequence[Block]) -> list[Part]:
    """The short lines directly above a table, up to its caption; without a caption the last of them alone.

    A heading above a table is no caption: it is in the heading path of the rows.
    """
    found: list[Part] = []
    for block in reversed(above[-_CAPTION_BLOCKS:]):
        if block.kind not in {BlockKind.PARAGRAPH, BlockKind.CAPTION}:
            break
        if block.end_char - block.start_char > _CAPTION_CHARS:
            break
        found.insert(0, Part(one_line(extraction.text[block.start_char : block.end_char]), block.end_char))
        if block.kind is BlockKind.CAPTION:
            return found
    return found[-1:]


def _columns(extraction: Extraction, rows: Sequence[Block]) -> list[Part]:
    """The first row, where it names the columns and the other rows do not repeat the names themselves."""
    if len(rows) < 2:
        return []
    texts = [extraction.text[row.start_char : row.end_char] for row in rows[: _LOOKED_AT + 1]]
    names, *below = map(cells, texts)
    if any(_PAIR.search(name) for name in names):
        return []
    named = {name.partition(":")[0] for name in names if name}
    if any(mark and name in named for name, mark, _ in (cell.partition(":") for cell in below[0])):
        return []
    if extraction.media_type is not MediaType.MARKDOWN and not names_columns(names, below):
        return []
    return [Part(one_line(texts[0])[:_COLUMNS_CHARS], rows[0].end_char)]
