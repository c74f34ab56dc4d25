"""Leaves out the rows of a table that are about other years than the question, where other rows are about its year.

Rows of one name for several years are alike in all but the year, so that neither words nor meaning tell them apart:
"In millions of CHF, January–June 2022: Zone LATAM | Sales: 5659", and the same of 2023.
"""

import re
from collections.abc import Sequence

from app.answering.quoting.candidates import Candidate

_YEAR = re.compile(r"(?<![\d.,])(?:19|20)\d\d(?![.,]?\d)")
_SPANS = re.compile(r"\b(?:before|after|since|until|till|between|than|earlier|later|by|through)\b", re.IGNORECASE)
_YEAR_NAMES = frozenset({"year", "fiscal year", "financial year", "period", "date", "jahr", "année", "año"})


def of_asked_years(question: str, candidates: Sequence[Candidate]) -> list[Candidate]:
    """The candidates without rows of other years than the question's; all where it names a span of time, or none.

    A row is about the years in the names of its columns, and in a column of years.
    """
    asked = set(_YEAR.findall(question))
    if not asked or _SPANS.search(question):
        return list(candidates)
    told = [_years(candidate.core_text) for candidate in candidates]
    if not any(asked & years for years in told):
        return list(candidates)
    return [one for one, years in zip(candidates, told, strict=True) if not years or asked & years]


def _years(row: str) -> set[str]:
    """The years that a row of named cells is about."""
    years: set[str] = set()
    for cell in row.split(" | ") if " | " in row else ():
        name, named, value = cell.partition(": ")
        if named:
            years.update(_YEAR.findall(name))
            if name.casefold() in _YEAR_NAMES:
                years.update(_YEAR.findall(value))
    return years
