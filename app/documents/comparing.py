"""Compares two versions of a document, or two documents: each difference with its section, its place and its words."""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from app.db.contents import ContentRepository
from app.documents.occurrences import pages_of
from app.errors import InvalidRequest
from ingestion.builder import one_line
from ingestion.comparison import DifferenceKind, TextComparison, TextDifference, compare
from ingestion.types import Block, BlockKind, PageRange
from ingestion.wording import WordRun, changes
from retrieval.types import Span

MOST_CHARACTERS = 4_000_000
"""Of either text: about 1,500 pages."""


@dataclass(frozen=True, slots=True)
class ComparedPassage:
    """Characters `[start_char, end_char)` of a version, the first and the last page, and exactly these characters."""

    start_char: int
    end_char: int
    page_start: int | None
    page_end: int | None
    text: str


@dataclass(frozen=True, slots=True)
class ComparedChange:
    """A change: the headings around it, outermost first, the passage before and after, and the runs of both wordings.

    `old` is None for what was added, `new` for what was removed. `words` are of an altered passage, else empty.
    """

    kind: DifferenceKind
    section: tuple[str, ...]
    old: ComparedPassage | None
    new: ComparedPassage | None
    words: tuple[WordRun, ...]


class ComparedText:
    """A version of a document as one side of a comparison."""

    def __init__(self, document_id: str, version: int, text: str, pages: Sequence[PageRange], blocks: Sequence[Block]):
        """Nothing is compared yet.

        Raises:
            InvalidRequest: It is too long.
        """
        if len(text) > MOST_CHARACTERS:
            raise InvalidRequest(f"Documents of more than {MOST_CHARACTERS:,} characters are not compared.")
        self.document_id = document_id
        self.version = version
        self.text = text
        self._pages = [(page.number, page.start_char, page.end_char) for page in pages]
        self._blocks = blocks

    @classmethod
    def read(cls, contents: ContentRepository, document_id: str, *, tenant_id: str, version: int) -> "ComparedText":
        """A version of a document that the caller may read.

        Raises:
            NotFound: There is no such version, or it is not indexed yet.
            InvalidRequest: It is too long.
        """
        text = contents.text(document_id, tenant_id=tenant_id, version=version)
        pages, blocks = contents.structure(document_id, tenant_id=tenant_id, version=version)
        return cls(document_id, version, text, pages, blocks)

    @cached_property
    def words(self) -> str:
        """The text with blanks for running headers and footers, which change with the pages and say nothing."""
        kept = []
        at = 0
        for block in self._blocks:
            if block.kind is BlockKind.FURNITURE:
                kept += [self.text[at : block.start_char], " " * (block.end_char - block.start_char)]
                at = block.end_char
        return "".join([*kept, self.text[at:]])

    @cached_property
    def _starts(self) -> list[int]:
        return [block.start_char for block in self._blocks]

    def section(self, span: Span) -> tuple[str, ...]:
        """The headings around the end of a span, outermost first; the last one is its own where it is a heading."""
        at = bisect_right(self._starts, span.end_char - 1) - 1
        if at < 0:
            return ()
        block = self._blocks[at]
        if block.kind is not BlockKind.HEADING:
            return block.heading_path
        return (*block.heading_path, one_line(self.text[block.start_char : block.end_char]).strip("# "))

    def passage(self, span: Span) -> ComparedPassage:
        """The passage at a span."""
        first, last = pages_of(span, self._pages)
        return ComparedPassage(span.start_char, span.end_char, first, last, self.text[span.start_char : span.end_char])


class ComparedDocuments:
    """The differences between two versions, each as a change with its section and its words."""

    def __init__(self, old: ComparedText, new: ComparedText) -> None:
        """Compare them; it takes some seconds for a thousand pages."""
        self.old = old
        self.new = new
        self._found: TextComparison = compare(
            old.words, new.words, section=lambda span, is_new: (new if is_new else old).section(span)
        )

    @property
    def unchanged(self) -> int:
        """The number of sentences without a change."""
        return self._found.unchanged

    @property
    def counts(self) -> dict[DifferenceKind, int]:
        """The number of changes of each kind."""
        kinds = [difference.kind for difference in self._found.differences]
        return {kind: kinds.count(kind) for kind in DifferenceKind}

    def changes(self, *, start: int, most: int, most_characters: int) -> list[ComparedChange]:
        """Changes in the order of the new text, from the one numbered `start`: at most `most`.

        No further one is begun when those so far have `most_characters` characters.
        """
        listed: list[ComparedChange] = []
        characters = 0
        for difference in self._found.differences[start : start + most]:
            if characters >= most_characters:
                break
            old = None if difference.old is None else self.old.passage(difference.old)
            new = None if difference.new is None else self.new.passage(difference.new)
            words: tuple[WordRun, ...] = ()
            if difference.kind is DifferenceKind.ALTERED and difference.old is not None and difference.new is not None:
                words = changes(_part(self.old, difference.old), _part(self.new, difference.new))
            listed.append(ComparedChange(difference.kind, self._section(difference), old, new, words))
            characters += sum(len(side.text) for side in (old, new) if side is not None)
        return listed

    def _section(self, difference: TextDifference) -> tuple[str, ...]:
        if difference.new is not None:
            return self.new.section(difference.new)
        return () if difference.old is None else self.old.section(difference.old)


def _part(side: ComparedText, span: Span) -> str:
    return side.words[span.start_char : span.end_char]
