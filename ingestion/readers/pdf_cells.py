"""Finds the cells of a printed line by the gaps between its words, so that labels, values and columns stay apart."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

Box = tuple[float, float, float, float]
"""Left, bottom, right and top of a glyph."""

_WORD = re.compile(r"[^ ]+")
_SURE_GAP = 2.0  # times the height of the line: wider than any blank
_LEAST_GAP = 1.2  # the same where the other gaps of the line are narrow; wider than after a sentence
_NARROW = 4.0  # a gap this many times the narrowest is no blank of a justified line
_LONE_GAP = 3.5  # the only gap of a line between words, which there is nothing to compare with
_LABEL = re.compile(r"[^:]*:(?: .*)?")  # perhaps with its value
_NUMBER = re.compile(r"[$€£¥(+−–-]{0,3}\d[\d.,]*[)%]{0,2}")
_ENUMERATOR = re.compile(
    r"\W{1,2}|\(?\w{1,2}[.)]|\d+(?:\.\d+)*\.?|[IVXLC]+\.?"
    r"|(?:Item|Chapter|Part|Section|Article|Appendix|Note|Figure|Fig\.|Table|Exhibit|Kapitel|Abschnitt)\s\w{1,5}[.:]?",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class PrintedRow:
    """A line's cells joined by ` | `; `last_left` is where the last cell begins, in points."""

    text: str
    last_left: float


def row_of(text: str, box: Callable[[int], Box], *, size: float, sparse: bool) -> PrintedRow | None:
    """The cells of a line; None where it has one cell alone.

    A label that ends with a colon and its value are one cell, `Seats: 4`, so that neither is read with its neighbours.

    Args:
        text: The words of the line with blanks between them.
        box: The box of the glyph of a character of `text`.
        size: The height of the line in points.
        sparse: The line is much wider than prose of its length. A gap wider than `size` then ends a cell. In other
            lines it must be wider, and wider than a justified line's blanks.
    """
    words = list(_WORD.finditer(text))
    lefts = [box(word.start())[0] for word in words]
    gaps = [left - box(word.end() - 1)[2] for word, left in zip(words, lefts[1:], strict=False)]
    if not gaps:
        return None
    least = size if sparse else _limit(gaps, size, words[0].group(), words[-1].group())
    starts = [0, *(at for at, gap in enumerate(gaps, start=1) if gap > least)]
    cells = [" ".join(word.group() for word in words[first:end]) for first, end in pairwise([*starts, len(words)])]
    if len(cells) < 2 or (not sparse and _is_numbered(cells)):
        return None
    return PrintedRow(" | ".join(_pairs(cells)), lefts[starts[-1]])


def _limit(gaps: Sequence[float], size: float, first: str, last: str) -> float:
    """The gap above which a cell ends in a line that is not sparse, of its `first` to its `last` word."""
    if max(gaps) > _SURE_GAP * size and len(gaps) > 1:
        return size
    if len(gaps) == 1:
        return (_LEAST_GAP if first.endswith(":") or _NUMBER.fullmatch(last) else _LONE_GAP) * size
    return max(_LEAST_GAP * size, _NARROW * min(gaps))


def _is_numbered(cells: Sequence[str]) -> bool:
    """Whether a line is a numbered heading or an item with its mark, perhaps with a label after the mark."""
    mark, _, rest = cells[0].partition(" ")
    labelled = rest.endswith(":") and _ENUMERATOR.fullmatch(mark)
    alone = _ENUMERATOR.fullmatch(cells[0]) and not _NUMBER.fullmatch(cells[1])
    return len(cells) == 2 and bool(labelled or alone)


def _pairs(cells: Sequence[str]) -> list[str]:
    """The cells with each label joined to its value, where it has one value alone."""
    joined: list[str] = []
    for at, cell in enumerate(cells):
        alone = at + 1 == len(cells) or _LABEL.fullmatch(cells[at + 1])
        if joined and joined[-1] == cells[at - 1] and joined[-1].endswith(":") and alone and not _LABEL.fullmatch(cell):
            joined[-1] += f" {cell}"
        else:
            joined.append(cell)
    return joined
