"""Drafts questions from rows of tables: "Net sales | 82,959" below "2022" -> "What were net sales in 2022?".

Rows of spreadsheets, web pages and Word tables repeat the names of their columns ("Route: Harbour | Fare: 3 EUR"); the
first may lack one. Rows of a PDF stand below a row of names, which counts where it is certain: an empty or missing
first cell, and years. A table of frequent questions asks them itself.

Example:
    >>> [draft.question for draft in row_drafts("Route: Harbour | Fare: 3 EUR", above=(), spelling=Spelling(""))]
    ['What is the fare for Harbour?']
"""

import re
from collections.abc import Iterator, Sequence

from app.suggestions.drafts import Draft
from app.suggestions.subjects import Spelling, is_plural
from retrieval.types import Span

_MOST_ROW_CHARS = 400
_MOST_NAME_CHARS = 40
_PAIR = re.compile(r"(?P<label>[^\W\d_][^:|\n]{1,40}): +(?P<value>[^|\n]*[^|\s])")
_YEAR = re.compile(r"(?:FY ?)?(?:19|20)\d\d")
_LABEL = re.compile(r"[A-Z][A-Za-z’'-]+(?: (?:[A-Za-z’'-]+|&)){0,5}")
_VALUE = re.compile(r"\(?(?:US)?[$€£]? ?\(?\d[\d,.]*\)? ?%?|\d[\d,.]* ?[A-Za-z€£$]{1,12}")
_ASKED = re.compile(
    r"(?:(?:unit |total |monthly |annual |base |list |gross |net )?(?:price|fare|fee|cost|amount|salary|budget"
    r"|population|capacity|length|width|height|weight|speed|temperature|rate|revenue|area|score|duration|distance|balance))\Z",
    re.I,
)
_SAID = re.compile(
    r"(?:(?:home|head|main|e-?mail|web|street|delivery|due|start|end|opening|closing) )?(?:location|address|country"
    r"|region|city|capital|currency|language|status|deadline|date|time|habitat|material|colou?r|size|phone(?: number)?"
    r"|website|department|genre|category)\Z",
    re.I,
)
_PERSON = re.compile(r"(?:author|owner|director|manager|editor|chair|winner|head|president)\Z", re.I)
_TITLES = frozenset({"title", "name", "product", "item", "book", "film", "project"})
_YEAR_LABELS = frozenset({"year", "fiscal year", "financial year"})
_QUESTION = frozenset({"question", "questions", "q"})
_ANSWER = frozenset({"answer", "answers", "a"})
_ASKS = re.compile(r"[A-Z][^?\n]{8,150}\?")
_MOST_SAID_CHARS = 80
_NO_LABEL = re.compile(
    r"\b(?:other|others|see|note|notes|page|item|part|section|less|plus|continued|unaudited|i{1,3}|n)\b", re.I
)


def row_drafts(row: str, *, above: Sequence[str], spelling: Spelling, english: bool = True) -> Iterator[Draft]:
    """The questions that one row of a table answers.

    Args:
        row: Its line.
        above: The lines above it in the same table, nearest last.
        spelling: The document's.
        english: Whether the document is known to be in English; else a name must be one of ours to be asked for.
    """
    if len(row) > _MOST_ROW_CHARS or "|" not in row:
        return
    cells = _cells(row)
    if not cells:
        return
    pairs = [match for cell in cells if (match := _PAIR.fullmatch(row, *cell)) is not None]
    bare = [cell for cell in cells if not _PAIR.fullmatch(row, *cell)]
    if not pairs or len(bare) > 1 or (bare and bare[0] != cells[0]):
        yield from _of_years(row, above, spelling)
        return
    named = {pair["label"].strip().casefold(): pair for pair in pairs}
    asked = next((named[label] for label in _QUESTION if label in named), None)
    answer = next((named[label] for label in _ANSWER if label in named), None)
    if asked is not None and answer is not None and _ASKS.fullmatch(asked["value"]):
        yield Draft(asked["value"], Span(*answer.span("value")), "content")
        return
    label, name = ("", row[slice(*bare[0])]) if bare else (pairs[0]["label"].strip().casefold(), pairs[0]["value"])
    rest = pairs if bare else pairs[1:]
    if _YEAR.fullmatch(name):
        if label in _YEAR_LABELS or (english and bare):
            yield from _in_year(name, rest, spelling)
        return
    title = next((pair for pair in rest if pair["label"].strip().casefold() in _TITLES), None)
    yield from _of_pairs(name if title is None else title["value"], rest)


