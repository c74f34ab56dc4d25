"""Reads a file in this process: the reference that the child process must equal."""

import errno
import tempfile
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

from ingestion.container import check_members
from ingestion.errors import DiskFailed, IngestionError, LimitExceeded, Malformed
from ingestion.formats import FORMATS, Family
from ingestion.furniture import with_furniture
from ingestion.sniff import sniff
from ingestion.titles import words_of_name
from ingestion.types import Extraction, ExtractionLimits, MediaType

_LONGEST_CHAIN = 10  # of the errors that led to an error
_MOST_DEPTH = 3  # a message, attached to a message, attached to a message


class LocalExtractor:
    """An `Extractor` in the calling process.

    It keeps the caps on text, pages and expanded size; time and memory can only be capped from
    outside (`ChildExtractor`). Used by the child itself, in tests, and for trusted files.
    """

    def __init__(
        self,
        limits: ExtractionLimits | None = None,
        *,
        soffice: Path | None = None,
        on_scan: Callable[[int, int], None] | None = None,
        depth: int = 0,
    ) -> None:
        """`soffice` is LibreOffice's program; `depth` is the number of messages that enclose the files.

        `on_scan` is called with the number of a scanned page (from 1) and of all in a PDF before each is
        recognised; its owner enforces the time limit. Without it a scan that would take too long is refused.
        """
        self._limits = limits or ExtractionLimits()
        self._soffice = soffice
        self._on_scan = on_scan
        self._depth = depth

    def extract(self, path: Path, *, filename: str, password: str | None = None) -> Extraction:
        """See `ports.Extractor`."""
        try:
            extraction = with_furniture(self._extract(path, filename, password))
            return replace(extraction, title=extraction.title or words_of_name(filename) or None)
        except Exception as error:  # parsers may raise anything on a hostile file
            if _failed_to_read(error):
                raise DiskFailed from error
            if isinstance(error, IngestionError):
                raise
            if isinstance(error, RecursionError):
                raise LimitExceeded("The elements of the document are nested too deeply to be read.") from error
            if isinstance(error, MemoryError):
                raise LimitExceeded("Reading the document takes more memory than we allow.") from error
            raise Malformed("The file is damaged, or not what it claims to be.") from error

    def _extract(self, path: Path, filename: str, password: str | None) -> Extraction:
        media_type = sniff(
            path, filename=filename, with_password=password is not None, with_office=self._soffice is not None
        )
        family = FORMATS[media_type].family
        if password is not None and family in {Family.OOXML, Family.OLE}:
            from ingestion.readers.office import is_encrypted, write_decrypted

            if is_encrypted(path):
                with tempfile.TemporaryDirectory() as folder:
                    decrypted = Path(folder) / "document"
                    write_decrypted(path, decrypted, password=password)
                    return self._extract(decrypted, filename, None)
        if family in {Family.OOXML, Family.ZIP}:
            check_members(path, expanded_bytes=self._limits.expanded_bytes)
        if FORMATS[media_type].current is not None:
            return self._extract_legacy(path, media_type)
        options: dict[str, Any] = {}
        if media_type is MediaType.PDF:
            options = {"password": password, "on_scan": self._on_scan}
        if media_type is MediaType.EMAIL and self._depth < _MOST_DEPTH:
            options["attachments"] = LocalExtractor(
                self._limits, soffice=self._soffice, on_scan=self._on_scan, depth=self._depth + 1
            )
        return load_reader(media_type)(path, self._limits, **options)

    def _extract_legacy(self, path: Path, media_type: MediaType) -> Extraction:
        from ingestion.readers.legacy import converted

        assert self._soffice is not None, "the file would have been refused"
        with tempfile.TemporaryDirectory() as folder:
            current = converted(path, Path(folder), media_type, soffice=self._soffice, seconds=self._limits.seconds)
            return replace(self._extract(current, current.name, None), media_type=media_type)


def _failed_to_read(error: BaseException) -> bool:
    """Whether an error, or one that led to it, says that the disk cannot be read: no file's content causes that."""
    at: BaseException | None = error
    for _ in range(_LONGEST_CHAIN):
        if at is None:
            return False
        if isinstance(at, OSError) and at.errno == errno.EIO:
            return True
        at = at.__cause__ or at.__context__
    return False


def load_reader(media_type: MediaType) -> Callable[..., Extraction]:
    """The reader of a format, imported now: some take seconds and hundreds of MB to load.

    It is called with the path and the `ExtractionLimits`; a legacy format's reader reads the converted file.
    """
    row = FORMATS[media_type]
    module, function = row.reader.split(":")
    reader: Callable[..., Extraction] = getattr(import_module(module), function)
    return partial(reader, media_type=row.current or media_type) if row.shared_reader else reader
