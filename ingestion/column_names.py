"""Decides by content whether a row of cells names the columns of the rows below it.

Each column votes, as in `csv.Sniffer.has_header` of Python's library: words above numbers are a name, words above
words are one only with further evidence. A first data row that is taken for names mislabels every row below it, while
names that are missed are still read once. So a row that nothing supports names nothing.
"""

import re
from collections.abc import Sequence
from enum import Enum

from ingestion.builder import one_line

_NUMBER = re.compile(r"[\s$€£¥%+()\-−–—.,'\d]*\d[\s$€£¥%+()\-−–.,'\d]*(?:[kKmM]|bn|Mio\.?)?")
_YEAR = re.compile(r"(?:19|20)\d\d")
_DATE = re.compile(
    r"\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4}(?:[ T]\d{1,2}:\d\d.*)?|\d{1,2}:\d\d(?::\d\d)?(?: ?[APap]\.?[Mm]\.?)?"
)
_CODE = re.compile(r"(?=\S*\d)\S{4,}|[A-Z]{1,5}[ -]?\d+|\S+@\S+\.\S+|https?://\S+", re.ASCII)
_MARK = re.compile(r"\W{1,3}|[xXyYnN]|n/?a|N/?A")
_USUAL_NAMES = """
name # id no. nr nr. number code key index date time year month day type kind category class group status state
title subject description details note notes comment comments remark remarks question answer value values unit
units amount price cost total count quantity qty rate percent share score rank role position department team
company customer client employee owner author publisher editor manager contact person address street city town
country region location place phone email e-mail website url link file format version language currency item
product service brand model size colour color gender sex age birthday start end due reason
purpose priority level grade method result example term definition parameter field column option default feature
requirement
"""
_NAMES = frozenset(_USUAL_NAMES.split())
_WORD_ENDS = re.compile(r"[\s/()_-]+")
_KIND_CHARS = 100  # a longer cell is prose; the patterns take quadratic time
_LEAST_UNIQUE = 0.5  # share of the names that differ from the others
_MOST_BLANK = 0.25  # share of columns without a name, apart from the first
_LEAST_DATA = 0.6  # share of a column's cells that are no words, for a column of data
_LEAST_DATA_ALONE = 0.9  # the same in a table of one column


class CellKind(Enum):
    """The kind of a cell's content; a mark is a sign such as `x` or `-`."""

    BLANK = "blank"
    NUMBER = "number"
    DATE = "date"
    CODE = "code"
    MARK = "mark"
    WORDS = "words"


def kind_of(cell: str) -> CellKind:
    """The kind of a cell."""
    text = cell.strip()
    if not text:
        return CellKind.BLANK
    if len(text) > _KIND_CHARS:
        return CellKind.WORDS
    for kind, pattern in (
        (CellKind.NUMBER, _NUMBER),
        (CellKind.DATE, _DATE),
        (CellKind.CODE, _CODE),
        (CellKind.MARK, _MARK),
    ):
        if pattern.fullmatch(text):
            return kind
    return CellKind.WORDS


def names_columns(first: Sequence[str], below: Sequence[Sequence[str]]) -> bool:
    """Whether `first` names the columns of the rows `below` it, of which a dozen suffices.

    Names are words, most of them different, and every column but the first has one; years may name columns of numbers.
    Then the columns vote: data below words are evidence, so are values that repeat, long texts below a short name, and
    names that tables often have. A name that is also a value speaks against it.
    """
    names = [one_line(cell) for cell in first]
    if not below or not _may_be_names(names, below):
        return False
    return sum(_vote(name, _column(below, at), alone=len(names) == 1) for at, name in enumerate(names) if name) > 0


def _may_be_names(names: Sequence[str], below: Sequence[Sequence[str]]) -> bool:
    filled = [name.casefold() for name in names if name]
    if not filled or len(set(filled)) < _LEAST_UNIQUE * len(filled):
        return False
    blank = sum(not name for name in names[1:])
    if blank > _MOST_BLANK * len(names) or (len(names) == 1 and not names[0]):
        return False
    if names[0].endswith(":") and not all(name.endswith(":") for name in names[1:] if name):
        return False  # a label and its value
    for at, name in enumerate(names):
        kind = kind_of(name)
        if kind is CellKind.NUMBER and not (_YEAR.fullmatch(name) and not _has_years(_column(below, at))):
            return False
        if kind is CellKind.DATE:
            return False
    return True


def _vote(name: str, values: Sequence[str], *, alone: bool) -> int:
    """What the cells below a name say: 2 or 1 for it, 0, or -2 against it."""
    folded = [value.casefold() for value in values]
    if not values:
        return 0
    if name.casefold() in folded:
        return -2
    data = sum(kind_of(value) is not CellKind.WORDS for value in values)
    if data >= (_LEAST_DATA_ALONE if alone else _LEAST_DATA) * len(values):
        return 0 if kind_of(name) is CellKind.CODE else 2
    if _is_usual(name) and 2 * sum(map(_is_usual, values)) < len(values):  # else it is a column of names itself
        return 2
    short = len(name.split())
    if sum(len(value.split()) for value in values) >= 2 * short * len(values) and short <= 3:
        return 1
    return 1 if len(values) > 2 and len(set(folded)) <= 0.75 * len(values) else 0


def _is_usual(name: str) -> bool:
    """Whether tables often have a column of this name."""
    return any(word in _NAMES for word in _WORD_ENDS.split(name.casefold()))


def _column(rows: Sequence[Sequence[str]], at: int) -> list[str]:
    """The filled cells of a column."""
    return [one_line(row[at]) for row in rows if at < len(row) and row[at].strip()]


def _has_years(values: Sequence[str]) -> bool:
    return any(_YEAR.fullmatch(value) for value in values)
