"""Numbers the sources of a prompt, and so the footnotes of the answer: the headers and markers that show a number.

A source has one number from the prompt (`[2] report.pdf, pages 3-4`) to the footnote that cites it (`[2]`). All code
that writes, reads or removes numbers uses this module; a decoder that allows only markers of presented sources
has its own grammar (`generation.citation_grammar`).
"""

import re
from collections.abc import Callable
from dataclasses import replace

from retrieval.types import Chunk, Source

MARKER = re.compile(r"\[\s*(\d{1,3}(?:\s*[,;]\s*\d{1,3})*)\s*\]")
"""A marker as models and documents write it, `[1]` or `[1, 2]`; the group holds the numbers."""

UNCLOSED_MARKER = re.compile(r"\[\s*\d{1,3}(?:\s*[,;]\s*\d{1,3})*\s*\Z")
"""The end of a text that a "]" would turn into a marker."""

MARKER_START = re.compile(r"\[[\d\s,;]{0,24}\Z")
"""A text that further characters may complete to a marker."""

_BEFORE_AND_MARKER = re.compile(rf"(?<!\s)\s*+{MARKER.pattern}")
# A header is there to name the source; a 4 KB filename must not eat the budget.
_LABEL_CHARS = 100


def marker(number: int) -> str:
    """The marker of a source, `[2]`."""
    return f"[{number}]"


def numbers_in(found: re.Match[str]) -> list[int]:
    """The source numbers of a match of `MARKER`, in order."""
    return [int(number) for number in re.findall(r"\d+", found[1])]


def without_markers(text: str) -> str:
    """`text` without its markers and the white space before them."""
    return _BEFORE_AND_MARKER.sub("", text)


def header_of(number: int, chunk: Chunk) -> str:
    """The line above a source, `[2] report.pdf, pages 3-4 — Revenue`; always one line."""
    pages, heading = _pages(chunk), _heading(chunk)
    line = f"{marker(number)} {_label(chunk.filename)}"
    if pages:
        line += f", {pages}"
    if heading:
        line += f" — {heading}"
    return line + "\n"


def place_of(chunk: Chunk) -> str:
    """Where a chunk is in its document, as a source's header says it: `pages 3-4 — Revenue`; "" where nothing says it.

    In a spreadsheet the heading is the sheet.
    """
    return " — ".join(filter(None, (_pages(chunk), _heading(chunk))))


def number_at(place: int) -> int:
    """The number of the source at `place` of the prompt; places count from 0, numbers from 1."""
    return place + 1


def numbered(source: Source, place: int, *, count_tokens: Callable[[str], int]) -> Source:
    """`source` as the one at `place` of the prompt, from 0: with its number, its header and its tokens."""
    number = number_at(place)
    header = header_of(number, source.hit.chunk)
    return replace(source, number=number, header=header, tokens=count_tokens(header) + count_tokens(source.body))


def _pages(chunk: Chunk) -> str:
    """`page 3` or `pages 3-4`, "" where the format has none."""
    if chunk.page_start is None:
        return ""
    last = chunk.page_end if chunk.page_end is not None else chunk.page_start
    return f"page {last}" if last == chunk.page_start else f"pages {chunk.page_start}-{last}"


def _heading(chunk: Chunk) -> str:
    return _label(chunk.heading_path[-1]) if chunk.heading_path else ""


def _label(name: str) -> str:
    line = " ".join(name.split())
    if not line.isprintable():
        line = "".join(char for char in line if char.isprintable())
    return line if len(line) <= _LABEL_CHARS else line[: _LABEL_CHARS - 1] + "…"
