"""Tells headings from the lines that only look like them. A heading names a passage, and is no answer to a question.

A document without punctuation at the ends of its lines (slides, lists of names) has many lines that look like headings
(`retrieval.units`). Only what certainly is one is left out of the candidates.
"""

import re
from collections.abc import Iterable, Sequence

from retrieval.types import Chunk
from retrieval.units import Unit, is_heading_line, is_title_case

_MARKS = re.compile(r"^(?:#++\s*+|[*_]++|(?:[\dIVXivx]++[.)])++\s++|\d++(?:\.\d++)++\s++)++|(?<![*_:\s])[*_:\s]++$")
_LABELLED = re.compile(r":\s+\S")  # a label and its value
_STOP = re.compile(r"[.!?…][\"'”’)\]]*$")
_NAMES_COLUMNS = re.compile(r"[^\S\n]*+\n\s*+\|?\s*+:?-{2,}")
_FEW_WORDS = 3


def headings_of(chunks: Iterable[Chunk]) -> frozenset[str]:
    """The headings and titles above passages, to be compared with `bare`."""
    return frozenset(bare(line) for chunk in chunks for line in (*chunk.heading_path, chunk.title) if line)


def bare(line: str) -> str:
    """A line without the marks and the number of a heading, folded.

    >>> bare("## 2.1 Costs:")
    'costs'
    """
    return " ".join(_MARKS.sub("", line.strip()).split()).casefold()


def is_heading_alone(text: str, units: Sequence[Unit], at: int, known: frozenset[str]) -> bool:
    """Whether the unit at `at` of `text` is a heading without the text below it.

    Args:
        text: The text.
        units: Its units, in reading order.
        at: A place in `units`.
        known: The document's headings, as `headings_of` has them.
    """
    unit = units[at]
    line = text[unit.span.start_char : unit.span.end_char]
    if _STOP.search(line):
        return False
    if bare(line) in known:
        return True
    if not unit.heading or "|" in line:
        return unit.heading and _NAMES_COLUMNS.match(text, unit.span.end_char) is not None
    beside = [units[other] for other in (at - 1, at + 1) if 0 <= other < len(units)]
    apart = not any(one.heading for one in beside) and not _LABELLED.search(line)
    return line.startswith("#") or (apart and _like_a_title(line))


def behind_heading(text: str, known: frozenset[str]) -> int:
    r"""Where the text below a heading begins, in a passage that begins with one; 0 where it does not, or has no more.

    A passage that joins short sections has headings of its own, which are known by their looks alone.

    >>> behind_heading("The line\n\nIt was founded in 1912.", frozenset({"the line"}))
    10
    """
    line, _, below = text.partition("\n")
    if not below.strip() or not (bare(line) in known or _stands_above(line, below)):
        return 0
    return len(text) - len(below.lstrip())


def _stands_above(line: str, below: str) -> bool:
    """Whether a line is a heading by its looks: a blank line follows, and text that does not go on with it."""
    return below.startswith("\n") and is_heading_line(line) and not below.lstrip()[:1].islower()


def _like_a_title(line: str) -> bool:
    """Whether a line begins with a capital, and is of few words or has its long ones written with capitals."""
    return line[0].isupper() and (len(line.split()) <= _FEW_WORDS or is_title_case(line))
