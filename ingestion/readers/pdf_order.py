"""The reading order of a page: blocks of lines, as drawn where that is consistent, else by position.

Most files draw their text in the order it is read, tables row by row, and geometry alone would tear
those apart. Only a page on which a line is above one drawn before it is sorted, by the
two rules of Breuel (2003), "High performance document layout analysis": above comes first, and a
column comes before the one right of it unless something spans both between them.
"""

from collections import Counter
from collections.abc import Sequence
from heapq import heapify, heappop, heappush
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from ingestion.readers.pdf_lines import PrintedLine

_MOST_BLOCKS = 400  # the rules take cubic time; a page of more blocks (a map, a plan) stays as drawn
_TOUCH = 1.0  # points that boxes may overlap and still count as apart


class PrintedBlock:
    """Lines directly below one another, and the box around them."""

    __slots__ = ("bottom", "left", "lines", "right", "top")

    def __init__(self, line: PrintedLine) -> None:
        self.lines = [line]
        self.left, self.bottom, self.right, self.top = line.left, line.bottom, line.right, line.top

    def add(self, line: PrintedLine) -> None:
        """Put `line` below the others."""
        self.lines.append(line)
        self.left, self.right = min(self.left, line.left), max(self.right, line.right)
        self.bottom, self.top = min(self.bottom, line.bottom), max(self.top, line.top)


def page_blocks(lines: Sequence[PrintedLine]) -> list[list[PrintedLine]]:
    """The lines of a page in blocks, in reading order; text that runs up or down the page comes last."""
    blocks = _grouped([line for line in lines if line.upright])
    if len(blocks) <= _MOST_BLOCKS and _is_disordered(blocks):
        blocks = _sorted(blocks)
    return [block.lines for block in blocks] + [[line] for line in lines if not line.upright]


def placed(lines: Sequence[PrintedLine]) -> list[PrintedLine]:
    """Unordered lines (from a picture) in reading order, by position."""
    blocks: list[PrintedBlock] = []
    for line in sorted(lines, key=lambda line: -line.top):
        above = [
            block
            for block in blocks
            if _overlap(block.lines[-1], line) > 0.5 * min(line.right - line.left, block.right - block.left)
            and -0.5 * line.size < block.bottom - line.top < 0.9 * line.size
        ]
        if above:
            max(above, key=lambda block: -block.bottom).add(line)
        else:
            blocks.append(PrintedBlock(line))
    ordered = _sorted(blocks) if len(blocks) <= _MOST_BLOCKS else blocks
    return [line for block in ordered for line in block.lines]


def _grouped(lines: Sequence[PrintedLine]) -> list[PrintedBlock]:
    pitches = Counter(
        round(2 * (above.bottom - below.bottom))
        for above, below in pairwise(lines)
        if 0 < above.bottom - below.bottom < 3 * below.size and _overlap(above, below) > 0
    )
    usual = pitches.most_common(1)[0][0] / 2 if pitches else 0.0
    blocks: list[PrintedBlock] = []
    for line in lines:
        if blocks:
            above = blocks[-1].lines[-1]
            pitch = above.bottom - line.bottom
            most = max(1.25 * usual, 1.3 * line.size)
            if 0 < pitch <= most and pitch < 2.6 * line.size and _overlap(above, line) > 0:
                blocks[-1].add(line)
                continue
        blocks.append(PrintedBlock(line))
    return blocks


def _overlap(one: PrintedLine | PrintedBlock, other: PrintedLine | PrintedBlock) -> float:
    """Points of the page's width that both take."""
    return min(one.right, other.right) - max(one.left, other.left)


def _above(one: PrintedBlock, other: PrintedBlock) -> bool:
    return one.bottom >= other.top - _TOUCH


def _is_disordered(blocks: Sequence[PrintedBlock]) -> bool:
    lowest = float("inf")
    for at, block in enumerate(blocks):
        if block.bottom > lowest + _TOUCH:  # else nothing drawn before it can be below it
            for before in blocks[:at]:
                if _above(block, before) and _overlap(block, before) > _TOUCH:
                    return True
        lowest = min(lowest, block.bottom)
    return False


def _sorted(blocks: Sequence[PrintedBlock]) -> list[PrintedBlock]:
    """Sorts topologically by Breuel's two rules; undecided pairs, cycles included, stay as drawn."""
    count = len(blocks)
    precedes = _precedes(blocks)
    after = [np.flatnonzero(row).tolist() for row in precedes]
    waits = precedes.sum(axis=0).tolist()
    free = [at for at in range(count) if not waits[at]]
    heapify(free)
    done: list[int] = []
    seen = [False] * count
    while len(done) < count:
        at = heappop(free) if free else next(at for at in range(count) if not seen[at])
        if seen[at]:
            continue
        seen[at] = True
        done.append(at)
        for follower in after[at]:
            waits[follower] -= 1
            if not waits[follower] and not seen[follower]:
                heappush(free, follower)
    return [blocks[at] for at in done]


def _precedes(blocks: Sequence[PrintedBlock]) -> npt.NDArray[np.bool_]:
    """`[a, b]`: whether block `a` must come before block `b`."""
    left, right, bottom, top = np.array([(b.left, b.right, b.bottom, b.top) for b in blocks]).T
    shared = np.minimum.outer(right, right) - np.maximum.outer(left, left) > _TOUCH
    above = shared & np.greater_equal.outer(bottom, top - _TOUCH)
    np.fill_diagonal(above, val=False)
    beside = ~shared & np.less_equal.outer(right, left + _TOUCH)
    chained = above.astype(np.float32)
    spanned = chained @ chained > 0  # a block is below the one and above the other, and spans both
    result: npt.NDArray[np.bool_] = above | (beside & ~(spanned | spanned.T))
    return result
