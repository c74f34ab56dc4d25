"""Where a passage stands on the pages of its PDF. The file is opened where it can do no harm: in a parser process."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from threading import BoundedSemaphore
from types import TracebackType
from typing import Self

from app.db.contents import ContentRepository
from app.documents.originals import FileStore
from app.errors import InvalidRequest, ServerFull
from app.telemetry.logs import logger
from ingestion.child_extractor import ChildExtractor
from ingestion.errors import IngestionError
from ingestion.types import ExtractionLimits, MediaType, PageBoxes, PageSpan
from retrieval.words import word_spans

MOST_CHARS = 50_000
_SECONDS = 10.0  # somebody looks on
_MOST_WAITING = 16  # callers, each on a thread of the server


@dataclass(frozen=True, slots=True)
class FoundBoxes:
    """Boxes by page; `exact` is false where some of the passage's characters were not found.

    `coverage` is the share of its words that have a box, in [0, 1]: 1 where it has no words.
    """

    pages: tuple[PageBoxes, ...]
    exact: bool
    coverage: float


class PassageBoxes:
    """Finds passages on pages.

    Files that cannot be opened (any more) have no boxes, which is no error: the text is there all the same.
    """

    def __init__(self, contents: ContentRepository, files: FileStore, *, limits: ExtractionLimits) -> None:
        """`limits` are those of ingestion; less time is given here."""
        self._contents = contents
        self._files = files
        self._parser = ChildExtractor(replace(limits, seconds=min(limits.seconds, _SECONDS)))
        self._waiting = BoundedSemaphore(_MOST_WAITING)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """End the parser process, if there is one."""
        self._parser.close()

    def find(self, document_id: str, *, tenant_id: str, version: int, start: int, end: int) -> FoundBoxes:
        """Where characters `[start, end)` of a version's canonical text stand.

        Raises:
            NotFound: No such document, or the version is gone or not indexed yet.
            InvalidRequest: More characters than we look for at once.
            ServerFull: Too many callers wait.
        """
        if end - start > MOST_CHARS:
            raise InvalidRequest(f"At most {MOST_CHARS:,} characters can be looked for at once.", param="end")
        if self._contents.media_type(document_id, tenant_id=tenant_id, version=version) != MediaType.PDF:
            return FoundBoxes((), exact=False, coverage=0.0)
        spans = self._spans(document_id, tenant_id, version, start, end)
        path = self._files.path(document_id, version)
        if not spans or not path.is_file():
            return FoundBoxes((), exact=not spans, coverage=0.0 if spans else 1.0)
        if not self._waiting.acquire(blocking=False):
            raise ServerFull(retry_after_s=1)
        try:
            pages = self._parser.locate(path, spans)
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
    """The share of words with a box; a page that could not be loaded has none."""
    loaded = {page.number for page in pages}
    unseen = (span for span in spans if span.number not in loaded)
    words = sum(page.words for page in pages)
    words += sum(len(word_spans(span.text[span.start : span.end])) for span in unseen)
    return sum(page.words_found for page in pages) / words if words else 1.0
