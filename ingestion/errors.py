"""The errors of ingestion. Each `code` is stable: it is stored with the failed document and shown to people."""


class IngestionError(Exception):
    """A document could not be ingested. The message is a sentence a person understands; no path, no stack."""

    code = "ingestion-failed"


class UnsupportedFormat(IngestionError):
    """The bytes are of an unsupported format, or contradict the file's name."""

    code = "unsupported-format"


class EmptyDocument(IngestionError):
    """The file has no bytes."""

    code = "empty-document"


class NoText(IngestionError):
    """The file was read but holds no text (a scan, an image)."""

    code = "no-text"


class Encrypted(IngestionError):
    """The file needs a password."""

    code = "encrypted"


class Malformed(IngestionError):
    """The file violates the format that it declares."""

    code = "malformed"


class LimitExceeded(IngestionError):
    """A cap of `ExtractionLimits` was hit: time, memory, text, pages or expanded size."""

    code = "parser-limit"


class NoRoom(IngestionError):
    """The disk has no room for a copy of the file, which the parser reads."""

    code = "insufficient-storage"


class DiskFailed(IngestionError):
    """The disk failed while the file was read, which proves nothing about the file."""

    code = "store-unavailable"

    def __init__(self, message: str = "The disk failed while the document was read.") -> None:
        super().__init__(message)


class ParserCrashed(IngestionError):
    """The parser process died on this file."""

    code = "parser-crashed"
