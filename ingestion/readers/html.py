"""Reads HTML pages; fixes encoding and unclosed elements before docling parses them."""

from pathlib import Path

from lxml import etree  # type: ignore[import-untyped]

from ingestion.builder import TextBuilder
from ingestion.encoding import decode
from ingestion.errors import LimitExceeded
from ingestion.normalise import normalise
from ingestion.readers.docling_tree import append_tree, convert, page_title
from ingestion.readers.html_chrome import mark_chrome
from ingestion.types import Extraction, ExtractionLimits, MediaType

# Real pages stay under 50. Docling takes quadratic time in the depth and runs out of stack near 300.
_MOST_DEPTH = 200


def read_html(path: Path, limits: ExtractionLimits) -> Extraction:
    """Read a page's text; scripts, styles and everything it links to are left alone.

    Raises:
        IngestionError: See `ports.Extractor`.
    """
    builder = TextBuilder(limits)
    title = append_page(decode(path.read_bytes()), builder)
    return builder.build(MediaType.HTML, declared=title)


def append_page(page: str, builder: TextBuilder) -> str | None:
    """Append the blocks of an HTML page; returns its title, where it has one.

    Raises:
        LimitExceeded: Elements are nested too deeply, or there is more text than the limits allow.
    """
    # The mark goes before any encoding that the page declares (HTML Standard §13.2.3.2).
    document = convert(_closed(normalise(page)).encode("utf-8-sig"), MediaType.HTML)
    append_tree(document, builder)
    return page_title(document)


def _closed(page: str) -> str:
    """The page with every element closed, and what is around its content marked.

    Docling's own parser nests each unclosed `<p>` in the one before it, so that a
    harmless old page would be as deep as it is long.

    Raises:
        LimitExceeded: Elements are nested more than `_MOST_DEPTH` deep.
    """
    root = etree.fromstring(page.encode(), etree.HTMLParser(encoding="utf-8", huge_tree=True, remove_comments=True))
    if root is None:
        return page
    depth = 0
    for event, _ in etree.iterwalk(root, events=("start", "end")):
        depth += 1 if event == "start" else -1
        if depth > _MOST_DEPTH:
            raise LimitExceeded("The elements of the page are nested too deeply to be read.")
    mark_chrome(root)
    closed: str = etree.tostring(root, encoding="unicode", method="html")
    return closed
