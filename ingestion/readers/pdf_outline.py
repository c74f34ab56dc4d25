"""The bookmarks of a PDF, and the lines on its pages that they name."""

from collections import defaultdict
from collections.abc import Sequence
from itertools import islice

import pypdfium2

from ingestion.normalise import normalise
from ingestion.readers.pdf_lines import PrintedLine

_MOST_BOOKMARKS = 5_000
_MOST_LEVELS = 6
_MOST_LINES = 4  # over which a heading runs
_MOST_CHARS = 300

Bookmark = tuple[int, str]  # level from 1, folded title


def bookmarks(document: pypdfium2.PdfDocument) -> dict[int, list[Bookmark]]:
    """The bookmarks that point at each page (from 0), in order; the deepest and those past a cap are left out."""
    found: dict[int, list[Bookmark]] = defaultdict(list)
    for mark in islice(document.get_toc(max_depth=_MOST_LEVELS), _MOST_BOOKMARKS):
        destination = mark.get_dest()
        page = destination.get_index() if destination else None
        title = folded(normalise(mark.get_title()[:_MOST_CHARS]))
        if page is not None and title:
            found[page].append((mark.level + 1, title))
    return found


def heading_levels(marks: Sequence[Bookmark], lines: Sequence[PrintedLine]) -> dict[int, int]:
    """The level of every line of a page that a bookmark names, by the line's identity (`id`).

    Lines that make up one heading together have the same level. Case, punctuation and a number in
    front may differ between the bookmark and the page.
    """
    levels: dict[int, int] = {}
    if not marks:
        return levels
    texts = [folded(line.text) for line in lines]
    taken: set[int] = set()
    for level, title in marks:
        for first in range(len(texts)):
            if first in taken:
                continue
            last = _match(title, texts, first)
            if last:
                taken.update(range(first, last))
                levels.update((id(lines[at]), level) for at in range(first, last))
                break
    return levels


def _match(title: str, texts: Sequence[str], first: int) -> int:
    """The end of the lines from `first` on that make up `title`, 0 where they do not."""
    wanted = _without_number(title)
    together = ""
    for last in range(first, min(first + _MOST_LINES, len(texts))):
        together += texts[last]
        given = _without_number(together)
        if together == title or (given and given == wanted):
            return last + 1
        if not (title.startswith(together) or (given and wanted.startswith(given)) or not given):
            return 0
    return 0


def folded(text: str) -> str:
    """`text` as letters and digits alone, without case."""
    return "".join(char for char in text.casefold() if char.isalnum())


def _without_number(text: str) -> str:
    return text.lstrip("0123456789")
