"""Pages of a PDF that are pictures of text, and their text by OCR."""

import time
from collections.abc import Callable
from dataclasses import replace
from itertools import islice
from statistics import median

import pypdfium2
import pypdfium2.raw as pdfium

from ingestion.errors import LimitExceeded
from ingestion.normalise import normalise
from ingestion.ocr import MOST_SIDE, Recognizer, load_recognizer
from ingestion.readers.pdf_lines import PrintedLine
from ingestion.readers.pdf_order import placed
from ingestion.types import ExtractionLimits

_DPI = 200
_FEW_CHARS = 100  # a page with fewer may be a picture with a stamp on it
_MOST_OBJECTS = 200  # examined to decide whether a page is a picture
_LEAST_SHARE, _WHOLE_SHARE = 0.02, 0.6  # of a page without any text, of one with a little
_LEAST_PATHS = 20  # letters drawn as outlines have at least this many paths
_TIME_SHARE = 0.9  # of the time allowed: the rest is for building the text


class PageScanner:
    """Recognises the text of scanned pages, as many as the limits allow.

    With `on_scan` the caller controls the time, page by page. Otherwise it estimates early how
    long a document will take: one that cannot be read in time is refused with the numbers.
    """

    def __init__(
        self,
        limits: ExtractionLimits,
        *,
        on_scan: Callable[[int, int], None] | None = None,
        load: Callable[[], Recognizer | None] = load_recognizer,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`load` finds the recogniser, once and only when a page needs it; `clock` gives seconds.

        `on_scan` is called with a scanned page's number (from 1) and that of all before it is recognised.
        """
        self._limits = limits
        self._on_scan = on_scan
        self._load = load
        self._clock = clock
        self._started = clock()
        self._first_done = 0.0
        self._recognizer: Recognizer | None = None
        self._scans = 0
        self._loaded = False

    def lines(self, page: pypdfium2.PdfPage, *, done: int, of: int) -> list[PrintedLine]:
        """The lines on `page` in reading order, after `done` scanned pages `of` all; none without a recogniser.

        Raises:
            LimitExceeded: More scanned pages than the limits allow, or than there is time for without `on_scan`.
        """
        self._scans = of
        if not self._limits.ocr_pages:
            return []
        if not self._loaded:
            self._recognizer, self._loaded = self._load(), True
        if self._recognizer is None:
            return []
        if of > self._limits.ocr_pages:
            raise LimitExceeded(f"The PDF has {of:,} scanned pages; we recognise {self._limits.ocr_pages:,} at most.")
        if self._on_scan:
            self._on_scan(done + 1, of)
        else:
            self._check_time(done, of)
        lines = _recognised(page, self._recognizer)
        if not done:
            self._first_done = self._clock()  # the first one waits for the models
        return lines

    def no_text(self) -> str:
        """The sentence for a document in which no text was found at all."""
        if not self._scans:
            return "The PDF holds no text."
        if not self._limits.ocr_pages:
            return "The PDF holds no text; it is a scan, whose pages are pictures, and OCR is switched off."
        if self._recognizer is None:
            return (
                "The PDF holds no text; it is a scan, whose pages are pictures. "
                "To have them recognised, the server needs OCR: pip install 'footnote-rag[ocr]'."
            )
        return "The PDF is a scan, and OCR recognised no text on its pages."

    def _check_time(self, done: int, of: int) -> None:
        allowed = self._limits.seconds * _TIME_SHARE
        now = self._clock() - self._started
        a_page = (self._clock() - self._first_done) / (done - 1) if done > 1 else 0.0
        needed = now + a_page * (of - done)
        if needed > allowed:
            raise LimitExceeded(
                f"The PDF has {of:,} scanned pages, whose recognition takes about {needed:,.0f} seconds, "
                f"longer than the {self._limits.seconds:g} we allow; split it into smaller files."
            )


def is_scan(page: pypdfium2.PdfPage, lines: list[PrintedLine]) -> bool:
    """Whether the page shows its text as a picture: it has next to none, and something large is drawn on it."""
    chars = sum(len(line.text) for line in lines)
    if chars >= _FEW_CHARS:
        return False
    width, height = page.get_size()
    least = (_WHOLE_SHARE if chars else _LEAST_SHARE) * width * height
    paths = 0
    for shown in islice(page.get_objects(max_depth=3), _MOST_OBJECTS):
        if shown.type == pdfium.FPDF_PAGEOBJ_IMAGE:
            left, bottom, right, top = shown.get_bounds()
            if (right - left) * (top - bottom) >= least:
                return True
        paths += shown.type == pdfium.FPDF_PAGEOBJ_PATH
    return not chars and paths >= _LEAST_PATHS


def _recognised(page: pypdfium2.PdfPage, recognizer: Recognizer) -> list[PrintedLine]:
    width, height = page.get_size()
    scale = min(_DPI / 72, MOST_SIDE / max(width, height, 1.0))
    bitmap = page.render(scale=scale, rev_byteorder=False, prefer_bgrx=False)
    try:
        picture = bitmap.to_numpy()[..., :3].copy()
    finally:
        bitmap.close()
    lines = [
        PrintedLine(
            text,
            found.left / scale,
            height - found.bottom / scale,
            found.right / scale,
            height - found.top / scale,
            (found.bottom - found.top) / scale,
        )
        for found in recognizer.lines(picture)
        if (text := normalise(found.text).strip())
    ]
    if not lines:
        return []
    usual = median(line.size for line in lines)
    # Boxes hug their letters, "nose" lower than "Light": what is near the usual height has it.
    even = [replace(line, size=usual) if abs(line.size - usual) < 0.3 * usual else line for line in lines]
    return placed(even)
