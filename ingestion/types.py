"""The data types of ingestion. Imports no module of Footnote, so any module may import it."""

from dataclasses import dataclass
from enum import StrEnum


class MediaType(StrEnum):
    """The supported formats. The value is the IANA media type; source code has none, hence the `x-`.

    A feed is RSS or Atom; the type of RSS is in use everywhere, but was never registered.
    """

    PDF = "application/pdf"
    DOCX = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
    PPTX = "application/vnd.openxmlformats-officedocument.presentationml.presentation"
    XLSX = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
    HTML = "text/html"
    EPUB = "application/epub+zip"
    ODT = "application/vnd.oasis.opendocument.text"
    ODS = "application/vnd.oasis.opendocument.spreadsheet"
    ODP = "application/vnd.oasis.opendocument.presentation"
    RTF = "application/rtf"
    DOC = "application/msword"
    XLS = "application/vnd.ms-excel"
    PPT = "application/vnd.ms-powerpoint"
    EMAIL = "message/rfc822"
    MARKDOWN = "text/markdown"
    CSV = "text/csv"
    FEED = "application/rss+xml"
    CODE = "text/x-source-code"
    TEXT = "text/plain"


class BlockKind(StrEnum):
    """The kind of a block of canonical text."""

    HEADING = "heading"
    PARAGRAPH = "paragraph"
    LIST_ITEM = "list_item"
    TABLE_ROW = "table_row"
    CAPTION = "caption"
    CODE = "code"
    FURNITURE = "furniture"
    """What is around the content: running headers and footers, navigation, lines of marks. In the text, in no chunk."""


@dataclass(frozen=True, slots=True)
class Block:
    """A piece of canonical text: `text[start_char:end_char]`, never empty, in document order.

    `page` counts from 1 (PDF page, slide, sheet); `None` where the format has no pages.
    `heading_path` holds the headings above the block, outermost first (for a heading: those above it).
    `cells` are the addresses of a spreadsheet's cells in the block, such as `B27`: one for each cell of its text, which
    are joined by ` | `; empty where they are not known.
    """

    kind: BlockKind
    start_char: int
    end_char: int
    page: int | None
    heading_path: tuple[str, ...]
    cells: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PageRange:
    """Characters `[start_char, end_char)` of page `number` (from 1); pages do not overlap."""

    number: int
    start_char: int
    end_char: int


@dataclass(frozen=True, slots=True)
class Extraction:
    """One document version's canonical text and its structure. Offsets count code points of `text`.

    `title` is as `ingestion.titles` finds it; `None` where neither the document nor its file has words for one.
    """

    media_type: MediaType
    title: str | None
    text: str
    pages: tuple[PageRange, ...]
    blocks: tuple[Block, ...]


@dataclass(frozen=True, slots=True)
class PageSpan:
    """Characters `[start, end)` of `text`, which is the canonical text of page `number` (from 1)."""

    number: int
    text: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class PageBoxes:
    """Boxes of characters on page `number` (from 1), displayed `width` by `height` points of 1/72 inch.

    A box has left, top, right and bottom, counted from the upper left corner of the page as it is shown; there is one
    for each printed line. `exact` is false where some of the characters were not found. Of the `words` of the
    characters, `words_found` have a box: those of which more than half is in one.
    """

    number: int
    width: float
    height: float
    boxes: tuple[tuple[float, float, float, float], ...]
    exact: bool
    words: int
    words_found: int


@dataclass(frozen=True, slots=True)
class ChunkDraft:
    """A chunk before it has an identity: `text == extraction.text[start_char:end_char]`.

    `token_count` is by the embedder's tokenizer, of `embedding_text` (heading path, table header, then text),
    special tokens included, and never above the embedder's limit. `table_header` has the caption and the column names
    of the table inside which the passage begins, a line each; it is embedded with the passage and is no part of `text`.
    """

    ordinal: int
    start_char: int
    end_char: int
    page_start: int | None
    page_end: int | None
    heading_path: tuple[str, ...]
    text: str
    embedding_text: str
    token_count: int
    table_header: str = ""


class Stage(StrEnum):
    """The stage of an ingestion; the values are the API's status words."""

    EXTRACTING = "extracting"
    CHUNKING = "chunking"
    EMBEDDING = "embedding"


@dataclass(frozen=True, slots=True)
class StageProgress:
    """`done` of `total` units of a stage: 0 or 1 for extraction and chunking, chunks for embedding."""

    stage: Stage
    done: int
    total: int


@dataclass(frozen=True, slots=True)
class ExtractionLimits:
    """Caps of one extraction in the child process.

    `seconds` of wall-clock time, `memory_bytes` of resident memory, `text_chars` of canonical text,
    `pages` of a paged document, `expanded_bytes` of a zip container's real (not declared) content,
    `ocr_pages` that are pictures and recognised (0: no OCR), each with `ocr_page_seconds`
    of additional wall-clock time.
    """

    seconds: float = 120.0
    memory_bytes: int = 2 << 30
    text_chars: int = 20_000_000
    pages: int = 20_000
    expanded_bytes: int = 1 << 30
    ocr_pages: int = 500
    ocr_page_seconds: float = 60.0
