"""Reads delimited tables; each row becomes self-contained text: `city: Oslo | people: 717,710`."""

import csv
import io
import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from ingestion.builder import TextBuilder, one_line
from ingestion.encoding import decode
from ingestion.errors import Malformed
from ingestion.normalise import normalise
from ingestion.types import BlockKind, Extraction, ExtractionLimits, MediaType

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


_DELIMITERS = ",;\t|"
_SAMPLE_CHARS = 8192


def read_csv(path: Path, limits: ExtractionLimits) -> Extraction:
    """Read a delimited table; the delimiter is found by looking.

    Raises:
        IngestionError: See `ports.Extractor`.
    """
    text = normalise(decode(path.read_bytes()))
    try:
        rows = [row for row in csv.reader(io.StringIO(text), _dialect(text)) if any(cell.strip() for cell in row)]
    except csv.Error as error:
        raise Malformed("The table cannot be split into columns; a quotation mark may be missing.") from error
    header = rows[0] if len(rows) > 1 and is_header(rows[0]) else None
    builder = TextBuilder(limits)
    for line in row_texts([header] if header else [], header=None):
        builder.append(BlockKind.TABLE_ROW, line)
    for line in row_texts(rows[1:] if header else rows, header=header):
        builder.append(BlockKind.TABLE_ROW, line)
    return builder.build(MediaType.CSV)


def _dialect(text: str) -> type[csv.Dialect] | csv.Dialect:
    sample = text[:_SAMPLE_CHARS]
    cut = sample.rfind("\n")
    if len(text) > len(sample) and cut > 0:
        sample = sample[:cut]
    try:
        dialect = csv.Sniffer().sniff(sample, delimiters=_DELIMITERS)
    except csv.Error:
        return csv.excel_tab if "\t" in sample and "," not in sample else csv.excel
    dialect.doublequote = True  # the sniffer answers False where its sample has no doubled quote
    return dialect
