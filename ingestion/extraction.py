"""Reads a file in this process: the reference that the child process must equal."""

import tempfile
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

from ingestion.container import check_members
from ingestion.errors import IngestionError, LimitExceeded, Malformed
from ingestion.sniff import sniff
from ingestion.types import Extraction, ExtractionLimits, MediaType

_OOXML = frozenset({MediaType.DOCX, MediaType.PPTX, MediaType.XLSX})
_CURRENT = {MediaType.DOC: MediaType.DOCX, MediaType.XLS: MediaType.XLSX, MediaType.PPT: MediaType.PPTX}
_CONTAINERS = _OOXML | {MediaType.ODT, MediaType.ODS, MediaType.ODP, MediaType.EPUB}
_MOST_DEPTH = 3  # a message, attached to a message, attached to a message


class LocalExtractor:
    """An `Extractor` without a process of its own.

    It keeps the caps on text, pages and expanded size; time and memory can only be capped from
    outside (`ChildExtractor`). For the child itself, for tests, and for files that one wrote oneself.
    """

    def __init__(
        self,
        limits: ExtractionLimits | None = None,
        *,
        soffice: Path | None = None,
        on_scan: Callable[[int, int], None] | None = None,
        depth: int = 0,
    ) -> None:
        """`soffice` is LibreOffice's program; `depth` says how many messages the files are attachments of.

        `on_scan` is called with the number of a scanned page (from 1) and of all in a PDF before each is
        recognised; whoever gives it keeps the time. Without it a scan that would take too long is refused.
        """
        self._limits = limits or ExtractionLimits()
        self._soffice = soffice
        self._on_scan = on_scan
        self._depth = depth

    def extract(self, path: Path, *, filename: str, password: str | None = None) -> Extraction:
        """As `ports.Extractor` says."""
        try:
            return self._extract(path, filename, password)
        except IngestionError:
            raise
        except RecursionError as error:
            raise LimitExceeded("The elements of the document are nested too deeply to be read.") from error
        except MemoryError as error:
            raise LimitExceeded("Reading the document takes more memory than we allow.") from error
        except Exception as error:  # parsers raise what they like on a hostile file
            raise Malformed("The file is damaged, or not what it claims to be.") from error

    def _extract(self, path: Path, filename: str, password: str | None) -> Extraction:
        media_type = sniff(
            path, filename=filename, with_password=password is not None, with_office=self._soffice is not None
        )
        if password is not None and media_type in _OOXML | _CURRENT.keys():
            from ingestion.readers.office import is_encrypted, write_decrypted

            if is_encrypted(path):
                with tempfile.TemporaryDirectory() as folder:
                    decrypted = Path(folder) / "document"
                    write_decrypted(path, decrypted, password=password)
                    return self._extract(decrypted, filename, None)
        if media_type in _CONTAINERS:
            check_members(path, expanded_bytes=self._limits.expanded_bytes)
        if media_type in _CURRENT:
            return self._extract_legacy(path, media_type)
        if media_type is MediaType.PDF:
            from ingestion.readers.pdf import read_pdf

            return read_pdf(path, self._limits, password=password, on_scan=self._on_scan)
        if media_type is MediaType.EMAIL:
            from ingestion.readers.email import read_email

            attached = LocalExtractor(self._limits, soffice=self._soffice, on_scan=self._on_scan, depth=self._depth + 1)
            return read_email(path, self._limits, attachments=attached if self._depth < _MOST_DEPTH else None)
        return load_reader(media_type)(path, self._limits)

    def _extract_legacy(self, path: Path, media_type: MediaType) -> Extraction:
        from ingestion.readers.legacy import converted

        assert self._soffice is not None, "the file would have been refused"
        with tempfile.TemporaryDirectory() as folder:
            current = converted(path, Path(folder), media_type, soffice=self._soffice, seconds=self._limits.seconds)
            return replace(self._extract(current, current.name, None), media_type=media_type)


def load_reader(media_type: MediaType) -> Callable[[Path, ExtractionLimits], Extraction]:  # noqa: PLR0911 - one a format
    """The reader of a format, imported now: some take seconds and hundreds of MB to load."""
    match media_type:
        case MediaType.PDF:
            from ingestion.readers.pdf import read_pdf

            return read_pdf
        case MediaType.DOCX | MediaType.PPTX | MediaType.XLSX:
            from ingestion.readers.office import read_office

            return partial(read_office, media_type=media_type)
        case MediaType.DOC | MediaType.PPT | MediaType.XLS:  # converted first
            from ingestion.readers.office import read_office

            return partial(read_office, media_type=_CURRENT[media_type])
        case MediaType.ODT | MediaType.ODS | MediaType.ODP:
            from ingestion.readers.office import read_odf

            return partial(read_odf, media_type=media_type)
        case MediaType.RTF:
            from ingestion.readers.rtf import read_rtf

            return read_rtf
        case MediaType.EMAIL:
            from ingestion.readers.email import read_email

            return read_email
        case MediaType.HTML:
            from ingestion.readers.html import read_html

            return read_html
        case MediaType.EPUB:
            from ingestion.readers.office import read_epub

            return read_epub
        case MediaType.MARKDOWN:
            from ingestion.readers.markdown import read_markdown

            return read_markdown
        case MediaType.CSV:
            from ingestion.readers.csv import read_csv

            return read_csv
        case MediaType.CODE:
            from ingestion.readers.text import read_code

            return read_code
        case MediaType.TEXT:
            from ingestion.readers.text import read_text

            return read_text
