"""Cells of spreadsheets with their addresses, such as `B27`."""

import re
from collections.abc import Sequence

_MIDNIGHT = re.compile(r"(\d{4}-\d\d-\d\d) 00:00:00")


class SheetCell(str):
    """The text of a cell, and its `row` and `column` on the sheet, both from 0.

    Methods of `str` return texts without a place.
    """

    row: int
    column: int

    @classmethod
    def at(cls, row: int, column: int, text: str) -> "SheetCell":
        """The cell in a row and column, both from 0."""
        cell = cls(text)
        cell.row, cell.column = row, column
        return cell

    @property
    def address(self) -> str:
        """Its name in spreadsheet programs, such as `B27`."""
        return f"{_letters(self.column)}{self.row + 1}"


def address_of(cell: str) -> str:
    """The address of a cell; empty where the text is of no spreadsheet."""
    return cell.address if isinstance(cell, SheetCell) else ""


def placed(grid: Sequence[Sequence[str]], *, top: int, left: int) -> list[list[str]]:
    """The cells of a grid whose first row and column are `top` and `left` of the sheet, from 0; blanks stay blank.

    A date is written without its time: files have it as the midnight it begins at (ECMA-376 part 1 §18.17.4).
    """
    return [
        [
            SheetCell.at(top + row, left + column, _MIDNIGHT.sub(r"\1", text)) if text.strip() else ""
            for column, text in enumerate(line)
        ]
        for row, line in enumerate(grid)
    ]


def _letters(column: int) -> str:
    """The name of a column from 0: A to Z, then AA."""
    letters, left = "", column + 1
    while left:
        left, place = divmod(left - 1, 26)
        letters = chr(ord("A") + place) + letters
    return letters
