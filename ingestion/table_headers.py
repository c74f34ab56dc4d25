"""Looks up the column names and the caption of the table in which a chunk begins, so that it is read with them.

Both are in an earlier chunk, as the rows of a long table are in several.
"""

from bisect import bisect_right

from ingestion.tables import Table, cells, find_tables
from ingestion.types import Block, Extraction

_NAME_CHARS = 80  # of the first cell of a row
_ROW_CHARS = 200  # a shorter row is hardly ever cut


class TableHeaders:
    r"""The tables of an extraction, looked up by offset.

    Example:
        >>> TableHeaders(extraction).at(passage.start_char)
        'Table 3: Lakes\nlake | area'
    """

    def __init__(self, extraction: Extraction) -> None:
        self._text = extraction.text
        self._tables = list(find_tables(extraction))
        self._starts = [table.rows[0].start_char for table in self._tables]

    def at(self, start: int) -> str:
        """The lines that a chunk lacks when it begins at offset `start`; empty outside tables.

        These are the table's caption, its column names and the label of its section, where they are above `start`,
        and the first cell of the row when `start` is inside a row: one line each.
        """
        index = bisect_right(self._starts, start) - 1
        if index < 0 or start >= self._tables[index].rows[-1].end_char:
            return ""
        table = self._tables[index]
        lines = [part.text for part in table.parts if part.end_char <= start]
        following = table.rows[bisect_right(table.rows, start, key=lambda row: row.end_char)]
        above = bisect_right(table.labels, following.start_char, key=lambda label: label.end_char)
        lines += [label.text for label in table.labels[max(0, above - 1) : above] if label.end_char <= start]
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
        """The most that `at` may return inside each table with text in `[start, end)`; tables without it left out."""
        first, last = bisect_right(self._starts, start) - 1, bisect_right(self._starts, end - 1)
        if first < 0 or self._tables[first].rows[-1].end_char <= start:
            first += 1
        return list(filter(None, map(self._most, self._tables[first:last])))

    def _most(self, table: Table) -> str:
        names = [self._name(row) for row in table.rows if row.end_char - row.start_char > _ROW_CHARS]
        labels = [label.text for label in table.labels]
        longest = [max(lines, key=len) for lines in (labels, names) if lines]
        return "\n".join([*(part.text for part in table.parts), *longest])

    def _name(self, row: Block) -> str:
        return next(filter(None, cells(self._text[row.start_char : row.end_char])), "")[:_NAME_CHARS]
