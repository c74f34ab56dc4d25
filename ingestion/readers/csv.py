"""Reads delimited tables (CSV, RFC 4180, and those with other delimiters)."""

import csv
import io
from pathlib import Path

from ingestion.builder import TextBuilder
from ingestion.encoding import decode
from ingestion.errors import Malformed
from ingestion.normalise import normalise
from ingestion.readers.table_rows import append_table
from ingestion.types import Extraction, ExtractionLimits, MediaType

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
    builder = TextBuilder(limits)
    append_table(rows, builder)
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