def _cells(row: str) -> list[tuple[int, int]]:
    """The cells of a row, as characters of it without the white space around them; empty ones too."""
    found, at = [], 0
    for part in row.split("|"):
        start = at + len(part) - len(part.lstrip())
        found.append((min(start, at + len(part.rstrip())), at + len(part.rstrip())))
        at += len(part) + 1
    if found and found[0][0] == found[0][1] and row.lstrip().startswith("|"):
        found = found[1:]
    return found[:-1] if found and row.rstrip().endswith("|") else found


def _of_pairs(name: str, pairs: Sequence["re.Match[str]"]) -> Iterator[Draft]:
    """The questions for the cells of a thing's row whose names are ones that are asked for."""
    if len(name) > _MOST_NAME_CHARS or not name[:1].isupper() or not any(char.islower() for char in name):
        return
    for pair in pairs:
        label, value = pair["label"].strip(), pair["value"]
        asked = " ".join(word if word.isupper() and len(word) > 1 else word.lower() for word in label.split())
        at = Span(*pair.span("value"))
        if _ASKED.match(label) and any(char.isdigit() for char in value):
            joined = "for" if asked.endswith(("fare", "fee", "price", "cost", "rate", "budget")) else "of"
            yield Draft(f"What is the {asked} {joined} {name}?", at, "value")
        elif _PERSON.match(label) and value[0].isupper():
            yield Draft(f"Who is the {asked} of {name}?", at, "person")
        elif _SAID.match(label) and 2 <= len(value) <= _MOST_SAID_CHARS:
            yield Draft(f"What is the {asked} of {name}?", at, "value")


def _in_year(year: str, pairs: Sequence["re.Match[str]"], spelling: Spelling) -> Iterator[Draft]:
    """The questions for the numbers of a year's row; none where the row is of a month, a place or a thing in it."""
    if not all(_VALUE.fullmatch(pair["value"]) for pair in pairs):
        return
    for pair in pairs:
        label = pair["label"].strip()
        if _LABEL.fullmatch(label) and not _NO_LABEL.search(label):
            yield _number(label, year, Span(*pair.span("value")), spelling)


def _number(label: str, year: str, at: Span, spelling: Spelling) -> Draft:
    """The question for the figure of a year."""
    words = label.split()
    if all(word[0].isupper() for word in words):  # names of countries, or capitals that say nothing
        shown = label.lower() if all(spelling.is_small(word.casefold()) for word in words) else label
    else:
        keeps = words[0].isupper() or spelling.is_small(words[0].casefold()) is False
        shown = label if keeps else label[0].lower() + label[1:]
    return Draft(f"What {'were' if is_plural(label) else 'was'} {shown} in {year}?", at, "value")


def _of_years(row: str, above: Sequence[str], spelling: Spelling) -> Iterator[Draft]:
    """A row of numbers below a row of years."""
    cells = [row[start:end] for start, end in _cells(row)]
    spans = _cells(row)
    label, values = cells[0], [at for at, cell in enumerate(cells) if at and _VALUE.fullmatch(cell) and cell != "$"]
    years = next((found for line in reversed(above) if (found := _years(line))), [])
    if not years or len(values) != len(years) or not _LABEL.fullmatch(label) or _NO_LABEL.search(label):
        return
    if " " not in label:
        return
    yield _number(label, years[0], Span(*spans[values[0]]), spelling)


def _years(line: str) -> list[str]:
    """The years that a row names its columns by; [] where it is another row."""
    cells = [line[start:end] for start, end in _cells(line)]
    years = [cell for cell in cells if _YEAR.fullmatch(cell)]
    return years if len(years) >= max(2, len(cells) - 1) and len(set(years)) == len(years) else []
