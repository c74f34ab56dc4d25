"""OpenDocument files (ODF 1.4, ISO/IEC 26300): a slide or a sheet is a page, a text has none until it is laid out."""

from pathlib import Path

from ingestion.builder import TextBuilder
from ingestion.container import opened
from ingestion.errors import Encrypted
from ingestion.readers.docling_tree import append_footnotes, append_tree, convert
from ingestion.types import Extraction, ExtractionLimits, MediaType

_MANIFEST = "META-INF/manifest.xml"
_ENCRYPTION = b"encryption-data"  # an element of the manifest, ODF 1.4 part 2 §4.5


def read_odf(path: Path, limits: ExtractionLimits, media_type: MediaType) -> Extraction:
    """Read a text, a spreadsheet or a presentation; its container has been checked.

    Raises:
        IngestionError: As `ports.Extractor` says.
    """
    with opened(path) as archive:
        if _MANIFEST in archive.namelist() and _ENCRYPTION in archive.read(_MANIFEST):
            raise Encrypted("We cannot open OpenDocument files behind a password; save it without one.")
    builder = TextBuilder(limits)
    document = convert(path.read_bytes(), media_type)
    append_tree(document, builder)
    append_footnotes(document, builder)
    return builder.build(media_type)
