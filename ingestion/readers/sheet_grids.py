"""Puts the parts of a spreadsheet's tables together again, which docling takes apart at every blank row and column.

A block of numbers right of a table has its rows' names in the table's first column. Titles, units and column names
stand above a table, often with a blank row between, and a total below it. Each part knows its place on the sheet, so
the whole table is read row by row.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from docling_core.types.doc.items.node import NodeItem

from ingestion.column_names import CellKind, kind_of
from ingestion.readers.head_cells import is_period
from ingestion.readers.sheet_cells import SheetCell
from ingestion.readers.table_rows import parts_of

Grid = list[list[str]]

_GAP = 1  # blank rows or columns between the parts of a table
_LABEL_GAP = 4  # blank columns between labels and their values
_TITLE_CELLS = 100  # a part of more is no row of titles
_TITLE_ROWS = 6  # how far above a table its titles begin
_MOST_PARTS = 300  # the parts of a sheet are compared in pairs
_WORD = {CellKind.WORDS, CellKind.BLANK}


@dataclass(slots=True)
class Region:
    """Filled cells by row and column of the sheet, from 0, and the items of docling's tree that they are from.

    The rows are `top` to `bottom`, the columns `left` to `right`, all included.
    """

    cells: dict[tuple[int, int], SheetCell]
    refs: list[str]
    top: int = field(init=False)
    bottom: int = field(init=False)
    left: int = field(init=False)
    right: int = field(init=False)

    def __post_init__(self) -> None:
        rows, columns = {row for row, _ in self.cells}, {column for _, column in self.cells}
        self.top, self.bottom, self.left, self.right = min(rows), max(rows), min(columns), max(columns)

    def take(self, other: "Region") -> None:
        """Add the cells of `other`, which is no region of its own any more."""
        self.cells |= other.cells
        self.refs += other.refs
        self.top, self.bottom = min(self.top, other.top), max(self.bottom, other.bottom)
        self.left, self.right = min(self.left, other.left), max(self.right, other.right)

    def grid(self) -> Grid:
        """The rows and columns that have a cell, in order; missing cells are empty."""
        rows, columns = sorted({row for row, _ in self.cells}), sorted({column for _, column in self.cells})
        return [[self.cells.get((row, column), "") for column in columns] for row in rows]


def sheet_grids(items: Iterable[NodeItem], texts: Mapping[str, Grid]) -> dict[str, Grid]:
    """The rows of the tables of a sheet that consist of several parts, by the reference of their first part.

    The other parts have no rows. `texts` gives the cells of each table and lone cell. A table of one part is not among
    the result.
    """
    regions = [region for item in items if (region := _region(item, texts)) is not None]
    if len(regions) > _MOST_PARTS:
        return {}
    merged: dict[str, Grid] = {}
    order = {ref: place for place, region in enumerate(regions) for ref in region.refs}
    for region in _above_joined(_below_joined(_beside_joined(regions))):
        if len(region.refs) > 1:
            first, *others = sorted(region.refs, key=order.__getitem__)
            merged |= {first: region.grid(), **{ref: [] for ref in others}}
    return merged


def _region(item: NodeItem, texts: Mapping[str, Grid]) -> Region | None:
    cells = {
        (cell.row, cell.column): cell
        for line in texts.get(item.self_ref, ())
        for cell in line
        if isinstance(cell, SheetCell)
    }
    return Region(cells, [item.self_ref]) if cells else None


def _beside_joined(regions: Sequence[Region]) -> list[Region]:
    """Joins blocks of numbers with the table left of them whose rows they continue, and labels with their values."""
    kept: list[Region] = []
    for region in sorted(regions, key=lambda region: (region.left, region.top)):
        for table in kept:
            gap = region.left - table.right - 1
            inside = table.top <= region.top and region.bottom <= table.bottom
            numbers = 0 <= gap <= _GAP and inside and len(region.cells) > 1 and _is_data(region)
            if numbers or (0 <= gap <= _LABEL_GAP and _are_labels(table, region)):
                table.take(region)
                break
        else:
            kept.append(region)
    return kept


def _below_joined(regions: Sequence[Region]) -> list[Region]:
    """Joins the rows below a blank row with the table above, whose columns they have and whose names they lack."""
    kept: list[Region] = []
    for region in sorted(regions, key=lambda region: (region.top, region.left)):
        for table in kept:
            near = 0 < region.top - table.bottom <= _GAP + 1
            same = table.left == region.left and table.right >= region.right > region.left
            if near and same and _has_numbers(table) and _goes_on(region):
                table.take(region)
                break
        else:
            kept.append(region)
    return kept


def _above_joined(regions: Sequence[Region]) -> list[Region]:
    """Joins titles and column names with the table below that has neither."""
    taken: set[int] = set()
    titles_of_all = [region for region in regions if len(region.cells) <= _TITLE_CELLS and _is_head(region)]
    for table in regions:
        if not _has_numbers(table) or parts_of(table.grid()).names is not None:
            continue
        top = table.top
        titles: list[Region] = []
        pieces = [region for region in titles_of_all if region is not table and id(region) not in taken]
        for piece in sorted(pieces, key=lambda region: -region.bottom):
            reach = min((title.top for title in titles), default=top)
            near = 0 < reach - piece.bottom <= _GAP + 1 or (titles and reach <= piece.bottom < top)
            inside = piece.top >= top - _TITLE_ROWS and table.left <= piece.left and piece.right <= table.right
            if near and inside:
                titles.append(piece)
        if not titles:
            continue
        whole = Region(dict(table.cells), list(table.refs))
        for title in titles:
            whole.take(title)
        if parts_of(whole.grid()).names is not None:
            taken |= set(map(id, titles))
            for title in titles:
                table.take(title)
    return [region for region in regions if id(region) not in taken]


def _is_data(region: Region) -> bool:
    """Whether most cells are no words."""
    words = sum(kind_of(cell) is CellKind.WORDS for cell in region.cells.values())
    return 2 * words < len(region.cells)


def _are_labels(table: Region, region: Region) -> bool:
    """Whether `table` is a column of words and `region` has something in each of its rows and in no other."""
    column = table.left == table.right and len(table.cells) > 1 and _is_title(table)
    return column and {row for row, _ in table.cells} == {row for row, _ in region.cells}


def _has_numbers(region: Region) -> bool:
    return any(kind_of(cell) is CellKind.NUMBER for cell in region.cells.values())


def _goes_on(region: Region) -> bool:
    """Whether the first row is one of data: a name and numbers."""
    first, *others = region.grid()[0]
    return kind_of(first) in _WORD and any(kind_of(cell) is CellKind.NUMBER for cell in others)


def _is_head(region: Region) -> bool:
    """Whether all cells are words, or periods such as a year."""
    return all(kind_of(cell) is CellKind.WORDS or is_period(cell) for cell in region.cells.values())


def _is_title(region: Region) -> bool:
    return all(kind_of(cell) is CellKind.WORDS for cell in region.cells.values())
