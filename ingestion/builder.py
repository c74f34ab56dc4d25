"""Builds canonical text together with the offsets of its blocks and pages."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from ingestion.errors import LimitExceeded, NoText
from ingestion.normalise import normalise
from ingestion.titles import OPENING_CHARS, is_title_line, title_of
from ingestion.types import Block, BlockKind, Extraction, ExtractionLimits, MediaType, PageRange

_TIGHT = frozenset({BlockKind.LIST_ITEM, BlockKind.TABLE_ROW})  # items of a list, rows of a table stay together

_SAID = re.compile(r"(?<!\S)\S*\w\S*")  # a word with more than marks
_SHEETS = frozenset({MediaType.XLSX, MediaType.XLS, MediaType.ODS})  # whose first heading names a sheet
_WRITTEN = frozenset({MediaType.DOCX, MediaType.ODT, MediaType.RTF})  # whose title may be set as a plain paragraph

_FURNITURE = "\ufdd0"  # a noncharacter, which no text may contain (Unicode §23.7), before a word


def mark_as_furniture(text: str) -> str:
    """`text` with a mark before each of its words, by which `TextBuilder.append` knows furniture."""
    return _SAID.sub(_FURNITURE + r"\g<0>", text)


@dataclass(frozen=True, slots=True)
class PlacedBlock:
    """A block inside a text that is appended unchanged: `text[start:end]`.

    `level` counts from 1 (outermost) and is given for headings alone; `name` is the heading
    without its markup, where the text shows markup. `cells` are as `Block` has them.
    """

    kind: BlockKind
    start: int
    end: int
    level: int | None = None
    name: str | None = None
    cells: tuple[str, ...] = ()


class TextBuilder:
    """Collects blocks in document order into one `Extraction`.

    Text is normalised before it is counted, so every offset holds in the text that is stored.
    Blocks are separated by a blank line, items of a list and rows of a table by a line end.
    """

    def __init__(self, limits: ExtractionLimits) -> None:
        self._limits = limits
        self._parts: list[str] = []
        self._length = 0
        self._blocks: list[Block] = []
        self._headings: list[tuple[int, str]] = []
        self._first_heading = ""
        self._last_kind: BlockKind | None = None  # of the last block, before it became furniture
        self._pages: list[PageRange] = []
        self._page: int | None = None
        self._page_start: int | None = None  # None until the open page has text

    def begin_page(self, number: int) -> None:
        """Starts page `number`; numbers must rise.

        Raises:
            LimitExceeded: More pages than the limits allow.
        """
        self._end_page()
        assert not self._pages or number > self._pages[-1].number, "pages come in order"
        if len(self._pages) >= self._limits.pages:
            raise too_many_pages(self._limits)
        self._page = number

    def close_headings(self) -> None:
        """Closes all headings (a new slide, a new sheet)."""
        self._headings.clear()

    def append(self, kind: BlockKind, text: str, *, level: int | None = None, cells: tuple[str, ...] = ()) -> None:
        """Add one block, trimmed; a blank one is left out. `level` (from 1) is for headings, `cells` for spreadsheets.

        A block most of whose words were marked (`mark_as_furniture`) is furniture, whatever its kind.

        Raises:
            LimitExceeded: More characters than the limits allow.
        """
        is_furniture = 2 * text.count(_FURNITURE) > len(_SAID.findall(text))
        text = normalise(text).strip()
        if text:
            kept = BlockKind.FURNITURE if is_furniture else kind
            span = PlacedBlock(kept, 0, len(text), None if is_furniture else level, cells=cells)
            self._append(text, [span], kind)

    def append_verbatim(self, text: str, spans: Iterable[PlacedBlock]) -> None:
        """Add the normalised `text` unchanged, and the blocks inside it, in order.

        Raises:
            LimitExceeded: More characters than the limits allow.
        """
        assert normalise(text) == text, "offsets are counted after normalising"
        spans = list(spans)
        self._append(text, spans, spans[0].kind if spans else BlockKind.PARAGRAPH)

    def _append(self, text: str, spans: Sequence[PlacedBlock], kind: BlockKind) -> None:
        """Add `text`, which begins with a block of `kind`, though it may be furniture."""
        start = self._separate(kind)
        self._write(text)
        if self._page is not None and self._page_start is None:
            self._page_start = start
        for span in spans:
            assert text[span.start : span.end].strip(), "a block has text"
            name = one_line(span.name or text[span.start : span.end])
            if span.level is not None:
                self._headings = [open_ for open_ in self._headings if open_[0] < span.level]
            path = tuple(open_[1] for open_ in self._headings)
            self._blocks.append(Block(span.kind, start + span.start, start + span.end, self._page, path, span.cells))
            if span.level is not None:
                self._headings.append((span.level, name))
                self._first_heading = self._first_heading or name
        self._last_kind = spans[-1].kind if len(spans) > 1 else kind

    def append_extraction(self, extraction: Extraction, *, below: int) -> None:
        """Add another document's text and blocks, its headings under ours of level `below`; its pages are not ours.

        Raises:
            LimitExceeded: More characters than the limits allow.
        """
        self.append_verbatim(extraction.text, _spans(extraction.blocks, below))

    def build(
        self, media_type: MediaType, *, title: str | None = None, declared: str | None = None, shown: str | None = None
    ) -> Extraction:
        """The extraction; `ingestion.titles` decides its title where none is given.

        Args:
            media_type: The format of the file.
            title: A title that the format makes the author write, such as a message's subject.
            declared: The title in the file's properties, which programs write too.
            shown: The title as a reader sees it; the first heading where none is given.

        Raises:
            NoText: Nothing but white space was added.
        """
        self._end_page()
        text = "".join(self._parts)
        if not text.strip():
            raise NoText("The document holds no text that can be read; it may be empty, a scan or made of images only.")
        given = one_line(normalise(title or ""))
        found = title_of(
            declared=normalise(declared or "") if not given else "",
            shown=given or shown or self._headline(media_type, text),
            opening=text[: self._pages[0].end_char if self._pages else OPENING_CHARS],
            text=text,
        )
        return Extraction(
            media_type=media_type,
            title=found or None,
            text=text,
            pages=tuple(self._pages),
            blocks=tuple(self._blocks),
        )

    def _headline(self, media_type: MediaType, text: str) -> str:
        """The first heading, or a line above it that can be a title."""
        if media_type in _SHEETS or not self._first_heading:
            return ""
        first = self._blocks[0]
        line = text[first.start_char : first.end_char]
        is_line = media_type in _WRITTEN and first.kind is BlockKind.PARAGRAPH and is_title_line(line)
        return line if is_line else self._first_heading

    def _separate(self, kind: BlockKind) -> int:
        if self._length:
            tight = kind in _TIGHT and self._last_kind is kind
            self._write("\n" if tight and self._page_has_text() else "\n\n")
        return self._length

    def _page_has_text(self) -> bool:
        return self._page is None or self._page_start is not None

    def _write(self, text: str) -> None:
        if self._length + len(text) > self._limits.text_chars:
            raise LimitExceeded(
                f"The document holds more than {self._limits.text_chars:,} characters of text, the most we read."
            )
        self._parts.append(text)
        self._length += len(text)

    def _end_page(self) -> None:
        if self._page is not None:
            start = self._length if self._page_start is None else self._page_start
            self._pages.append(PageRange(self._page, start, self._length))
        self._page = self._page_start = None


def _spans(blocks: Sequence[Block], below: int) -> Iterator[PlacedBlock]:
    for at, block in enumerate(blocks):
        depth = len(block.heading_path)
        if block.kind is BlockKind.HEADING:
            inner = blocks[at + 1].heading_path if at + 1 < len(blocks) else ()
            name = inner[depth] if len(inner) > depth else None  # its number in the other builder
            yield PlacedBlock(block.kind, block.start_char, block.end_char, below + 1 + depth, name)
        else:
            yield PlacedBlock(block.kind, block.start_char, block.end_char, cells=block.cells)


def one_line(text: str) -> str:
    """Collapses white space to single blanks and trims."""
    return " ".join(text.split())


def too_many_pages(limits: ExtractionLimits) -> LimitExceeded:
    """The error of a document with more pages than `limits` allow."""
    return LimitExceeded(f"The document has more than {limits.pages:,} pages, the most we read.")
