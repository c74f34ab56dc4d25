"""EPUB books (EPUB 3.3): the chapters in the order of the spine."""

from pathlib import Path

from defusedxml.ElementTree import fromstring  # type: ignore[import-untyped]

from ingestion.builder import TextBuilder
from ingestion.container import opened
from ingestion.readers.docling_tree import append_tree, convert
from ingestion.types import Extraction, ExtractionLimits, MediaType


def read_epub(path: Path, limits: ExtractionLimits) -> Extraction:
    """Read a book; its container has been checked. It has no pages: those depend on the screen.

    Raises:
        IngestionError: As `ports.Extractor` says.
    """
    builder = TextBuilder(limits)
    append_tree(convert(path.read_bytes(), MediaType.EPUB), builder)
    return builder.build(MediaType.EPUB, title=_title(path))


def _title(path: Path) -> str | None:
    """The book's first `dc:title` (EPUB 3.3 §5.5.3.1.2), `None` where the package document names none."""
    with opened(path) as archive:
        root = fromstring(archive.read("META-INF/container.xml")).find(".//{*}rootfile")
        package = fromstring(archive.read(root.get("full-path", ""))) if root is not None else None
    return package.findtext(".//{http://purl.org/dc/elements/1.1/}title") if package is not None else None
