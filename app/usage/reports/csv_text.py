"""Rows as CSV (RFC 4180): UTF-8, lines end in CRLF, texts that a spreadsheet would take for a formula are disarmed."""

from collections.abc import Collection, Generator, Iterable, Sequence
from typing import TypeAlias

Cell: TypeAlias = str | int | None

LINE_END = "\r\n"

_FORMULA = frozenset("=+-@\t\r\n")  # how a spreadsheet's formula can begin (OWASP, "CSV Injection")
_MARKS = ',"\r\n'  # a cell that holds one of these is quoted
_KEPT = 50_000  # texts remembered at once: what repeats from row to row is looked at once


class Cells(dict[str, str]):
    """Texts as cells of a line, `cells[text]`: disarmed, and quoted where they must be.

    A text that begins like a formula gets a `'` before it. Numbers written as texts are not for here: a
    minus is a formula's first character too.
    """

    def __missing__(self, text: str) -> str:
        if len(self) >= _KEPT:
            self.clear()
        self[text] = cell = quoted("'" + text if text and text[0] in _FORMULA else text)
        return cell


def are_plain(texts: Sequence[str]) -> bool:
    """Whether all of them are cells as they are: what ids made by us are, at a glance instead of one by one."""
    joined = "".join(texts)
    return not any(mark in joined for mark in _MARKS) and _FORMULA.isdisjoint({text[:1] for text in texts})


def quoted(text: str) -> str:
    """A cell that reads back as `text`."""
    return '"' + text.replace('"', '""') + '"' if any(mark in text for mark in _MARKS) else text


def csv_text(
    columns: Sequence[str], batches: Iterable[Iterable[Iterable[Cell]]], *, numbers: Collection[str] = ()
) -> Generator[bytes, None, None]:
    """The header with the first batch of rows, then every other as it comes; None is an empty cell.

    In columns named by `numbers` texts are numbers, which may begin with a minus.
    """
    cells = Cells()
    disarms = [column not in numbers for column in columns]

    def written(cell: Cell, disarm: bool) -> str:
        if isinstance(cell, str):
            return cells[cell] if disarm else quoted(cell)
        return "" if cell is None else str(cell)

    lines = [header(columns)]
    for rows in batches:
        lines.extend(",".join(map(written, row, disarms)) + LINE_END for row in rows)
        yield "".join(lines).encode()
        lines = []
    yield "".join(lines).encode()


def header(columns: Sequence[str]) -> str:
    """The first line."""
    return ",".join(map(quoted, columns)) + LINE_END
