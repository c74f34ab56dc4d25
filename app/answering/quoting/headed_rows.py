"""Reads a row of a table cell by cell, each below the names of its column, which may take several lines.

Reports name their columns in steps ("Years ended June 30," above "2019 | 2018" above "(in millions)"), some with a cell
for each column and some with one for several. A line is placed over a row where it has as many cells, as many names as
the row has values, or a whole fraction of them; other lines are about the whole table. The text of a PDF lacks blank
cells: a row with fewer cells than names is placed by the kinds of cells that the full rows above it have.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from app.answering.quoting.columns import RULE
from ingestion.column_names import is_number
from retrieval.types import Span

_BAR = re.compile(r"(?<!\\)\|")
_OWN_LABEL = re.compile(r"(?P<name>[^:|]{1,120}): (?=\S)")  # as in `columns`
_YEAR = re.compile(r"(?<![\d.,])(?:19|20)\d\d(?![.,]?\d)")
_FISCAL = re.compile(r"\bFY\s?['’]?(?:\d\d)?(?P<year>\d\d)\b")
_DATE = re.compile(r"\d{1,4}([-./])\d{1,2}\1\d{1,4}")
_THOUSANDS = re.compile(r"[$€£]?\s*+['’]?000s?")
_LEAST_FULL = 2  # rows that show which kinds of cells a column has
_SIGNS = frozenset({"$", "€", "£", "¥", ")", "%", "( )", ""})


@dataclass(frozen=True, slots=True)
class HeadedCell:
    """A cell of a row: its text without its own label, where in the line that is, and the names of its column.

    `column` counts the row's cells from 0, blank ones too.
    """

    text: str
    span: Span
    names: tuple[str, ...]
    column: int


@dataclass(frozen=True, slots=True)
class HeadedRow:
    """A row whose cells have names, at least two of them filled.

    Attributes:
        label: Its first cell.
        section: The label of the rows that it is among ("Deferred tax assets:"), "" without one.
        cells: Its filled cells.
        heads: The lines that name columns, or say what the whole table is of, top first.
        labelled: Whether its cells begin with the names of their columns.
    """

    label: str
    section: str
    cells: tuple[HeadedCell, ...]
    heads: tuple[str, ...]
    labelled: bool


def headed_row(line: str, above: Sequence[str], table_header: str) -> HeadedRow | None:
    """A line of a table with the names of its columns; None where none is known, and for less than two filled cells.

    Args:
        line: The line.
        above: The lines of the table above it, top first.
        table_header: What the text lacks of a table that began before it, lines of labels included.

    Example:
        >>> row = headed_row("Mexico | 90,795 | 12,186", ["(In thousands) | 2019 | 2018"], "")
        >>> row.label, [(cell.text, cell.names) for cell in row.cells[1:]]
        ('Mexico', [('90,795', ('2019',)), ('12,186', ('2018',))])
    """
    cut = _cut(line)
    heads, section = _heads([*table_header.split("\n"), *above])
    labels = [_OWN_LABEL.match(text) for text, _ in cut]
    labelled = len(cut) > 1 and 2 * sum(map(bool, labels)) >= len(cut)
    names = [] if labelled else [_placed(head, cut) or _placed_by_kind(head, cut, above) for head in heads]
    cells = []
    for column, ((text, span), label) in enumerate(zip(cut, labels, strict=True)):
        if text in _SIGNS or not any(char.isalnum() for char in text):
            continue
        if labelled:
            behind = label.end() if label else 0
            own = (label["name"],) if label else ()
            cells.append(HeadedCell(text[behind:], Span(span.start_char + behind, span.end_char), own, column))
        else:
            cells.append(HeadedCell(text, span, tuple(one[column] for one in names if column in one), column))
    if len(cells) < 2 or not any(cell.names for cell in cells if cell.column or labelled):
        return None
    return HeadedRow(cells[0].text if labelled else cut[0][0], section, tuple(cells), tuple(heads), labelled)


def years_in(text: str) -> frozenset[str]:
    """The years that a text names, also as "FY19"."""
    return frozenset(_YEAR.findall(text)) | {f"20{match['year']}" for match in _FISCAL.finditer(text)}


def is_amount(text: str) -> bool:
    """Whether a cell holds a number that is no year."""
    return is_number(text) and not _YEAR.fullmatch(text) and not _THOUSANDS.fullmatch(text)


def _heads(lines: Sequence[str]) -> tuple[list[str], str]:
    """The lines that name columns, and the label of the section that the last of the lines is in."""
    heads: list[str] = []
    section, begun = "", False
    for line in lines:
        cut = _cut(line, framed=False)
        if not line.strip() or RULE.fullmatch(line):
            continue
        if _is_label(cut):
            section = cut[0][0]
        elif not begun and len(cut) > 1 and (not heads or _names(cut) or _spans_all(heads, cut)):
            heads.append(line)
        else:
            begun = True
    return heads, section


def _names(cut: Sequence[tuple[str, Span]]) -> bool:
    """Whether a line below the first may name columns: no amounts, and no label of its own, a unit or years."""
    if any(is_amount(text) for text, _ in cut[1:]):
        return False
    first = cut[0][0]
    return not first or first.startswith("(") or any(years_in(text) for text, _ in cut[1:])


def _spans_all(heads: Sequence[str], cut: Sequence[tuple[str, Span]]) -> bool:
    """Whether the lines so far leave half of their columns blank or more, so that this one, without amounts, names."""
    if any(is_amount(text) for text, _ in cut[1:]):
        return False
    named = ([bool(text) for text, _ in _cut(head, framed=False)[1:]] for head in heads)
    return all(2 * sum(columns) <= len(columns) for columns in named)


def _is_label(cut: Sequence[tuple[str, Span]]) -> bool:
    return bool(cut[0][0]) and not any(text for text, _ in cut[1:])


def _placed(head: str, cut: Sequence[tuple[str, Span]]) -> Mapping[int, str]:
    """The name that a line gives each column of a row, by the column; none where they cannot be placed."""
    found = next((one for one in (_cut(head, framed=False), _cut(head)) if len(one) == len(cut)), _cut(head))
    filled = {column: text for column, (text, _) in enumerate(found) if text}
    named = [text for column, text in filled.items() if column]
    if len(found) == len(cut):
        others = len(cut) - 1
        if len(named) == 1 and others > 1:
            return {}  # it is about all columns
        if len(named) > 1 and others % len(named) == 0 and 2 * len(named) <= others:
            return dict(enumerate(_spread(named, others), start=1))
        return filled
    values = [column for column, (text, _) in enumerate(cut) if column and text not in _SIGNS]
    for names in (list(filled.values()), named):
        if len(names) == len(values) > 1:
            return dict(zip(values, names, strict=True))
    names = named or list(filled.values())
    if len(names) > 1 and len(values) > len(names) and len(values) % len(names) == 0:
        return dict(zip(values, _spread(names, len(values)), strict=True))
    return {}


def _placed_by_kind(head: str, cut: Sequence[tuple[str, Span]], above: Sequence[str]) -> Mapping[int, str]:
    """The names of a row's cells where blank ones are left out: each cell is below cells of its kind, in order.

    Only those are named that no other order of the columns would name otherwise.
    """
    names = [text for text, _ in _cut(head)]
    full = [[_kind(text) for text, _ in row] for line in above if line != head and len(row := _cut(line)) == len(names)]
    if len(cut) >= len(names) or len(full) < _LEAST_FULL or not all(names):
        return {}
    kinds = [frozenset(column) for column in zip(*full, strict=True)]
    wanted = [_kind(text) for text, _ in cut]
    first = _in_order(wanted, kinds)
    last = _in_order(wanted[::-1], kinds[::-1])
    if first is None or last is None:
        return {}
    latest = [len(names) - 1 - column for column in reversed(last)]
    return {cell: names[at] for cell, (at, other) in enumerate(zip(first, latest, strict=True)) if at == other}


def _in_order(wanted: Sequence[str], kinds: Sequence[frozenset[str]]) -> list[int] | None:
    """The first column of each wanted kind behind that of the kind before; None where there is none."""
    found: list[int] = []
    for kind in wanted:
        begin = found[-1] + 1 if found else 0
        column = next((at for at in range(begin, len(kinds)) if kind in kinds[at]), None)
        if column is None:
            return None
        found.append(column)
    return found


def _kind(text: str) -> str:
    """What a cell has: a date, an amount with or without the sign of its unit, other digits, words, or both."""
    if _DATE.fullmatch(text):
        return "date"
    if is_amount(text):
        return next((sign for sign in "$€£¥%" if sign in text), "amount")
    digits, letters = any(char.isdigit() for char in text), any(char.isalpha() for char in text)
    return "both" if digits and letters else "digits" if digits else "words" if letters else ""


def _spread(names: Sequence[str], columns: int) -> list[str]:
    """Each name as often as it spans columns."""
    return [name for name in names for _ in range(columns // len(names))]


def _cut(line: str, *, framed: bool | None = None) -> list[tuple[str, Span]]:
    """The cells of a line, blank ones too; `framed` says whether bars at its ends are no borders of cells.

    Without it they are none where both are there. A line with one of them begins or ends with a blank cell.
    """
    return list(_cells(line, framed=_is_framed(line) if framed is None else framed))


def _is_framed(line: str) -> bool:
    line = line.strip()
    return len(line) > 1 and line.startswith("|") and line.endswith("|")


def _cells(line: str, *, framed: bool) -> Iterator[tuple[str, Span]]:
    bars = [match.start() for match in _BAR.finditer(line)]
    edges = bars if framed and len(bars) > 1 else [-1, *bars, len(line)]
    for first, last in pairwise(edges):
        raw = line[first + 1 : last]
        start = first + 1 + len(raw) - len(raw.lstrip())
        yield raw.strip(), Span(start, start + len(raw.strip()))
