"""Names the cells of a spreadsheet that a passage is in, as spreadsheet programs do: `B27`, or `A27:J27`."""

import re
from bisect import bisect_right
from collections.abc import Sequence
from itertools import takewhile

from ingestion.types import Block
from retrieval.types import Chunk, Span

_ADDRESS = re.compile(r"([A-Z]+)(\d+)")
_BETWEEN = " | "  # the cells of a row


def range_of(rows: Sequence[Block], passage: Span, *, chunk: Chunk) -> str | None:
    """The cell or the range of cells of a passage of a chunk; None where no row with known cells is in it.

    Args:
        rows: The blocks of the document that have cells, in order.
        passage: Document offsets.
        chunk: The chunk with the passage, whose text shows where in its row each cell is.
    """
    first = bisect_right(rows, passage.start_char, key=lambda row: row.end_char)
    following = (rows[at] for at in range(first, len(rows)))  # no copy: a sheet may have many
    touched = list(takewhile(lambda row: row.start_char < passage.end_char, following))
    if not touched:
        return None
    if len(touched) == 1:
        return _named(_cells_in(touched[0], passage, chunk))
    return _named([cell for row in touched for cell in row.cells])


def _cells_in(row: Block, passage: Span, chunk: Chunk) -> Sequence[str]:
    """The cells of a row that a passage touches; all of them where the chunk has not the whole row."""
    if row.start_char < chunk.start_char or row.end_char > chunk.end_char:
        return row.cells
    text = chunk.text_at(Span(row.start_char, row.end_char))
    texts = text.split(_BETWEEN)
    if len(texts) != len(row.cells):  # a cell's own text has the sign
        return row.cells
    at, found = row.start_char, []
    for cell, each in zip(row.cells, texts, strict=True):
        if at < passage.end_char and passage.start_char < at + len(each):
            found.append(cell)
        at += len(each) + len(_BETWEEN)
    return found or row.cells


def _named(cells: Sequence[str]) -> str | None:
    places = [match.groups() for cell in cells if (match := _ADDRESS.fullmatch(cell))]
    if not places:
        return None
    columns = sorted({letters for letters, _ in places}, key=lambda letters: (len(letters), letters))
    numbers = sorted({int(number) for _, number in places})
    start, end = f"{columns[0]}{numbers[0]}", f"{columns[-1]}{numbers[-1]}"
    return start if start == end else f"{start}:{end}"
