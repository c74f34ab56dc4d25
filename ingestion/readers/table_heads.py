"""Names the columns of a table whose head has several rows: a unit, a period, groups of columns, then the names.

    In millions of CHF |       | January–June 2023
                       | Sales | Profit
    Zone NA            | 12553 | 2713

A unit and a period of the whole table are told in the name of the first column, so that each row repeats them:
`In millions of CHF, January–June 2023: Zone NA | Sales: 12553 | Profit: 2713`. Where there are several periods, each is
told before the names of its own columns.
"""

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise

from ingestion.builder import one_line
from ingestion.column_names import CellKind, kind_of
from ingestion.readers.head_cells import is_period, is_unit

_LABEL_CHARS = 120  # a longer name is not repeated in each row


def labels_of(names: Sequence[str], above: Sequence[Sequence[str]]) -> tuple[str, ...]:
    """The names as the rows of a table repeat them, by the rows `above` the names; "" for one too long to repeat.

    A group of columns is told before a name that another column has too, a period before each.
    """
    context: list[str] = []
    told = [""] * len(names)  # before each name
    counts = Counter(names)
    for row in above:
        cells = [(at, text) for at, cell in enumerate(row) if (text := one_line(cell))]
        units = [cell for cell in cells[:1] if is_unit(cell[1])]
        periods = [cell for cell in cells if is_period(cell[1])]
        for cell in (*units, *(periods if len(periods) == 1 else ())):
            context.append(cell[1])
            cells.remove(cell)
        if len(cells) < 2:
            continue  # a title
        for at, group in enumerate(_spread(cells, names)):
            if group and (counts[names[at]] > 1 or len(periods) > 1):
                told[at] = f"{told[at]} {group}".lstrip()
    labels = [f"{group} {name}".strip() for group, name in zip(told, names, strict=True)]
    labels[:1] = [", ".join(dict.fromkeys(filter(None, (*context, *labels[:1]))))]
    return tuple(label if len(label) <= _LABEL_CHARS else "" for label in labels)


def is_head_row(row: Sequence[str], following: Sequence[str]) -> bool:
    """Whether a row can be above the row of names: a title, a unit, periods, or the names of groups of columns."""
    filled = [cell for cell in row if cell.strip()]
    if not filled or not all(kind_of(cell) is CellKind.WORDS or is_period(cell) for cell in filled):
        return False
    few = len(row) > 1 and (len(filled) == 1 or 3 * len(filled) <= len(row))
    return few or any(not cell.strip() and below.strip() for cell, below in zip(row, following, strict=False))


def _spread(cells: Sequence[tuple[int, str]], names: Sequence[str]) -> list[str]:
    """For each column the group it is in; "" for one outside of all.

    Each group has a cell above it: over any column of those whose names repeat, over the last where all groups are
    aligned right, else over the first.
    """
    columns, count = len(names), len(cells)
    places = [at for at, _ in cells]
    for first in (1, 0):
        size, rest = divmod(columns - first, count)
        cycles = [tuple(names[at : at + size]) for at in range(first, columns, size)] if size and not rest else []
        inside = all(first + size * number <= at < first + size * (number + 1) for number, at in enumerate(places))
        if count > 1 and len(set(cycles)) == 1 and inside:
            return [""] * first + [text for _, text in cells for _ in range(size)]
    groups = [""] * columns
    wide = all(end - start > 1 for start, end in pairwise([0, *places]))  # each over two columns at least
    if places[-1] == columns - 1 and wide:
        start = 1
        for at, text in cells:
            groups[start : at + 1] = [text] * (at + 1 - start)
            start = at + 1
        return groups
    for (at, text), end in zip(cells, (*places[1:], columns), strict=True):
        groups[at:end] = [text] * (end - at)
    return groups
