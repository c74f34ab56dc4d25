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
_USUAL_WORDS = 8  # of a name; more are a sentence, such as a note below a table
_LEAST_VOTES = 2
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


def is_number(cell: str) -> bool:
    """Whether a cell holds a number, which may have signs of money or per cent around it."""
    return kind_of(cell) is CellKind.NUMBER


def names_columns(first: Sequence[str], below: Sequence[Sequence[str]]) -> bool:
    """Whether `first` names the columns of the rows `below` it, of which a dozen suffices.

    Names are words, most of them different, and every column but the first has one; years may name columns of numbers.
    Then the columns vote: data below words are evidence, so are values that repeat, long texts below a short name, and
    names that tables often have. A name that is also a value speaks against it.
    """
    names = [one_line(cell) for cell in first]
    if not below or not _may_be_names(names, below):
        return False
    votes = [_vote(name, _column(below, at), alone=len(names) == 1) for at, name in enumerate(names) if name]
    return sum(votes) >= _LEAST_VOTES


def holds_data(first: Sequence[str], below: Sequence[Sequence[str]]) -> bool:
    """Whether `first` has a number or date that is no year above other numbers, or a label with its value."""
    names = [one_line(cell) for cell in first]
    if len(names) > 1 and names[0].endswith(":") and names[1] and not names[1].endswith(":"):
        return True
    for at, name in enumerate(names):
        kind = kind_of(name)
        if kind is CellKind.DATE:
            return True
        if kind is CellKind.NUMBER and not (_YEAR.fullmatch(name) and not _has_years(_column(below, at))):
            return True
    return False


def is_data_column(values: Sequence[str]) -> bool:
    """Whether more than half of a column's filled cells are no words: numbers, dates, codes or marks."""
    filled = [value for value in values if value.strip()]
    return 2 * sum(kind_of(value) is not CellKind.WORDS for value in filled) > len(filled)


def _may_be_names(names: Sequence[str], below: Sequence[Sequence[str]]) -> bool:
    filled = [name.casefold() for name in names if name]
    if not filled or len(set(filled)) < _LEAST_UNIQUE * len(filled):
        return False
    blank = sum(not name for name in names[1:])
    if blank > _MOST_BLANK * len(names) or (len(names) == 1 and not names[0]):
        return False
    return not holds_data(names, below)


def _vote(name: str, values: Sequence[str], *, alone: bool) -> int:
    """What the cells below a name say: 2 or 1 for it, 0, or -2 against it. `alone`: there is no other column."""
    if not values:
        return 0
    if name.casefold() in {value.casefold() for value in values}:
        return -2
    kinds = [kind_of(value) for value in values]
    data = sum(kind is not CellKind.WORDS for kind in kinds)
    if data >= (_LEAST_DATA_ALONE if alone else _LEAST_DATA) * len(values):
        return 2 if kind_of(name) is not CellKind.CODE or CellKind.CODE not in kinds else 0
    if _is_usual(name) and 2 * sum(map(_is_usual, values)) < len(values):  # else it is a column of names itself
        return 2
    return 0 if alone else _likeness(name, values)


def _likeness(name: str, values: Sequence[str]) -> int:
    """What words say of the name above them: 2 where most repeat others, 1 where they are longer or some repeat."""
    different, most = len({value.casefold() for value in values}), len(values)
    if most > 2 and 2 * different <= most:
        return 2
    words = len(name.split())
    longer = words <= 3 and most > 1 and sum(len(value.split()) for value in values) >= 2 * words * most
    return int(longer or (most > 2 and 4 * different <= 3 * most))


def _is_usual(name: str) -> bool:
    """Whether tables often have a column of this name."""
    return len(name.split()) <= _USUAL_WORDS and any(word in _NAMES for word in _WORD_ENDS.split(name.casefold()))


def _column(rows: Sequence[Sequence[str]], at: int) -> list[str]:
    """The filled cells of a column."""
    return [one_line(row[at]) for row in rows if at < len(row) and row[at].strip()]


def _has_years(values: Sequence[str]) -> bool:
    return any(_YEAR.fullmatch(value) for value in values)
