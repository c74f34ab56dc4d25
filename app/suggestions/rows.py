"""Drafts questions from rows of tables: "Net sales | 82,959" below "2022" -> "What were net sales in 2022?".

Rows of spreadsheets, web pages and Word tables repeat the names of their columns ("Route: Harbour | Fare: 3 EUR"). Rows
of a PDF stand below a row of names, which counts where it is certain: an empty or missing first cell, and years.

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
_NO_LABEL = re.compile(
    r"\b(?:other|others|see|note|notes|page|item|part|section|less|plus|continued|unaudited|i{1,3}|n)\b", re.I
)


def row_drafts(row: str, *, above: Sequence[str], spelling: Spelling) -> Iterator[Draft]:
    """The questions that one row of a table answers.

    Args:
        row: Its line.
        above: The lines above it in the same table, nearest last.
        spelling: The document's.
    """
    if len(row) > _MOST_ROW_CHARS or "|" not in row:
        return
    pairs = [match for cell in _cells(row) if (match := _PAIR.fullmatch(row, *cell)) is not None]
    if len(pairs) == len(_cells(row)):
        yield from _of_pairs(pairs)
    else:
        yield from _of_years(row, above, spelling)


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


def _of_pairs(pairs: Sequence["re.Match[str]"]) -> Iterator[Draft]:
    """The first cell names the thing, another has a value whose name is one that is asked for."""
    name = pairs[0]["value"]
    if len(name) > _MOST_NAME_CHARS or not name[0].isupper() or not any(char.islower() for char in name):
        return
    for pair in pairs[1:]:
        label = pair["label"].strip()
        if _ASKED.match(label) and any(char.isdigit() for char in pair["value"]):
            asked = " ".join(word if word.isupper() and len(word) > 1 else word.lower() for word in label.split())
            joined = "for" if asked.endswith(("fare", "fee", "price", "cost", "rate", "budget")) else "of"
            yield Draft(f"What is the {asked} {joined} {name}?", Span(*pair.span("value")), "value")


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
    first = label.split()[0]
    keeps = first.isupper() or spelling.is_small(first.casefold()) is False
    shown = label if keeps else label[0].lower() + label[1:]
    yield Draft(
        f"What {'were' if is_plural(label) else 'was'} {shown} in {years[0]}?", Span(*spans[values[0]]), "value"
    )


def _years(line: str) -> list[str]:
    """The years that a row names its columns by; [] where it is another row."""
    cells = [line[start:end] for start, end in _cells(line)]
    years = [cell for cell in cells if _YEAR.fullmatch(cell)]
    return years if len(years) >= max(2, len(cells) - 1) and len(set(years)) == len(years) else []
