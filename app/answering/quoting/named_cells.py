"""Chooses the cell of a table's row that a question asks for, where the names of the columns say which it is.

The span reader finds the row and often points at the cell beside the right one: columns with like names ("Freshwater
Ducks", "Saltwater Ducks") hold like values. It is not followed where another column's name has more of the question's
words, or as many and no others. In rows of questions and answers it points at the question, which answers nothing.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from app.answering.languages.question_kind import kind_asked
from retrieval.types import Span
from retrieval.words import says_new, terms

_CELL = re.compile(r"(?:^|(?<=\|))\s*+(?:(?P<name>[^:|]{1,120}): (?=\S))?(?P<value>[^|\n]*[^|\s])")
_DIGIT, _LETTER = re.compile(r"\d"), re.compile(r"[^\W\d_]")
_KINDS = {"number": _DIGIT, "time": _DIGIT, "name": _LETTER}


@dataclass(frozen=True, slots=True)
class _Cell:
    """A cell: the name of its column, "" where the row does not say it, its value, and where in the row that is."""

    name: str
    value: str
    span: Span

    def fit(self, asked: frozenset[str]) -> tuple[int, int]:
        """How many of the asked words the name has, and how few others; more is better, in this order."""
        own = terms(self.name) if self.name else frozenset()
        return len(own & asked), -len(own - asked)


def cell_asked(question: str, row: str, pointed: Span) -> Span:
    """The characters of `row` that answer: those of `pointed`, or the value of the cell that the names choose.

    Args:
        question: Its text.
        row: A row whose cells are apart by bars, most behind the name of their column ("Year: 2022 | Ducks: 280").
        pointed: What the reader points at, in characters of `row`.

    Example:
        >>> row = "Year: 2022 | Freshwater Ducks: 170 | Saltwater Ducks: 110"
        >>> cell_asked("How many saltwater ducks in 2022?", row, Span(31, 34))  # "170"
        Span(start_char=54, end_char=57)
    """
    cells = list(_cells(row))
    at = next((place for place, cell in enumerate(cells) if _within(pointed, cell.span)), None)
    if at is None:
        return pointed
    asked = terms(question)
    if _repeats(question, asked, cells[at]) and at + 1 < len(cells) and says_new(question, cells[at + 1].value):
        return cells[at + 1].span
    kind = kind_asked(question)
    wanted = [
        cell
        for cell in cells
        if cell.name and says_new(question, cell.value) and (kind is None or _KINDS[kind].search(cell.value))
    ]
    fits = sorted((cell.fit(asked) for cell in wanted), reverse=True)
    if not fits or fits[0][0] == 0 or fits[0] in fits[1:]:
        return pointed
    best = next(cell for cell in wanted if cell.fit(asked) == fits[0])
    if not says_new(question, cells[at].value):
        return best.span
    (words, others), (own, own_others) = fits[0], cells[at].fit(asked)
    return best.span if words > own or (words == own and others == 0 > own_others) else pointed


def _cells(row: str) -> Iterator[_Cell]:
    for match in _CELL.finditer(row):
        yield _Cell(match["name"] or "", match["value"], Span(*match.span("value")))


def _within(pointed: Span, cell: Span) -> bool:
    return cell.start_char <= pointed.start_char < cell.end_char


def _repeats(question: str, asked: frozenset[str], cell: _Cell) -> bool:
    """Whether a cell asks the question itself."""
    return asked <= terms(cell.value) and not says_new(question, cell.value)
