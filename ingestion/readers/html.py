"""HTML pages, their encoding settled before the parser sees them."""

from pathlib import Path

from ingestion.builder import TextBuilder
from ingestion.encoding import decode
from ingestion.normalise import normalise
from ingestion.readers.docling_tree import append_tree, convert, page_title
from ingestion.types import Extraction, ExtractionLimits, MediaType


def read_html(path: Path, limits: ExtractionLimits) -> Extraction:
    """Read a page's text; scripts, styles and everything it links to are left alone.

    Raises:
        IngestionError: As `ports.Extractor` says.
    """
    # The mark goes before any encoding that the page declares (HTML Standard §13.2.3.2).
    document = convert(normalise(decode(path.read_bytes())).encode("utf-8-sig"), MediaType.HTML)
    builder = TextBuilder(limits)
    append_tree(document, builder)
    return builder.build(MediaType.HTML, title=page_title(document))
