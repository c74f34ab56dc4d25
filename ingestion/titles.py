"""The title of a document, for people, for search and for the models that read its passages.

The properties of a file often hold a name that is no title: "(anonymous)", a filing number, "Microsoft Word - x.doc".
So they are believed only where the document itself uses their words. Otherwise its title is what its first page shows
in the largest type, or its first heading; a document without either has the words of its file's name.
"""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TypeAlias

Printed: TypeAlias = tuple[str, float]
"""A printed line: its text, and the height of its type in points."""

OPENING_CHARS = 3_000
"""How many characters of a document without pages count as its opening."""

_MOST_CHARS = 300  # a title names the document in lists; a longer one is cut
_MOST_LINES = 3
_LARGER = 1.15  # times the height of prose, from which on type is larger
_SAME = 0.9  # of the largest height, from which on lines have the same type
_WHOLE_TITLE = 3  # words of a title that needs no further line
_LINE_CHARS = 150
_COVER_CHARS = 600
_HEADINGS = 2  # lines on later pages, from which on their type is that of headings
_WORD = re.compile(r"\w+")
_LETTER_RUN = re.compile(r"[^\W\d_]{2,}")
_ADDRESS = re.compile(r"https?://|www\.|\w@\w|\w\.(?:com|org|net|gov|edu|de|eu)\b", re.IGNORECASE)
_PROGRAM = re.compile(r"^Microsoft (?:Office )?(?:Word|PowerPoint|Excel) ?- ?", re.IGNORECASE)
_EXTENSION = re.compile(r"\.[A-Za-z][A-Za-z0-9]{0,7}$")
_JOINER = re.compile(r"[_+\s]+|(?<!\d)[-.]+|[-.]+(?!\d)")
_FOLDER = re.compile(r"\A.*[/\\]", re.DOTALL)
_GENERIC = re.compile(
    "the|and|for|with|from|this|that|der|die|das|und|des|les|une|untitled|unnamed|anonymous|unknown|title|documents?"
    "|microsoft|word|powerpoint|excel|presentation|slides?|sheet|workbook|file|pages?|front|back|cover|print|preview"
    "|draft|template|docx?|pdf|pptx?|xlsx?|rtf|odt|html?|indd|qxd|layout"
)  # words that say nothing about a document


def title_of(*, declared: str, shown: str, opening: str, text: str) -> str:
    """The title of a document by what it says about itself; empty where neither it nor its file names one.

    Args:
        declared: The title in the file's properties, perhaps empty.
        shown: Its title as a reader sees it, in the largest type or as the first heading, perhaps empty.
        opening: The first page, or the first `OPENING_CHARS` characters.
        text: The whole text, whose words decide where nothing is shown.
    """
    declared = _EXTENSION.sub("", _PROGRAM.sub("", _one_line(declared)))
    shown = _one_line(shown)
    if declared and _shares_words(declared, opening if shown else text):
        return declared[:_MOST_CHARS].rstrip()
    return shown[:_MOST_CHARS].rstrip()


def words_of_name(filename: str) -> str:
    """The words of a file's name, without its folder and extension.

    >>> words_of_name("reports/annual_report-2022.pdf")
    'annual report 2022'
    """
    name = _FOLDER.sub("", filename)
    words = _one_line(_JOINER.sub(" ", _EXTENSION.sub("", name)))
    return (words or _one_line(name))[:_MOST_CHARS].rstrip()


def is_title_line(text: str) -> bool:
    """Whether a paragraph at the top of a document, set as the others, can be its title."""
    return (
        "\n" not in text and len(text) <= _LINE_CHARS and text[-1:].isalnum() and _says_enough(text) and _can_name(text)
    )


def largest_lines(pages: Sequence[Sequence[Printed]]) -> str:
    """The first line of the first page in its largest type, with the lines that go on with it.

    Empty where later pages use that type too, which then is that of headings, and where no type is larger than that of
    prose, except on a cover: a first page with little text and no sentence.

    Args:
        pages: The lines of every page, in reading order, without running headers and footers.
    """
    first = next((at for at, lines in enumerate(pages) if lines), None)
    if first is None:
        return ""
    heights: Counter[float] = Counter()
    for text, size in (line for lines in pages for line in lines):
        heights[round(2 * size) / 2] += len(text)
    prose = heights.most_common(1)[0][0]
    named = [(at, text, size) for at, (text, size) in enumerate(pages[first]) if _can_name(text)]
    largest = max((size for _, _, size in named), default=0.0)
    found = _first_of((at, text) for at, text, size in named if size >= _SAME * largest)
    if largest < _LARGER * prose:
        return found if _is_cover(pages[first]) and _says_enough(found) else ""
    later = sum(size >= _SAME * largest and _can_name(text) for lines in pages[first + 1 :] for text, size in lines)
    return found if later < _HEADINGS else ""


def _first_of(lines: Iterable[tuple[int, str]]) -> str:
    """The first of the lines with those directly below it, and with later ones where it says little."""
    taken: list[str] = []
    last = 0
    for at, text in lines:
        if taken and (len(taken) == _MOST_LINES or (at > last + 1 and _says_enough(" ".join(taken)))):
            break
        taken.append(text)
        last = at
    return " ".join(taken)


def _says_enough(text: str) -> bool:
    return len(_LETTER_RUN.findall(text)) >= _WHOLE_TITLE or sum(map(_is_unspaced, text)) > _WHOLE_TITLE


def _is_cover(lines: Sequence[Printed]) -> bool:
    return sum(len(text) for text, _ in lines) <= _COVER_CHARS and not any(
        text.endswith((".", ":")) for text, _ in lines
    )


def _can_name(text: str) -> bool:
    """Whether a line can be part of a title: no figure, no date in digits, no address."""
    letters = sum(char.isalpha() for char in text)
    least = 2 if _is_unspaced(text) else 4
    return letters >= least and letters > sum(char.isdigit() for char in text) and not _ADDRESS.search(text)


def _shares_words(title: str, text: str) -> bool:
    """Whether at least half of the words in `title` that say something are words of `text`."""
    words = {word for word in _content_words(title) if not _GENERIC.fullmatch(word)}
    if not words:
        return False
    folded = text.casefold()
    known = set(_content_words(folded))
    found = sum(word in known or (_is_unspaced(word) and word in folded) for word in words)
    return 2 * found >= len(words)


def _content_words(text: str) -> list[str]:
    return [
        word for word in _WORD.findall(text.casefold()) if not word.isdigit() and (len(word) > 2 or _is_unspaced(word))
    ]


def _is_unspaced(word: str) -> bool:
    """Whether a word is in a script that writes words without blanks between them, or with few."""
    return any("\u2e80" <= char <= "\ud7ff" for char in word)


def _one_line(text: str) -> str:
    return " ".join(text.split())
