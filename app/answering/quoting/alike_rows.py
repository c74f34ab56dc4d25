"""Leaves out rows of a table that are alike but for a year or a section that the question does not ask for.

Neither words nor meaning tell such rows apart: "In millions of CHF, January–June 2022: Zone LATAM | Sales: 5659" and
the same of 2023; or "Operating income | 5,760" below "Greater China:" and "Operating income | 7,124" below "Europe:".
"""

import re
from collections import defaultdict
from collections.abc import Sequence

from app.answering.quoting.candidates import Candidate
from app.answering.quoting.columns import is_line_of_table
from ingestion.tables import cells
from retrieval.words import terms

_YEAR = re.compile(r"(?<![\d.,])(?:19|20)\d\d(?![.,]?\d)")
_SPANS = re.compile(r"\b(?:before|after|since|until|till|between|than|earlier|later|by|through)\b", re.IGNORECASE)
_LABEL_CHARS = 80  # a longer line above a row is prose
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


def of_asked_sections(question: str, candidates: Sequence[Candidate]) -> list[Candidate]:
    """The candidates without rows below a label that has fewer of the question's words than that of a row alike.

    Rows are alike where their first cells are, in one document. A row below no label is kept.
    """
    alike: dict[tuple[str, str], list[int]] = defaultdict(list)
    for place, candidate in enumerate(candidates):
        if " | " in candidate.core_text:
            label = cells(candidate.core_text)[0].casefold()
            alike[candidate.source.hit.chunk.document_id, label].append(place)
    asked = terms(question)
    left_out: set[int] = set()
    for places in alike.values():
        if len(places) < 2:
            continue
        sections = {place: _section(candidates[place]) for place in places}
        shared = {place: len(terms(section) & asked) for place, section in sections.items() if section}
        most = max(shared.values(), default=0)
        left_out.update(place for place, words in shared.items() if words < most)
    return [one for place, one in enumerate(candidates) if place not in left_out]


def _section(candidate: Candidate) -> str:
    """The label between rows that is nearest above a row; "" without one."""
    chunk = candidate.source.chunk_at(candidate.core)
    above = chunk.text[: max(0, candidate.core.start_char - chunk.start_char)].split("\n")[:-1]
    header = chunk.table_header.split("\n") if chunk.table_header else []
    for line in reversed([*header, *above]):
        if is_line_of_table(line):
            first, *others = cells(line)
            if first and not any(others):
                return first
        elif len(line) > _LABEL_CHARS:
            return ""
        elif line.strip():
            return line
    return ""
