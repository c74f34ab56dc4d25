"""Finds the boxes of a passage on the pages of its PDF. The PDF is opened in a separate parser process."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from threading import BoundedSemaphore
from types import TracebackType
from typing import Protocol, Self

from app.db.contents import ContentRepository
from app.documents.files import DocumentFiles
from app.errors import InvalidRequest, ServerFull
from app.telemetry.logs import logger
from ingestion.child_extractor import ChildExtractor
from ingestion.errors import IngestionError
from ingestion.types import ExtractionLimits, MediaType, PageBoxes, PageSpan
from retrieval.words import word_spans

MOST_CHARS = 50_000
_SECONDS = 10.0  # a person is waiting
_MOST_WAITING = 16  # callers, each of which blocks a server thread


class PageParser(Protocol):
    """Reads the pages of a PDF; see `ChildExtractor`."""

    def locate(self, path: Path, spans: Sequence[PageSpan]) -> tuple[PageBoxes, ...]:
        """See `ChildExtractor.locate`.

        Raises:
            IngestionError: The file cannot be read.
        """
        ...

    def close(self) -> None:
        """End its process, if one runs."""
        ...


@dataclass(frozen=True, slots=True)
class FoundBoxes:
    """Boxes by page; `exact` is false when some characters of the passage were not found.

    `coverage` is the share of the passage's words that have a box, in [0, 1]; 1 when it has no words.
    """

    pages: tuple[PageBoxes, ...]
    exact: bool
    coverage: float


class PassageBoxes:
    """Finds passages on PDF pages. Use it in a `with`, which ends its parser process.

    A file that cannot be opened has no boxes; that is not an error, since the text is still available.

    Example:
        >>> with PassageBoxes.open(contents, files, limits=limits) as boxes:
        ...     found = boxes.find("doc_1", tenant_id="acme", version=1, start=0, end=120)
    """

    def __init__(
        self,
        contents: ContentRepository,
        files: DocumentFiles,
        *,
        parser: PageParser,
        most_waiting: int = _MOST_WAITING,
    ) -> None:
        """Create one with a parser, which it closes; at most `most_waiting` callers wait for it. See `open`."""
        self._contents = contents
        self._files = files
        self._parser = parser
        self._waiting = BoundedSemaphore(most_waiting)

    @classmethod
    def open(cls, contents: ContentRepository, files: DocumentFiles, *, limits: ExtractionLimits) -> Self:
        """One with a parser process. `limits` are those of ingestion, with at most 10 s of time."""
        parser = ChildExtractor(replace(limits, seconds=min(limits.seconds, _SECONDS)))
        return cls(contents, files, parser=parser)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """End the parser process, if one runs."""
        self._parser.close()

    def find(self, document_id: str, *, tenant_id: str, version: int, start: int, end: int) -> FoundBoxes:
        """The boxes of characters `[start, end)` of a version's canonical text.

        Raises:
            NotFound: No such document, or the version is gone or not indexed yet.
            InvalidRequest: More than `MOST_CHARS` characters.
            ServerFull: Too many callers wait.
        """
        if end - start > MOST_CHARS:
            raise InvalidRequest(f"At most {MOST_CHARS:,} characters can be looked for at once.", param="end")
        if self._contents.media_type(document_id, tenant_id=tenant_id, version=version) != MediaType.PDF:
            return FoundBoxes((), exact=False, coverage=0.0)
        spans = self._spans(document_id, tenant_id, version, start, end)
        name = self._files.original_of(document_id, version)
        if not spans or name is None:
            return FoundBoxes((), exact=not spans, coverage=0.0 if spans else 1.0)
        if not self._waiting.acquire(blocking=False):
            raise ServerFull(retry_after_s=1)
        try:
            with self._files.store.local_copy(name) as path:
                pages = self._parser.locate(path, spans)
        except FileNotFoundError:
            return FoundBoxes((), exact=False, coverage=0.0)
        except IngestionError as error:
            logger().warning("passage.not_located", document_id=document_id, version=version, code=error.code)
            return FoundBoxes((), exact=False, coverage=0.0)
        finally:
            self._waiting.release()
        exact = len(pages) == len(spans) and all(page.exact for page in pages)
        return FoundBoxes(pages, exact=exact, coverage=_coverage(spans, pages))

    def _spans(self, document_id: str, tenant_id: str, version: int, start: int, end: int) -> list[PageSpan]:
        pages, _ = self._contents.structure(document_id, tenant_id=tenant_id, version=version)
        spans = []
        for page in pages:
            first, last = max(start, page.start_char), min(end, page.end_char)
            if first < last:
                text = self._contents.text(
                    document_id, tenant_id=tenant_id, version=version, start=page.start_char, end=page.end_char
                )
                spans.append(PageSpan(page.number, text, first - page.start_char, last - page.start_char))
        return spans


def _coverage(spans: Sequence[PageSpan], pages: Sequence[PageBoxes]) -> float:
    """The share of words that have a box; words on pages that could not be loaded have none."""
    loaded = {page.number for page in pages}
    unseen = (span for span in spans if span.number not in loaded)
    words = sum(page.words for page in pages)
    words += sum(len(word_spans(span.text[span.start : span.end])) for span in unseen)
    return sum(page.words_found for page in pages) / words if words else 1.0
