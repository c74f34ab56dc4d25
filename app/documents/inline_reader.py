"""Reads documents that were sent with a question: as uploads are read, within smaller limits, and stored nowhere.

Plain texts are read in this process, PDFs by a parser process from a folder that is deleted at once.
"""

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from app.documents.inline_library import InlineLibrary, SentDocument, called
from app.errors import InvalidRequest, TooLarge
from ingestion.errors import IngestionError, LimitExceeded
from ingestion.pipeline import Pipeline, ReadyVersion
from ingestion.readers.text import extraction_of
from ingestion.titles import words_of_name
from ingestion.types import Extraction, ExtractionLimits, StageProgress

_PDF = b"%PDF-"
_MARK_WITHIN = 1024  # bytes from the start in which a PDF's mark may stand, as `ingestion.sniff` reads it


@dataclass(frozen=True, slots=True)
class InlineLimits:
    """The most that is read from one request: documents, characters of their texts together, pages of a PDF."""

    documents: int
    chars: int
    pages: int


class InlineReader:
    """Makes the library of a question from the documents that were sent with it. Safe to call from several threads.

    Example:
        >>> library = reader.read([SentDocument("The notice period is a month.")], tenant_id="acme")
        >>> library.passages
        ('The notice period is a month.',)
    """

    def __init__(self, pipeline: Pipeline, *, limits: InlineLimits, dim: int) -> None:
        """`pipeline` reads PDFs, within the limits too, and cuts all; its embedder's vectors have `dim` numbers."""
        self._pipeline = pipeline
        self._limits = limits
        self._dim = dim

    def read(self, documents: Sequence[SentDocument], *, tenant_id: str) -> InlineLibrary:
        """Read and cut the documents; nothing is embedded yet. Blocks.

        Raises:
            TooLarge: They are too many, or have too many characters or pages; the message says which.
            InvalidRequest: One cannot be read; the message says which and why, `param` its place in the request.
        """
        most = self._limits
        if len(documents) > most.documents:
            raise TooLarge(
                f"The messages have {len(documents)} documents; at most {most.documents} are read from one request "
                "(FOOTNOTE_INLINE_DOCUMENTS)."
            )
        ready: list[ReadyVersion] = []
        chars = 0
        for number, sent in enumerate(documents):
            version = self._ready(sent, number)
            chars += len(version.extraction.text)
            if chars > most.chars:
                raise self._too_many_chars()
            ready.append(version)
        return InlineLibrary(documents, ready, tenant_id=tenant_id, dim=self._dim)

    def _ready(self, sent: SentDocument, number: int) -> ReadyVersion:
        content = sent.content
        try:
            if isinstance(content, bytes):
                return self._read_pdf(content, called(sent, number))
            texts = [content] if isinstance(content, str) else content
            if sum(map(len, texts)) > 2 * self._limits.chars:  # half of them may be invisible
                raise self._too_many_chars()
            extraction = extraction_of(texts, ExtractionLimits(text_chars=self._limits.chars))
            return self._pipeline.cut(_titled(extraction, called(sent, number)))
        except LimitExceeded as error:
            raise TooLarge(f"Document {number + 1}: {error}") from error
        except IngestionError as error:
            raise InvalidRequest(f"Document {number + 1}: {error}", param=sent.field) from error

    def _read_pdf(self, content: bytes, name: str) -> ReadyVersion:
        if _PDF not in content[:_MARK_WITHIN]:
            raise IngestionError("The file is not a PDF.")
        with tempfile.TemporaryDirectory(prefix="footnote-sent-") as folder:
            path = Path(folder) / "document"
            path.write_bytes(content)
            return self._pipeline.prepare(path, filename=f"{name.removesuffix('.pdf')}.pdf", on_progress=_unheard)

    def _too_many_chars(self) -> TooLarge:
        return TooLarge(
            f"The documents have more than {self._limits.chars:,} characters together, the most that is read from one "
            "request (FOOTNOTE_INLINE_CHARS)."
        )


def _titled(extraction: Extraction, name: str) -> Extraction:
    """The extraction with a title, as an upload of that name gets it."""
    return replace(extraction, title=extraction.title or words_of_name(name) or None)


def _unheard(_: StageProgress) -> None:
    """Nobody is told of the progress."""
