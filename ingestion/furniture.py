"""Marks the blocks of a read document that are no passages: lines of marks, and what repeats on its slides."""

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace

from ingestion.types import Block, BlockKind, Extraction, MediaType

_SLIDES = frozenset({MediaType.PPTX, MediaType.PPT, MediaType.ODP})
_LEAST_SLIDES = 4
_RUNNING_CHARS = 200  # a longer text that repeats is content
_RUNNING = frozenset({BlockKind.PARAGRAPH, BlockKind.LIST_ITEM, BlockKind.CAPTION})
_SET_APART = _RUNNING | {BlockKind.TABLE_ROW}
_NUMBER = re.compile(r"\d+")
# Marks that frame or separate; others stand for words: a tick, a cross, an emoji, a currency.
_MARKS_ONLY = re.compile(r"[\s|/\\_.,:;·•…*#=~^<>«»‹›()\[\]{}®©™°†‡§¶\-\u2010-\u2015\u2500-\u259f\uf000-\uf0ff]+")
_VERBATIM = frozenset({MediaType.TEXT, MediaType.MARKDOWN, MediaType.CODE, MediaType.CSV})


def with_furniture(extraction: Extraction) -> Extraction:
    """The extraction with the kind `furniture` for such blocks; its text and every offset stay the same.

    Files that are text themselves are left as they are: a line of marks in them is a part of how they are written.
    A document of nothing but furniture has none, so that it can be found.
    """
    blocks = extraction.blocks
    if extraction.media_type not in _VERBATIM:
        found = set(_marks(extraction))
        if extraction.media_type in _SLIDES:
            found.update(_repeated(extraction))
        blocks = tuple(
            replace(block, kind=BlockKind.FURNITURE) if at in found else block for at, block in enumerate(blocks)
        )
    if all(block.kind is BlockKind.FURNITURE for block in blocks):
        blocks = tuple(replace(block, kind=BlockKind.PARAGRAPH) for block in blocks)
    return extraction if blocks == extraction.blocks else replace(extraction, blocks=blocks)


def _marks(extraction: Extraction) -> Iterator[int]:
    """The blocks of marks alone that say nothing: trademarks, and rules and ornaments where a section begins or ends.

    Inside a section a rule stays, for a passage would end there; so does a row of marks inside a table.
    """
    blocks = extraction.blocks
    run: list[int] = []
    at_edge = True
    for at, block in enumerate(blocks):
        if block.kind in _SET_APART and _MARKS_ONLY.fullmatch(extraction.text, block.start_char, block.end_char):
            run.append(at)
            continue
        ends = block.kind in {BlockKind.HEADING, BlockKind.FURNITURE}
        yield from (
            one for one in run if at_edge or ends or (_is_trademark(extraction, one) and not _in_table(blocks, one))
        )
        run, at_edge = [], ends
    yield from run


def _is_trademark(extraction: Extraction, at: int) -> bool:
    block = extraction.blocks[at]
    return any(char in "®©™" for char in extraction.text[block.start_char : block.end_char])


def _in_table(blocks: Sequence[Block], at: int) -> bool:
    around = (*blocks[max(at - 1, 0) : at], *blocks[at + 1 : at + 2])
    return blocks[at].kind is BlockKind.TABLE_ROW and any(one.kind is BlockKind.TABLE_ROW for one in around)


def _repeated(extraction: Extraction) -> Iterator[int]:
    """The short blocks that read the same, but for their numbers, on at least every second slide."""
    seen: dict[str, list[int]] = defaultdict(list)
    for at, block in enumerate(extraction.blocks):
        if block.kind in _RUNNING and block.end_char - block.start_char <= _RUNNING_CHARS:
            seen[_NUMBER.sub("#", extraction.text[block.start_char : block.end_char])].append(at)
    least = max(_LEAST_SLIDES, len(extraction.pages) / 2)
    for places in seen.values():
        if len({extraction.blocks[at].page for at in places}) >= least:
            yield from places
