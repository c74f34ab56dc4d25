"""Finds running headers, footers, page numbers and watermarks.

A line is furniture when it is at the edge of at least three pages at one height and reads the same but for its
numbers, or when it is the outermost line of many pages at any height. Where it has words, it stays on the first page
that has it, marked, so that a company's address is in the text once; none of it is searched or quoted. A line is no
furniture where another line, which is none, is between it and the page's edge, nor where most lines that read like it
are elsewhere: the header of a table may be at the top of three pages.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile
from typing import TypeAlias

from ingestion.readers.pdf_lines import PrintedLine

_EDGE_LINES = 3  # lines at the top and as many at the bottom of a page that may be furniture
_LEAST_PAGES = 3
_LONG = 20  # pages of a document in which a running line is on one more
_STEP = 4  # points of height that count as one place
_SHARE = 4  # of so many pages one has an outermost line that runs at any height
_WATERMARK_PAGES = 4
_WATERMARK_SIZE = 1.5  # times the height of prose
_NUMBER = re.compile(r"\d+")
_ROMAN = re.compile(r"[ivxlc]{1,7}", re.IGNORECASE)
_WORD = re.compile(r"[^\W\d_]{2,}")
_PAGE_WORDS = frozenset({"page", "of", "seite", "von", "sheet", "página", "de", "pagina", "di", "sur", "стр", "из"})
_EDGES = " -–—|.·"


@dataclass(frozen=True, slots=True, order=True)
class _Place:
    """A line: on which page and at which place among its lines; both count from 0."""

    page: int
    line: int


_Pages: TypeAlias = Sequence[Sequence[PrintedLine]]


def without_furniture(pages: _Pages) -> list[list[PrintedLine]]:
    """The lines of every page without the repetitions of running lines; the first of each is marked `furniture`."""
    edges = [_edges(lines) for lines in pages]
    running = {place for places in _running(pages, edges) for place in places}
    reached = {
        place
        for number, ends in enumerate(edges)
        for end in ends
        for place in takewhile(running.__contains__, (_Place(number, at) for at in end))
    }
    by_text: dict[str, list[_Place]] = defaultdict(list)
    for place in sorted(reached | _watermarks(pages)):
        by_text[_masked(pages[place.page][place.line])].append(place)
    written = Counter(_masked(line) for lines in pages for line in lines)
    marked: set[_Place] = set()
    dropped: set[_Place] = set()
    for masked, places in by_text.items():
        kept = 1 if _words(masked) else 0
        mostly = not kept or 2 * len(places) > written[masked]
        if mostly and len({place.page for place in places}) >= _least(pages):
            marked.update(places[:kept])
            dropped.update(places[kept:])
    return [
        [
            replace(line, furniture=True) if _Place(number, at) in marked else line
            for at, line in enumerate(lines)
            if _Place(number, at) not in dropped
        ]
        for number, lines in enumerate(pages)
    ]


def _running(pages: _Pages, edges: Sequence[tuple[list[int], list[int]]]) -> Iterator[list[_Place]]:
    """Lines at the edges of pages that repeat, in one place or as the outermost one."""
    in_place: dict[tuple[str, int], list[_Place]] = defaultdict(list)
    outermost: dict[tuple[str, int, int], list[_Place]] = defaultdict(list)
    for number, lines in enumerate(pages):
        for at in dict.fromkeys([*edges[number][0], *edges[number][1]]):
            in_place[_masked(lines[at]), round(lines[at].bottom / _STEP)].append(_Place(number, at))
        for side, end in enumerate(edges[number]):
            for at in end[:1]:
                outermost[_masked(lines[at]), side, round(lines[at].size)].append(_Place(number, at))
    for (masked, _), places in in_place.items():
        if len({place.page for place in places}) >= _least(pages):
            yield places if _words(masked) else _counted(pages, masked, places)
    for (masked, _, _), places in outermost.items():
        if len(places) >= max(_least(pages), len(pages) / _SHARE):
            is_row = any(pages[place.page][place.line].row for place in places)  # perhaps a table's header
            yield places if _words(masked) and not is_row else _counted(pages, masked, places)


def _least(pages: _Pages) -> int:
    return _LEAST_PAGES + (len(pages) >= _LONG)


def _counted(pages: _Pages, masked: str, places: Sequence[_Place]) -> list[_Place]:
    """Those of the lines whose numbers rise with the pages, as a table's do not; all of them without numbers."""
    if "#" not in masked:
        return list(places)  # rules and ornaments
    steps: dict[int | None, list[_Place]] = defaultdict(list)
    for place in places:
        numbers = [
            int(found) for found in _NUMBER.findall(_stripped(pages[place.page][place.line]))[:8] if len(found) < 7
        ]
        if not numbers:
            steps[None].append(place)  # roman
        for number in set(numbers):
            steps[number - place.page].append(place)
    return [place for together in steps.values() if len(together) >= _LEAST_PAGES for place in together]


def _watermarks(pages: _Pages) -> set[_Place]:
    """Lines in large type that are in one place of at least every second page."""
    heights: Counter[float] = Counter()
    seen: dict[tuple[str, int], list[_Place]] = defaultdict(list)
    for number, lines in enumerate(pages):
        for at, line in enumerate(lines):
            heights[round(2 * line.size) / 2] += len(line.text)
            seen[line.text, round(line.bottom / _STEP)].append(_Place(number, at))
    if not heights:
        return set()
    large = _WATERMARK_SIZE * heights.most_common(1)[0][0]
    return {
        place
        for places in seen.values()
        if len(places) >= max(_WATERMARK_PAGES, len(pages) / 2)
        for place in places
        if pages[place.page][place.line].size >= large
    }


def _edges(lines: Sequence[PrintedLine]) -> tuple[list[int], list[int]]:
    """The lines at a page's top and at its bottom, outermost first."""
    upright = sorted((at for at, line in enumerate(lines) if line.upright), key=lambda at: -lines[at].top)
    return upright[:_EDGE_LINES], upright[: -_EDGE_LINES - 1 : -1]


def _stripped(line: PrintedLine) -> str:
    return line.text.strip(_EDGES)


def _masked(line: PrintedLine) -> str:
    """The line's text with a sign for every number."""
    text = _stripped(line)
    return "#" if _ROMAN.fullmatch(text) else _NUMBER.sub("#", text)


def _words(masked: str) -> set[str]:
    return {word.lower() for word in _WORD.findall(masked)} - _PAGE_WORDS
