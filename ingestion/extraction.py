"""Reads a file in this process: the reference that the child process must equal."""

from collections.abc import Callable
from functools import partial
from pathlib import Path

from ingestion.container import check_members
from ingestion.errors import IngestionError, LimitExceeded, Malformed
from ingestion.sniff import sniff
from ingestion.types import Extraction, ExtractionLimits, MediaType

_CONTAINERS = frozenset({MediaType.DOCX, MediaType.PPTX, MediaType.XLSX, MediaType.EPUB})


class LocalExtractor:
    """An `Extractor` without a process of its own.

    It keeps the caps on text, pages and expanded size; time and memory can only be capped from
    outside (`ChildExtractor`). For the child itself, for tests, and for files that one wrote oneself.
    """

    def __init__(self, limits: ExtractionLimits | None = None) -> None:
        self._limits = limits or ExtractionLimits()

    def extract(self, path: Path, *, filename: str) -> Extraction:
        """As `ports.Extractor` says."""
        media_type = sniff(path, filename=filename)
        if media_type in _CONTAINERS:
            check_members(path, expanded_bytes=self._limits.expanded_bytes)
        try:
            return load_reader(media_type)(path, self._limits)
        except IngestionError:
            raise
        except RecursionError as error:
            raise LimitExceeded("The elements of the document are nested too deeply to be read.") from error
        except MemoryError as error:
            raise LimitExceeded("Reading the document takes more memory than we allow.") from error
        except Exception as error:  # parsers raise what they like on a hostile file
            raise Malformed("The file is damaged, or not what it claims to be.") from error


def load_reader(media_type: MediaType) -> Callable[[Path, ExtractionLimits], Extraction]:  # noqa: PLR0911 - one a format
    """The reader of a format, imported now: some take seconds and hundreds of MB to load."""
    match media_type:
        case MediaType.PDF:
            from ingestion.readers.pdf import read_pdf

            return read_pdf
        case MediaType.DOCX | MediaType.PPTX | MediaType.XLSX:
            from ingestion.readers.office import read_office

            return partial(read_office, media_type=media_type)
        case MediaType.HTML:
            from ingestion.readers.html import read_html

            return read_html
        case MediaType.EPUB:
            from ingestion.readers.epub import read_epub

            return read_epub
        case MediaType.MARKDOWN:
            from ingestion.readers.markdown import read_markdown

            return read_markdown
        case MediaType.CSV:
            from ingestion.readers.csv import read_csv

            return read_csv
        case MediaType.TEXT:
            from ingestion.readers.text import read_text

            return read_text
