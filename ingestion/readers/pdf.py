"""PDF through pdfium: paragraphs in reading order, page by page; pages without text through OCR.

pdfium is not thread-safe, not even across documents (pypdfium2 #303): one document per process.
"""

from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path

import pypdfium2
import pypdfium2.raw as pdfium

from ingestion.builder import TextBuilder, too_many_pages
from ingestion.errors import Encrypted, LimitExceeded, Malformed, NoText
from ingestion.readers.pdf_furniture import without_furniture
from ingestion.readers.pdf_lines import PrintedLine, page_lines
from ingestion.readers.pdf_order import page_blocks
from ingestion.readers.pdf_outline import bookmarks, heading_levels
from ingestion.readers.pdf_paragraphs import Piece, document_style, page_pieces
from ingestion.readers.pdf_scan import PageScanner, is_scan
from ingestion.titles import largest_lines
from ingestion.types import BlockKind, Extraction, ExtractionLimits, MediaType

_LEAST_NAMED = 3  # headings that bookmarks must name before height and weight are no longer asked


def read_pdf(
    path: Path,
    limits: ExtractionLimits,
    password: str | None = None,
    *,
    on_scan: Callable[[int, int], None] | None = None,
) -> Extraction:
    """Read every page: its text where it has some, else the text recognised by OCR, where that is installed.

    Running headers and footers are left out but for the first, words hyphenated at a line's end joined. Headings
    are the lines that bookmarks name, else those set larger or bolder than the text. `on_scan` is for
    `PageScanner`.

    Raises:
        IngestionError: See `ports.Extractor`.
    """
    with closing(opened(path, password)) as document:
        if len(document) > limits.pages:
            raise too_many_pages(limits)
        scanner = PageScanner(limits, on_scan=on_scan)
        pages = without_furniture(_read_pages(document, limits, scanner))
        marks = bookmarks(document)
        declared = document.get_metadata_dict().get("Title")
    blocks = [page_blocks(lines) for lines in pages]
    named = [
        heading_levels(marks.get(at, ()), [line for block in page for line in block if not line.furniture])
        for at, page in enumerate(blocks)
    ]
    shown = largest_lines(
        [[(line.text, line.size) for block in page for line in block if _may_name(line)] for page in blocks]
    )
    style = document_style(pages)
    pieces = _guarded(
        [
            page_pieces(page, style, levels, guess=sum(map(len, named)) < _LEAST_NAMED)
            for page, levels in zip(blocks, named, strict=True)
        ]
    )
    builder = TextBuilder(limits)
    for number, page_of_pieces in enumerate(pieces, start=1):
        builder.begin_page(number)
        for piece in page_of_pieces:
            builder.append(piece.kind, piece.text, level=piece.level)
    try:
        return builder.build(MediaType.PDF, declared=declared, shown=shown)
    except NoText:
        raise NoText(scanner.no_text()) from None


def opened(path: Path, password: str | None) -> pypdfium2.PdfDocument:
    """The document in a file.

    Raises:
        IngestionError: It needs another password, has no pages, or is damaged.
    """
    # pdfium reports a failure by a last error that it sometimes keeps from the previous file (a PDF
    # without pages after one with a password). Opening no file at all sets one that cannot be ours.
    pdfium.FPDF_LoadDocument(b"", None)
    try:
        return pypdfium2.PdfDocument(path, password=password)
    except pypdfium2.PdfiumError as error:
        if error.err_code in {pdfium.FPDF_ERR_PASSWORD, pdfium.FPDF_ERR_SECURITY}:
            if password:
                raise Encrypted("The password is wrong: it does not open the PDF.") from None
            raise Encrypted(
                "The PDF needs a password; give it with the upload, or upload the file without one."
            ) from None
        if error.err_code == pdfium.FPDF_ERR_FILE:  # still: it read the file and found no page
            raise NoText("The PDF has no pages.") from None
        raise Malformed("The file claims to be a PDF but is damaged and cannot be opened.") from None


def _read_pages(
    document: pypdfium2.PdfDocument, limits: ExtractionLimits, scanner: PageScanner
) -> list[list[PrintedLine]]:
    """The lines of every page; a page that pdfium cannot load has none.

    Raises:
        LimitExceeded: More text than the limits allow, or more scanned pages than there is time for.
    """
    pages: list[list[PrintedLine]] = []
    scans: list[int] = []
    chars = 0
    for number in range(len(document)):
        lines: list[PrintedLine] = []
        try:
            page = document[number]
        except pypdfium2.PdfiumError:
            pages.append(lines)
            continue
        with closing(page):
            with closing(page.get_textpage()) as textpage:
                chars += textpage.count_chars()
                if chars > limits.text_chars:
                    raise LimitExceeded(f"The PDF draws more than {limits.text_chars:,} characters, the most we read.")
                lines = page_lines(textpage, rotation=page.get_rotation())
            if is_scan(page, lines):
                scans.append(number)
        pages.append(lines)
    for done, number in enumerate(scans):
        with closing(document[number]) as page:
            pages[number] = scanner.lines(page, done=done, of=len(scans)) or pages[number]
    return pages


def _may_name(line: PrintedLine) -> bool:
    return line.upright and not line.furniture


def _guarded(pages: Sequence[Sequence[Piece]]) -> Sequence[Sequence[Piece]]:
    """The pieces with headings as paragraphs where every second would be one: a form or a poster, no document."""
    every = [piece for page in pages for piece in page]
    if sum(piece.kind is BlockKind.HEADING for piece in every) * 2 <= len(every) or len(every) < 8:
        return pages
    return [
        [Piece(BlockKind.PARAGRAPH, piece.text) if piece.kind is BlockKind.HEADING else piece for piece in page]
        for page in pages
    ]
