"""Finds the tables among the blocks of an extraction, with the lines that explain their rows.

In most formats the rows of a table follow each other. On the pages of a PDF, a table is printed: the names of its
columns take several lines, some of which were read as paragraphs, and labels stand between its rows.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ingestion.builder import one_line
from ingestion.column_names import CellKind, kind_of, names_columns
from ingestion.types import Block, BlockKind, Extraction, MediaType

_BAR = re.compile(r"(?<!\\)\|")
_PAIR = re.compile(r":\s+\S")  # a label and its value
_YEAR = re.compile(r"(?:19|20)\d\d")
_CAPTION_CHARS = 200  # a longer paragraph above a table is prose
_COLUMNS_CHARS = 600
_CAPTION_BLOCKS = 3  # how far above the rows a caption may be
_LOOKED_AT = 12  # rows below the first that show of which kind the columns are
_LINE_CHARS = 80  # a longer paragraph is neither a printed column's name nor a label between rows
_MOST_LINES = 8  # of names between the first row of them and the first of data
_MOST_LABELS = 2  # between two rows of data


@dataclass(frozen=True, slots=True)
class Part:
    """A line that explains a table's rows, and the offset in the canonical text where it ends."""

    text: str
    end_char: int


@dataclass(frozen=True, slots=True)
class Table:
    """The rows of a table in document order, never empty, and the lines that explain them, top first.

    `labels` explain the rows below them up to the next label.
    """

    rows: tuple[Block, ...]
    parts: tuple[Part, ...]
    labels: tuple[Part, ...] = ()


def cells(row: str) -> list[str]:
    """The cells of a row of canonical text, `a | b` or Markdown's `| a | b |`, each on one line."""
    return [one_line(cell) for cell in _BAR.split(row.strip().removeprefix("|").removesuffix("|"))]


def find_tables(extraction: Extraction) -> Iterator[Table]:
    """Every table in document order; running lines of a page may be between its rows."""
    blocks = [block for block in extraction.blocks if block.kind is not BlockKind.FURNITURE]
    printed = extraction.media_type is MediaType.PDF
    at = 0
    while at < len(blocks):
        if blocks[at].kind is not BlockKind.TABLE_ROW:
            at += 1
            continue
        table = _printed(extraction.text, blocks, at) if printed else None
        if table is None:
            end = at
            while end < len(blocks) and blocks[end].kind is BlockKind.TABLE_ROW:
                end += 1
            rows = blocks[at:end]
            table = Table(tuple(rows), (*_caption(extraction.text, blocks, at), *_columns(extraction, rows)))
        last = table.rows[-1]
        while at < len(blocks) and blocks[at].start_char <= last.start_char:
            at += 1
        yield table


def _caption(text: str, blocks: Sequence[Block], first_row: int) -> list[Part]:
    """The short lines directly above a table, up to its caption; without a caption the last of them alone.

    A heading above a table is no caption: it is in the heading path of the rows.
    """
    found: list[Part] = []
    for block in reversed(blocks[max(0, first_row - _CAPTION_BLOCKS) : first_row]):
        if block.kind not in {BlockKind.PARAGRAPH, BlockKind.CAPTION}:
            break
        if block.end_char - block.start_char > _CAPTION_CHARS:
            break
        found.insert(0, _part(text, block))
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


def _printed(text: str, blocks: Sequence[Block], first: int) -> Table | None:
    """The table of numbers that begins with row `first`, labels and lines of names between its rows; None where not.

    It ends before another row of names, and where a paragraph is long or rows have another number of numbers.
    """
    rows: list[Block] = []
    names: list[Block] = []
    labels: list[Block] = []
    between: list[Block] = []
    numbers = 0  # in the last row of data
    for block in map(blocks.__getitem__, range(first, len(blocks))):  # no copy: there may be many tables
        if block.kind is BlockKind.TABLE_ROW:
            found = _numbers(text, block)
            if numbers and (not found or (between and found != numbers)):
                break
            if found and not numbers and between and text[between[-1].start_char : between[-1].end_char].endswith(":"):
                labels.append(between.pop())
            (labels if numbers else names).extend(between)
            if not found:
                names.append(block)
            if len(names) > 2 * _MOST_LINES:
                return None
            rows.append(block)
            between, numbers = [], found
        elif not _is_line(block) or len(between) >= (_MOST_LABELS if numbers else _MOST_LINES):
            break
        else:
            between.append(block)
    if not numbers or len(rows) == len(names):
        return None
    above = _printed_above(text, blocks, first) if not names else _caption(text, blocks, first)
    return Table(tuple(rows), (*above, *_lines(text, names)), tuple(_part(text, block) for block in labels))


def _printed_above(text: str, blocks: Sequence[Block], first_row: int) -> list[Part]:
    """The short lines above a row of data that has no row of names above it: its columns, its unit."""
    start = first_row
    while start > max(0, first_row - _MOST_LINES) and _is_line(blocks[start - 1]):
        start -= 1
    above = blocks[start:first_row]
    return _lines(text, above) if len(above) > 1 else _caption(text, blocks, first_row)


def _lines(text: str, blocks: Sequence[Block]) -> list[Part]:
    """Rows a line each; paragraphs between them, each of which may name a column, in one line."""
    parts: list[Part] = []
    was_row = True
    for block in blocks:
        part, is_row = _part(text, block), block.kind is BlockKind.TABLE_ROW
        if parts and not is_row and not was_row:
            parts[-1] = Part(f"{parts[-1].text} | {part.text}", part.end_char)
        else:
            parts.append(part)
        was_row = is_row
    return [Part(part.text[:_COLUMNS_CHARS], part.end_char) for part in parts]


def _numbers(text: str, row: Block) -> int:
    """How many numbers a row of data has: amounts and signs for none; a row of words and years has 0."""
    kinds = [
        CellKind.WORDS if _YEAR.fullmatch(cell) else kind_of(cell)
        for cell in cells(text[row.start_char : row.end_char])
        if cell not in {"$", "€", "£", "¥", ")", "%"}
    ]
    signs = sum(kind in {CellKind.NUMBER, CellKind.MARK} for kind in kinds)
    return signs if CellKind.NUMBER in kinds or (CellKind.MARK in kinds and len(kinds) > 1) else 0


def _is_line(block: Block) -> bool:
    short = block.end_char - block.start_char <= _LINE_CHARS
    return short and block.kind in {BlockKind.PARAGRAPH, BlockKind.CAPTION}


def _part(text: str, block: Block) -> Part:
    return Part(one_line(text[block.start_char : block.end_char]), block.end_char)
