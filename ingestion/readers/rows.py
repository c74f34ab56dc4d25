"""Table rows as text that can be understood alone: `city: Oslo | people: 717,710`."""

import re
from collections.abc import Iterable, Sequence

from ingestion.builder import one_line

_NUMBER = re.compile(r"[\s$€£¥%+()\-.,\d]*\d[\s$€£¥%+()\-.,\d]*")
_LABEL_CHARS = 60  # a longer cell in the first row is prose in a layout table, not a column's name


def row_texts(rows: Iterable[Sequence[str]], *, header: Sequence[str] | None) -> Iterable[str]:
    """One line per row: its cells joined by ` | `, each after its column's name where there is one.

    Empty cells are left out, so is a row without any; `header` is not itself among the lines.
    """
    labels = [one_line(name) for name in header or ()]
    for row in rows:
        cells = []
        for column, raw in enumerate(row):
            cell = one_line(raw)
            label = labels[column] if column < len(labels) else ""
            if cell:
                named = bool(label) and len(label) <= _LABEL_CHARS and label != cell
                cells.append(f"{label}: {cell}" if named else cell)
        if cells:
            yield " | ".join(cells)


def is_header(row: Sequence[str]) -> bool:
    """Whether every cell of a first row names a column: filled, unlike the others, and no number."""
    cells = [cell.strip() for cell in row]
    return len(set(cells)) == len(cells) and all(cell and not _NUMBER.fullmatch(cell) for cell in cells)
