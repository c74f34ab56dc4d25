"""Reads what says most about a document as a whole: its title, its opening or abstract, and its headings.

Example:
    >>> parts = parts_of(contents, "doc_1", tenant_id="acme", version=1, title="Strategic Plan 2022")
    >>> parts.text(parts.opening), parts.page(parts.opening)
    ('Our aim is to serve.', 1)
"""

from collections.abc import Sequence
from dataclasses import dataclass

from app.answering.retrieving.outline import (
    WINDOW_CHARS,
    abstract_block,
    first_lines,
    heading_blocks,
    named_line,
    opening_of,
    outline,
    title_span,
)
from app.db.contents import ContentRepository
from app.errors import NotFound
from ingestion.types import PageRange
from retrieval.types import Chunk, Span


@dataclass(frozen=True, slots=True)
class Parts:
    """The parts of one document version. Spans are characters of its canonical text.

    Attributes:
        title: The line that is its title; None without one.
        opening: The opening or abstract; None where there is no text, and where the title is all of it.
        headings: The headings in reading order.
        chunks: The chunks that hold these parts, in document order.
        pages: The pages of the version; none where its format has none.
        read: The text that the opening was read from, and where it begins.
        certain: Whether the parts certainly say what was asked: the opening is prose, or of a name, a line of the
            document is its title.
    """

    title: Span | None
    opening: Span | None
    headings: tuple[Span, ...]
    chunks: tuple[Chunk, ...]
    pages: tuple[PageRange, ...]
    read: tuple[str, int]
    certain: bool

    def text(self, span: Span) -> str:
        """Exactly the characters of a part."""
        text, start = self.read
        if start <= span.start_char and span.end_char <= start + len(text):
            return text[span.start_char - start : span.end_char - start]
        return _slice(self.chunks, span)

    def page(self, span: Span) -> int | None:
        """The page on which a span begins; None in a format without pages."""
        return page_at(self.pages, span.start_char)


def page_at(pages: Sequence[PageRange], at: int) -> int | None:
    """The number of the page that holds a character, the last one before it between two; None without pages."""
    return next((page.number for page in reversed(pages) if page.start_char <= at), None)


def parts_of(
    contents: ContentRepository, document_id: str, *, tenant_id: str, version: int, title: str, name: bool = False
) -> Parts | None:
    """The parts of a document version; None where it vanished meanwhile.

    Args:
        contents: Has the canonical text.
        document_id: The document.
        tenant_id: The tenant that has it.
        version: The version to read.
        title: Its title, from its metadata or its file's name.
        name: Whether only its name is wanted: no headings, and where no line of it is its title, its first lines for
            the opening, and the one of them that is written like a title.

    Raises:
        StoreUnavailable: The database cannot be read.
    """
    try:
        pages, blocks = contents.structure(document_id, tenant_id=tenant_id, version=version)
        text = contents.text(document_id, tenant_id=tenant_id, version=version, end=WINDOW_CHARS)
        start, read = 0, text
        if (abstract := abstract_block(blocks)) is not None:
            start = abstract.start_char
            read = contents.text(
                document_id, tenant_id=tenant_id, version=version, start=start, end=start + WINDOW_CHARS
            )
    except NotFound:
        return None
    named = title_span(text, title)
    found = opening_of(read, blocks, start=start)
    opening = None if found is None else found.span
    if (
        opening is not None
        and named is not None
        and named.start_char <= opening.start_char < opening.end_char <= named.end_char
    ):
        opening = None
    certain = opening is not None and found is not None and found.prose
    if name and named is None:
        opening, certain, start, read = first_lines(text), False, 0, text
        named = None if opening is None else named_line(text, opening)
    elif name:
        certain = True
    candidates = [] if name else heading_blocks(blocks, title=named)
    chunks = contents.chunks_over(
        document_id,
        [
            *(span for span in (named, opening) if span is not None),
            *(Span(block.start_char, block.end_char) for block in candidates),
        ],
        tenant_id=tenant_id,
        version=version,
    )
    headings = outline(candidates, lambda block: _slice(chunks, Span(block.start_char, block.end_char)))
    return Parts(named, opening, headings, chunks, pages, (read, start), certain)


def _slice(chunks: Sequence[Chunk], span: Span) -> str:
    """The text of a span that one chunk holds, "" where none does."""
    for chunk in chunks:
        if chunk.start_char <= span.start_char and span.end_char <= chunk.end_char:
            return chunk.text_at(span)
    return ""
