"""Delimited tables (RFC 4180 and its relatives): one block per row, the header's names first and in each."""

import csv
import io
from pathlib import Path

from ingestion.builder import TextBuilder
from ingestion.encoding import decode
from ingestion.errors import Malformed
from ingestion.normalise import normalise
from ingestion.readers.rows import is_header, row_texts
from ingestion.types import BlockKind, Extraction, ExtractionLimits, MediaType

_DELIMITERS = ",;\t|"
_SAMPLE_CHARS = 8192


def read_csv(path: Path, limits: ExtractionLimits) -> Extraction:
    """Read a delimited table; the delimiter is found by looking.

    Raises:
        IngestionError: As `ports.Extractor` says.
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
    dialect.doublequote = True  # the sniffer says no where its sample happens to hold no doubled quote
    return dialect
