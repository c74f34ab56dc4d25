"""ingestion.readers.pdf_scan and ingestion.ocr: pages that are pictures."""

import io
from email.message import EmailMessage
from importlib.util import find_spec
from pathlib import Path

import pypdfium2
import pytest
from PIL import Image, ImageDraw, ImageFont

from ingestion.errors import LimitExceeded, NoText
from ingestion.extraction import LocalExtractor
from ingestion.ocr import Picture, RecognisedLine
from ingestion.readers.pdf import read_pdf
from ingestion.readers.pdf_scan import PageScanner, is_scan
from ingestion.types import ExtractionLimits

needs_ocr = pytest.mark.skipif(
    find_spec("rapidocr") is None or find_spec("onnxruntime") is None, reason="the extra `ocr` is not installed"
)

WORDS = ["The quick brown fox", "jumps over 13 dogs."]


def scanned_pdf(pages: int = 1) -> bytes:
    """Each page a picture of `WORDS`."""
    picture = Image.new("L", (700, 240), 255)
    for at, line in enumerate(WORDS):
        ImageDraw.Draw(picture).text((40, 40 + 80 * at), line, fill=0, font=ImageFont.load_default(48))
    out = io.BytesIO()
    picture.save(out, "PDF", save_all=True, append_images=[picture] * (pages - 1), resolution=100)
    return out.getvalue()


class TwoColumns:
    """Recognises the same four lines on every picture, in no order."""

    def lines(self, picture: Picture) -> list[RecognisedLine]:
        height, width, _ = picture.shape
        below = height // 4
        return [
            RecognisedLine("right two", width * 0.6, 10 + below, width * 0.9, 40 + below),
            RecognisedLine("left one", width * 0.1, 10, width * 0.4, 40),
            RecognisedLine("right one", width * 0.6, 10 + below - 35, width * 0.9, 40 + below - 35),
            RecognisedLine("left two", width * 0.1, 45, width * 0.4, 75),
        ]


class Clock:
    """Moves on by so many seconds whenever it is read."""

    def __init__(self, step: float) -> None:
        self._now, self._step = 0.0, step

    def __call__(self) -> float:
        self._now += self._step
        return self._now


def test_a_picture_is_a_scan_and_a_page_of_text_is_none() -> None:
    page = pypdfium2.PdfDocument(scanned_pdf())[0]

    assert is_scan(page, [])


def test_recognised_lines_come_column_by_column() -> None:
    page = pypdfium2.PdfDocument(scanned_pdf())[0]

    lines = PageScanner(ExtractionLimits(), load=TwoColumns).lines(page, done=0, of=1)

    assert [line.text for line in lines] == ["left one", "left two", "right one", "right two"]


def test_more_scanned_pages_than_allowed_are_refused() -> None:
    page = pypdfium2.PdfDocument(scanned_pdf())[0]
    scanner = PageScanner(ExtractionLimits(ocr_pages=5), load=TwoColumns)

    with pytest.raises(LimitExceeded, match="6 scanned pages; we recognise 5"):
        scanner.lines(page, done=0, of=6)


def test_what_cannot_be_recognised_in_time_is_refused_early_with_the_numbers() -> None:
    page = pypdfium2.PdfDocument(scanned_pdf())[0]
    scanner = PageScanner(ExtractionLimits(seconds=120), load=TwoColumns, clock=Clock(1))
    scanner.lines(page, done=0, of=500)
    scanner.lines(page, done=1, of=500)

    with pytest.raises(LimitExceeded, match=r"500 scanned pages, whose recognition takes about [\d,]+ seconds"):
        scanner.lines(page, done=2, of=500)


def test_whoever_is_told_of_every_scanned_page_keeps_the_time() -> None:
    page = pypdfium2.PdfDocument(scanned_pdf())[0]
    told: list[tuple[int, int]] = []
    scanner = PageScanner(
        ExtractionLimits(seconds=1),
        on_scan=lambda number, of: told.append((number, of)),
        load=TwoColumns,
        clock=Clock(1000),
    )

    for done in range(4):
        assert scanner.lines(page, done=done, of=4)

    assert told == [(1, 4), (2, 4), (3, 4), (4, 4)]


def test_nobody_is_told_of_scanned_pages_that_are_not_recognised() -> None:
    page = pypdfium2.PdfDocument(scanned_pdf())[0]
    told: list[tuple[int, int]] = []

    def tell(number: int, of: int) -> None:
        told.append((number, of))

    assert PageScanner(ExtractionLimits(), on_scan=tell, load=lambda: None).lines(page, done=0, of=1) == []
    assert PageScanner(ExtractionLimits(ocr_pages=0), on_scan=tell, load=TwoColumns).lines(page, done=0, of=1) == []
    with pytest.raises(LimitExceeded, match="501 scanned pages; we recognise 500"):
        PageScanner(ExtractionLimits(), on_scan=tell, load=TwoColumns).lines(page, done=0, of=501)

    assert told == []


def test_with_ocr_switched_off_a_scan_says_so(tmp_path: Path) -> None:
    path = tmp_path / "upload"
    path.write_bytes(scanned_pdf())

    with pytest.raises(NoText, match="OCR is switched off"):
        read_pdf(path, ExtractionLimits(ocr_pages=0))


def test_without_ocr_a_scan_says_what_to_install() -> None:
    page = pypdfium2.PdfDocument(scanned_pdf())[0]
    scanner = PageScanner(ExtractionLimits(), load=lambda: None)

    assert scanner.lines(page, done=0, of=1) == []
    assert "footnote-rag[ocr]" in scanner.no_text()


@needs_ocr
def test_a_scan_is_recognised(tmp_path: Path) -> None:
    path = tmp_path / "upload"
    path.write_bytes(scanned_pdf())

    extraction = read_pdf(path, ExtractionLimits(seconds=300))

    assert "quick brown fox" in extraction.text
    assert "13 dogs" in extraction.text
    assert [page.number for page in extraction.pages] == [1]


@needs_ocr
def test_scanned_pages_are_told_of_in_a_pdf_that_a_message_brings(tmp_path: Path) -> None:
    message = EmailMessage()
    message["Subject"] = "The scan"
    message.set_content("Attached.")
    message.add_attachment(scanned_pdf(), maintype="application", subtype="pdf", filename="scan.pdf")
    path = tmp_path / "upload"
    path.write_bytes(message.as_bytes())
    told: list[tuple[int, int]] = []

    extraction = LocalExtractor(on_scan=lambda page, of: told.append((page, of))).extract(path, filename="a.eml")

    assert told == [(1, 1)]
    assert "quick brown fox" in extraction.text
