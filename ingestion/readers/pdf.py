"""PDF through pdfium: text page by page. Without OCR, a scan has no text.

pdfium is not thread-safe, not even across documents (pypdfium2 #303): one document per process.
"""

from contextlib import closing
from pathlib import Path

import pypdfium2
import pypdfium2.raw as pdfium

from ingestion.builder import TextBuilder, too_many_pages
from ingestion.errors import Encrypted, Malformed, NoText
from ingestion.normalise import normalise
from ingestion.readers.text import paragraph_spans
from ingestion.types import Extraction, ExtractionLimits, MediaType


def read_pdf(path: Path, limits: ExtractionLimits) -> Extraction:
    """Read every page's text, pages separated by a blank line.

    Raises:
        IngestionError: As `ports.Extractor` says.
    """
    builder = TextBuilder(limits)
    with closing(_opened(path)) as document:
        if len(document) > limits.pages:
            raise too_many_pages(limits)
        for number in range(1, len(document) + 1):
            builder.begin_page(number)
            # Where a line broke inside a word pdfium leaves U+FFFE for the hyphen and joins the lines;
            # normalising takes it out, which makes the word whole again.
            text = normalise(_page_text(document, number)).strip()
            if text:
                builder.append_verbatim(text, paragraph_spans(text))
        title = document.get_metadata_dict().get("Title")
    try:
        return builder.build(MediaType.PDF, title=title)
    except NoText:
        raise NoText("The PDF holds no text; it may be a scan, whose pages are images.") from None


def _opened(path: Path) -> pypdfium2.PdfDocument:
    # pdfium tells why it failed by a last error that it sometimes leaves from the file before (a PDF
    # without pages after one with a password). Opening no file at all sets one that cannot be ours.
    pdfium.FPDF_LoadDocument(b"", None)
    try:
        return pypdfium2.PdfDocument(path)
    except pypdfium2.PdfiumError as error:
        if error.err_code in {pdfium.FPDF_ERR_PASSWORD, pdfium.FPDF_ERR_SECURITY}:
            raise Encrypted("The PDF needs a password; remove the password and upload it again.") from None
        if error.err_code == pdfium.FPDF_ERR_FILE:  # still: it read the file and found no page
            raise NoText("The PDF has no pages.") from None
        raise Malformed("The file claims to be a PDF but is damaged and cannot be opened.") from None


def _page_text(document: pypdfium2.PdfDocument, number: int) -> str:
    """The text of one page; a page that pdfium cannot load has none."""
    try:
        page = document[number - 1]
    except pypdfium2.PdfiumError:
        return ""
    with closing(page), closing(page.get_textpage()) as textpage:
        text: str = textpage.get_text_range()
        return text
