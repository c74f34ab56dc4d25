"""Office documents (OOXML, ECMA-376): a slide or a sheet is a page, DOCX has none until it is laid out."""

from pathlib import Path

from ingestion.builder import TextBuilder
from ingestion.readers.docling_tree import append_tree, convert
from ingestion.types import Extraction, ExtractionLimits, MediaType


def read_office(path: Path, limits: ExtractionLimits, media_type: MediaType) -> Extraction:
    """Read a Word document, a presentation or a workbook; its container has been checked.

    Raises:
        IngestionError: As `ports.Extractor` says.
    """
    builder = TextBuilder(limits)
    append_tree(convert(path.read_bytes(), media_type), builder)
    return builder.build(media_type)
