"""Writes CSV (RFC 4180) in UTF-8 with CRLF; texts that a spreadsheet could run as a formula are escaped."""

from collections.abc import Collection, Generator, Iterable, Sequence
from typing import TypeAlias

Cell: TypeAlias = str | int | float | None

LINE_END = "\r\n"

_FORMULA = frozenset("=+-@\t\r\n")  # first characters of a formula (OWASP, "CSV Injection")
_MARKS = ',"\r\n'  # a cell with one of these is quoted
_KEPT = 50_000  # texts cached, since most repeat from row to row


class Cells(dict[str, str]):
    """A cache of texts as CSV cells, `cells[text]`: escaped as formulas, and quoted where needed.

    A text that begins like a formula gets a `'` before it. Do not use it for numbers in texts, since a minus begins a
    formula too.
    """

    def __missing__(self, text: str) -> str:
        if len(self) >= _KEPT:
            self.clear()
        self[text] = cell = quoted("'" + text if text and text[0] in _FORMULA else text)
        return cell


def are_plain(texts: Sequence[str]) -> bool:
    """Whether no text needs quotes or escapes, checked for all at once; true for generated ids."""
    joined = "".join(texts)
    return not any(mark in joined for mark in _MARKS) and _FORMULA.isdisjoint({text[:1] for text in texts})


def quoted(text: str) -> str:
    """The cell for `text`, quoted if needed."""
    return '"' + text.replace('"', '""') + '"' if any(mark in text for mark in _MARKS) else text


def csv_text(
    columns: Sequence[str], batches: Iterable[Iterable[Iterable[Cell]]], *, numbers: Collection[str] = ()
) -> Generator[bytes, None, None]:
    """The header with the first batch of rows, then each further batch; None is an empty cell.

    Texts in the columns `numbers` are numbers, which may begin with a minus and are not escaped.
    """
    cells = Cells()
    escapes = [column not in numbers for column in columns]

    def written(cell: Cell, escape: bool) -> str:
        if isinstance(cell, str):
            return cells[cell] if escape else quoted(cell)
        return "" if cell is None else str(cell)

    lines = [header(columns)]
    for rows in batches:
        lines.extend(",".join(map(written, row, escapes)) + LINE_END for row in rows)
        yield "".join(lines).encode()
        lines = []
    yield "".join(lines).encode()


def header(columns: Sequence[str]) -> str:
    """The header line; names may be a caller's own, and are escaped, too."""
    cells = Cells()
    return ",".join(cells[column] for column in columns) + LINE_END
