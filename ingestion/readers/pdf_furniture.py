"""Removes running headers, footers and page numbers.

A line is furniture when it is at the edge of at least three pages at one height and reads the
same but for its numbers. Where it has words, it stays on the first page that has it: a company's
address is read once, and found, instead of a hundred times or never.
"""

import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from ingestion.readers.pdf_lines import Line

_EDGE_LINES = 3  # lines at the top and as many at the bottom of a page that may be furniture
_LEAST_PAGES = 3
_STEP = 4  # points of height that count as one place
_NUMBER = re.compile(r"\d+")
_ROMAN = re.compile(r"[ivxlc]{1,7}", re.IGNORECASE)
_WORD = re.compile(r"[^\W\d_]{2,}")
_PAGE_WORDS = frozenset({"page", "of", "seite", "von", "sheet", "página", "de", "pagina", "di", "sur", "стр", "из"})
_EDGES = " -–—|.·"


@dataclass(frozen=True, slots=True)
class _Place:
    """A line at a page's edge: on which page and at which place among its lines."""

    page: int
    line: int
    numbers: tuple[int, ...]


def without_furniture(pages: Sequence[Sequence[Line]]) -> list[list[Line]]:
    """The lines of every page without running headers and footers."""
    seen: dict[tuple[str, int], list[_Place]] = defaultdict(list)
    for number, lines in enumerate(pages):
        for at in _edges(lines):
            text = lines[at].text.strip(_EDGES)
            masked = "#" if _ROMAN.fullmatch(text) else _NUMBER.sub("#", text)
            numbers = tuple(int(found) for found in _NUMBER.findall(text)[:8] if len(found) < 7)
            seen[masked, round(lines[at].bottom / _STEP)].append(_Place(number, at, numbers))
    dropped: set[tuple[int, int]] = set()
    for (masked, _), places in seen.items():
        if len({place.page for place in places}) >= _LEAST_PAGES:
            dropped.update((place.page, place.line) for place in _furniture(masked, places))
    return [
        [line for at, line in enumerate(lines) if (number, at) not in dropped] for number, lines in enumerate(pages)
    ]


def _furniture(masked: str, places: Sequence[_Place]) -> Sequence[_Place]:
    """The repeated lines that must be removed."""
    words = {word.lower() for word in _WORD.findall(masked)} - _PAGE_WORDS
    if words:
        return places[1:]
    if "#" not in masked:
        return places  # rules and ornaments
    # Numbers alone may be a table's. Page numbers rise with the pages.
    steps: dict[int | None, list[_Place]] = defaultdict(list)
    for place in places:
        if not place.numbers:
            steps[None].append(place)  # roman
        for number in set(place.numbers):
            steps[number - place.page].append(place)
    return [place for together in steps.values() if len(together) >= _LEAST_PAGES for place in together]


def _edges(lines: Sequence[Line]) -> set[int]:
    upright = sorted((at for at, line in enumerate(lines) if line.upright), key=lambda at: -lines[at].top)
    return {*upright[:_EDGE_LINES], *upright[-_EDGE_LINES:]}
