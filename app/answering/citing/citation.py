"""A footnote of an answer: its marker, and the exact passage of a document that it opens."""

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import PurePath
from typing import Literal

from app.answering.citing.cell_ranges import range_of
from app.db.contents import ContentRepository
from app.errors import NotFound
from ingestion.types import Block, BlockKind, PageRange
from retrieval.types import Chunk, Context, Source, Span


@dataclass(frozen=True, slots=True)
class Layout:
    """The pages of a document version, and for a version without pages where its sections begin, with their headings.

    `headings` is in order; an empty name is text under no heading. `rows` are the blocks with addresses of cells.
    """

    pages: tuple[PageRange, ...] = ()
    starts: tuple[int, ...] = ()
    headings: tuple[str, ...] = ()
    rows: tuple[Block, ...] = ()

    @classmethod
    def of(cls, pages: Sequence[PageRange], blocks: Sequence[Block]) -> "Layout":
        """The layout for the structure of a canonical text."""
        starts: list[int] = []
        headings: list[str] = []
        for at, block in enumerate(blocks if not pages else ()):
            path = block.heading_path
            if block.kind is BlockKind.HEADING:
                below = blocks[at + 1].heading_path if at + 1 < len(blocks) else ()
                path = below if len(below) > len(path) and below[: len(path)] == path else path
            name = path[-1] if path else ""
            if not headings or headings[-1] != name:
                starts.append(block.start_char)
                headings.append(name)
        return cls(tuple(pages), tuple(starts), tuple(headings), tuple(block for block in blocks if block.cells))

    def heading_at(self, offset: int) -> str | None:
        """The innermost heading above the character at `offset`; None where there is none, or it is not known."""
        at = bisect_right(self.starts, offset) - 1
        return (self.headings[at] or None) if at >= 0 else None


Pages = Mapping[tuple[str, int], Layout]
"""Layouts by (document id, version): of documents without pages, of spreadsheets, and where a chunk crosses pages."""

_SPREADSHEETS = {".xlsx", ".xlsm", ".xls", ".ods"}

THRESHOLD = 0.6
"""Least support with which a sentence counts as verified.

It is the least, in steps of 0.05, at which 85 in 100 verified sentences are true, on held-out documents of all sets.
"""

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
    question is answered; None where nothing estimates that. `section` is the innermost heading above the passage.
    In a spreadsheet, `sheet` is the name of the sheet, and `cell` a cell or a range of cells (`B27`, `A27:J27`). They
    are None where there is none, or an answer is from before they were recorded. `current_version` is the version that
    replaced the cited one while the answer was written; None where none did.
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
    section: str | None = None
    sheet: str | None = None
    cell: str | None = None
    current_version: int | None = None

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
        words: Span | None = None,
    ) -> "Citation":
        """The footnote at `marker` that opens `passage`.

        Args:
            source: The presented source; its number is the footnote's (`retrieval.footnote_numbers`).
            passage: Document offsets inside the source's best chunk.
            marker: Offsets in the answer.
            support: The support in [0, 1] of the passage for the sentence with the marker.
            origin: The author of the marker.
            pages: Without the document's layout a passage of a chunk that crosses pages carries the
                chunk's whole page range, and its section is the chunk's.
            answers: The probability in [0, 1] that the question is answered, if it was estimated.
            words: The words of the passage that answer, if they are known: their cell is named, not the passage's.
        """
        chunk = source.hit.chunk
        layout = pages.get((chunk.document_id, chunk.version), Layout())
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
            cited_text=chunk.text_at(passage),
            verified=_verified(support, answers),
            support=support,
            origin=origin,
            answers=answers,
            section=_section(source, passage, pages),
            sheet=sheet_of(source.chunk_at(passage), page_start, page_end),
            cell=range_of(layout.rows, words or passage, chunk=chunk),
        )

    def judged(self, answers: float | None) -> "Citation":
        """The same footnote of an answer that answers the question with this probability."""
        return replace(self, answers=answers, verified=_verified(self.support, answers))


def _verified(support: float, answers: float | None) -> bool:
    """Whether a passage supports its sentence, and the question is almost certainly answered."""
    return support >= THRESHOLD and (answers is None or answers >= CONFIRMED)


def _page_range(chunk: Chunk, passage: Span, pages: Pages) -> tuple[int | None, int | None]:
    layout = pages.get((chunk.document_id, chunk.version))
    if chunk.page_start == chunk.page_end or layout is None:
        return chunk.page_start, chunk.page_end
    numbers = [page.number for page in layout.pages if _overlap(page, passage)]
    return (numbers[0], numbers[-1]) if numbers else (chunk.page_start, chunk.page_end)


def _section(source: Source, passage: Span, pages: Pages) -> str | None:
    """The heading above a passage: by the layout, as a chunk may join several small sections, else the chunk's own."""
    chunk = source.chunk_at(passage)
    layout = pages.get((chunk.document_id, chunk.version))
    if layout is not None and layout.starts:
        return layout.heading_at(passage.start_char)
    return chunk.heading_path[-1] if chunk.heading_path else None


def sheet_of(chunk: Chunk, page_start: int | None, page_end: int | None) -> str | None:
    """The name of the sheet with a passage of a chunk; None outside spreadsheets, and where it crosses sheets.

    Ingestion makes each sheet a page, below a heading with its name.
    """
    if not _is_spreadsheet(chunk) or not chunk.heading_path:
        return None
    return chunk.heading_path[0] if page_start == page_end == chunk.page_start else None


def _is_spreadsheet(chunk: Chunk) -> bool:
    return PurePath(chunk.filename).suffix.lower() in _SPREADSHEETS


def _overlap(page: PageRange, passage: Span) -> bool:
    return page.start_char < passage.end_char and passage.start_char < page.end_char


def layouts(contents: ContentRepository, context: Context, *, tenant_id: str) -> dict[tuple[str, int], Layout]:
    """Layouts of the documents with a source that crosses a page boundary, has no pages but sections, or has cells.

    A document that was deleted since it was searched has none.
    """
    chunks = [source.hit.chunk for source in context.sources]
    wanted = {
        (chunk.document_id, chunk.version)
        for chunk in chunks
        if chunk.page_start != chunk.page_end or chunk.page_start is None or _is_spreadsheet(chunk)
    }
    found = {}
    for document_id, version in wanted:
        with suppress(NotFound):
            pages, blocks = contents.structure(document_id, tenant_id=tenant_id, version=version)
            found[document_id, version] = Layout.of(pages, blocks)
    return found
