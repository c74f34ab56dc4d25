"""Chooses the cell of a row that a question asks for: by the names of its column, its period, and the span reader.

The span reader finds the row and confuses its cells, since a row of numbers says nothing of their columns. So each cell
is scored by the words that its column's names share with the question, and by how likely the reader takes it to be; the
weights are those of a softmax over the cells of a row, fitted by `python -m app.tuning.table_cells.run`.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import exp
from types import MappingProxyType

from app.answering.languages.question_kind import kind_asked
from app.answering.quoting.headed_rows import HeadedCell, HeadedRow, is_amount, years_in
from retrieval.words import says_new, terms

WEIGHTS: Mapping[str, float] = MappingProxyType(
    {
        "named": 1.953,
        "named_again": 0.929,
        "others": -0.266,
        "period": 1.952,
        "other_period": -2.93,
        "share": -0.205,
        "share_asked": 3.231,
        "margin": 0.892,
        "label": 0.644,
        "misfit": -1.293,
        "repeats": -2.508,
        "amount": -1.464,
    }
)
"""The weights of a cell's values."""

MOST_BEHIND = 4.0
"""Margins of the span reader are cut to so much below the best of the row."""

_MOST_NAMED, _MOST_OTHERS = 3, 6
_SHARE = re.compile(
    r"%|\b(?:change|growth|increase|decrease|inc|dec|variance|var|share|percent|percentage)\b", re.IGNORECASE
)
_CHANGE_ASKED = re.compile(
    r"%|\b(?:changed?|growth|grow|grew|increased?|decreased?|variance|percent|percentage)\b", re.IGNORECASE
)
_SHARE_ASKED = re.compile(rf"{_CHANGE_ASKED.pattern}|\b(?:shares?|rate|ratio|margin)\b", re.IGNORECASE)
_QUARTER = re.compile(r"\b(?:Q(?P<behind>[1-4])|(?P<before>[1-4])Q)(?=\d|\b)")
_QUARTERS = {"1": "first", "2": "second", "3": "third", "4": "fourth"}
_UNTELLING = frozenset({"what", "how", "which", "much", "many", "year", "end", "ended"})
_DIGIT, _LETTER = re.compile(r"\d"), re.compile(r"[^\W\d_]")
_KINDS = {"number": _DIGIT, "time": _DIGIT, "name": _LETTER}


@dataclass(frozen=True, slots=True)
class ChosenCell:
    """A cell of a row, and the probability in (0, 1) that it is the one asked for if the row is."""

    cell: HeadedCell
    sure: float


def chosen_cell(question: str, row: HeadedRow, margins: Sequence[float]) -> ChosenCell:
    """The likeliest cell of a row.

    Args:
        question: Its text, in English.
        row: The row.
        margins: For each of its cells the log-odds, by the span reader, that it answers.

    Example:
        >>> row = headed_row("Mexico | 90,795 | 12,186", ["(In thousands) | 2019 | 2018"], "")
        >>> chosen_cell("What were sales in Mexico in 2018?", row, [-9.0, 2.0, 1.0]).cell.text
        '12,186'
    """
    sure = probabilities(question, row, margins)
    at = sure.index(max(sure))
    return ChosenCell(row.cells[at], sure[at])


def probabilities(
    question: str, row: HeadedRow, margins: Sequence[float], weights: Mapping[str, float] = WEIGHTS
) -> list[float]:
    """For each cell of a row the probability that it is the one asked for if the row is; they sum to 1."""
    scores = [
        sum(weights[name] * value for name, value in of_cell.items()) for of_cell in values(question, row, margins)
    ]
    best = max(scores)
    shares = [exp(score - best) for score in scores]
    return [share / sum(shares) for share in shares]


def values(question: str, row: HeadedRow, margins: Sequence[float]) -> list[dict[str, float]]:
    """For each cell of a row the values that the weights multiply, by name.

    Words that the row's label has, too, tell its cells apart less than others do; years are compared apart from words.
    """
    asked, periods = _words(question), years_in(question)
    label = _words(f"{row.label} {row.section}")
    kind = kind_asked(question)
    of_columns = [years_in(" ".join(cell.names)) for cell in row.cells]
    told = any(years & periods for years in of_columns)
    best = max(margins)
    found = []
    for cell, years, margin in zip(row.cells, of_columns, margins, strict=True):
        named = " ".join(cell.names)
        own = _words(named)
        shared = own & asked
        share = bool(_SHARE.search(named)) or (not cell.names and cell.text.endswith("%"))
        found.append(
            {
                "named": float(min(_MOST_NAMED, len(shared - label))),
                "named_again": float(min(_MOST_NAMED, len(shared & label))),
                "others": float(min(_MOST_OTHERS, len(own - asked))),
                "period": float(bool(years & periods)),
                "other_period": float(told and bool(years) and not years & periods),
                "share": float(share and not _SHARE_ASKED.search(question)),
                "share_asked": float(share and bool(_CHANGE_ASKED.search(question))),
                "margin": max(-MOST_BEHIND, margin - best),
                "label": float(cell.column == 0),
                "misfit": float(kind is not None and not _KINDS[kind].search(cell.text)),
                "repeats": float(not says_new(question, cell.text)),
                "amount": float(is_amount(cell.text)),
            }
        )
    return found


def _words(text: str) -> frozenset[str]:
    """The telling words of a text without years, quarters in words."""
    said = _QUARTER.sub(lambda match: f" {_QUARTERS[match['behind'] or match['before']]} quarter ", text)
    return frozenset(word for word in terms(said) if not years_in(word)) - _UNTELLING
