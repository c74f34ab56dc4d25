"""A footnote of an answer: its marker, and the exact passage of a document that it opens."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from app.answering.verification.support import THRESHOLD
from app.db.contents import ContentRepository
from ingestion.types import Page
from retrieval.types import Chunk, Context, Source, Span

Pages = Mapping[tuple[str, int], Sequence[Page]]
"""Page tables by (document id, version), needed where a chunk crosses a page boundary."""

CONFIRMED = 0.92
"""Least probability that the question is answered with which a supported sentence counts as verified."""

Origin = Literal["model", "attributed"]
"""The author of a marker: the model, or Footnote after finding support."""


@dataclass(frozen=True, slots=True)
class Citation:
    """One footnote of an answer.

    `answer_start`/`answer_end` bound the marker in the answer; `start_char`/`end_char` the passage in
    the document version's canonical text, and `cited_text` is exactly that slice. It is `verified`
    where `support`, in [0, 1], reaches its threshold, and so does `answers`, the probability in [0, 1] that the
    question is answered; None where nothing estimates that.
    """

    index: int
    answer_start: int
    answer_end: int
    document_id: str
    version: int
    filename: str
    chunk_id: str
    page_start: int | None
    page_end: int | None
    start_char: int
    end_char: int
    cited_text: str
    verified: bool
    support: float
    origin: Origin
    answers: float | None = None

    @classmethod
    def of(
        cls,
        source: Source,
        passage: Span,
        *,
        marker: Span,
        support: float,
        origin: Origin,
        pages: Pages,
        answers: float | None = None,
    ) -> "Citation":
        """The footnote at `marker` that opens `passage`.

        Args:
            source: The presented source; its number is the footnote's (`retrieval.footnote_numbers`).
            passage: Document offsets inside the source's best chunk.
            marker: Offsets in the answer.
            support: The support in [0, 1] of the passage for the sentence with the marker.
            origin: The author of the marker.
            pages: Without the document's table a passage of a chunk that crosses pages carries the
                chunk's whole page range.
            answers: The probability in [0, 1] that the question is answered, if it was estimated.
        """
        chunk = source.hit.chunk
        page_start, page_end = _page_range(chunk, passage, pages)
        return cls(
            index=source.number,
            answer_start=marker.start_char,
            answer_end=marker.end_char,
            document_id=chunk.document_id,
            version=chunk.version,
            filename=chunk.filename,
            chunk_id=source.chunk_at(passage).id,
            page_start=page_start,
            page_end=page_end,
            start_char=passage.start_char,
            end_char=passage.end_char,
            cited_text=chunk.text[passage.start_char - chunk.start_char : passage.end_char - chunk.start_char],
            verified=_verified(support, answers),
            support=support,
            origin=origin,
            answers=answers,
        )

    def judged(self, answers: float | None) -> "Citation":
        """The same footnote of an answer that answers the question with this probability."""
        return replace(self, answers=answers, verified=_verified(self.support, answers))


def _verified(support: float, answers: float | None) -> bool:
    """Whether a passage supports its sentence, and the question is almost certainly answered."""
    return support >= THRESHOLD and (answers is None or answers >= CONFIRMED)


def _page_range(chunk: Chunk, passage: Span, pages: Pages) -> tuple[int | None, int | None]:
    table = pages.get((chunk.document_id, chunk.version))
    if chunk.page_start == chunk.page_end or not table:
        return chunk.page_start, chunk.page_end
    numbers = [page.number for page in table if _overlap(page, passage)]
    return (numbers[0], numbers[-1]) if numbers else (chunk.page_start, chunk.page_end)


def _overlap(page: Page, passage: Span) -> bool:
    return page.start_char < passage.end_char and passage.start_char < page.end_char


def page_tables(
    contents: ContentRepository, context: Context, *, tenant_id: str
) -> dict[tuple[str, int], tuple[Page, ...]]:
    """Page tables of the documents with a source that crosses a page boundary."""
    chunks = [source.hit.chunk for source in context.sources]
    wanted = {(chunk.document_id, chunk.version) for chunk in chunks if chunk.page_start != chunk.page_end}
    tables = {}
    for document_id, version in wanted:
        pages, _ = contents.structure(document_id, tenant_id=tenant_id, version=version)
        tables[document_id, version] = pages
    return tables
