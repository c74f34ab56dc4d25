"""Reads the printed lines of a PDF page, and repairs pdfium's order of Arabic ligatures.

A lam-alef ligature is one glyph for two letters. pdfium lists right-to-left glyphs
backwards, the letters inside such a glyph included, so that alef comes before lam; both then have
one and the same box, which the article alef-lam, two glyphs, has not.
"""

import ctypes
import re
from collections.abc import Callable
from dataclasses import dataclass, replace

import pypdfium2
import pypdfium2.raw as pdfium

from ingestion.normalise import normalise
from ingestion.readers.pdf_cells import Box, PrintedRow, row_of

_ARABIC = re.compile("[\u0600-\u06ff]")
_TURNED = re.compile("[\u0622\u0623\u0625\u0627]\u0644")  # an alef of any kind, then lam
_GLUED = re.compile("(?<=[\u0621-\u064a])(?=[A-Za-z])|(?<=[A-Za-z])(?=[\u0621-\u064a])")


def mended(text: str, box: Callable[[int], Box]) -> str:
    """`text` with lam before alef in ligatures and a blank between Arabic and Latin words.

    `box` gives the box of the glyph that a character of `text` was written with.
    """
    if not _ARABIC.search(text):
        return text

    def in_order(match: re.Match[str]) -> str:
        pair = match.group()
        return pair[::-1] if box(match.start()) == box(match.start() + 1) else pair

    return _GLUED.sub(" ", _TURNED.sub(in_order, text))


_HYPHEN = "\ufffe"  # pdfium's sign for a hyphen at a line's end, after which it joins the lines
_SPARSE = 0.8  # advance per character in heights above which a line has gaps: prose has about 0.45
_PROSE = 0.5  # the same for a line without any: one of few wide letters
_LABEL = re.compile(r"[:#☐☒☑✓] ")  # a form's line may be long and have gaps all the same
_ROW_CHARS = 400  # a longer line is no row of a table
_BOLD_CHARS = 120  # a longer line is no heading, so its weight is not asked for
_FONT_NAME_BYTES = 64


@dataclass(frozen=True, slots=True)
class PrintedLine:
    """One printed line. Lengths are points of 1/72 inch, `bottom` and `top` grow upwards as in PDF.

    `size` is the height of its font's box. `hyphen` says that a word breaks at its end, `spaced`
    that the file writes a blank there. `row` is a row of a table or form, its cells joined by ` | `, the last of which
    begins at `cell_left`. `upright` is false for text that runs up or down the page. `furniture` is a running line,
    such as a header, that is in the text and not searched.
    """

    text: str
    left: float
    bottom: float
    right: float
    top: float
    size: float
    hyphen: bool = False
    spaced: bool = False
    bold: bool = False
    row: bool = False
    upright: bool = True
    cell_left: float = 0.0
    furniture: bool = False


def page_lines(textpage: pypdfium2.PdfTextPage, *, rotation: int = 0) -> list[PrintedLine]:
    """The lines of a page that is shown turned by `rotation` degrees; text without a visible glyph is left out."""
    raw = textpage.get_text_range()
    mapped = textpage.count_chars() != len(raw)
    clean = raw.replace("\r\n", "\n")
    dirty = normalise(clean) != clean.replace(_HYPHEN, "")
    lines: list[PrintedLine] = []
    at = 0
    for part in raw.split("\r\n"):
        pieces = part.split(_HYPHEN)
        for number, piece in enumerate(pieces):
            content = piece.strip()
            if content:
                first = at + piece.index(content)
                span = (first, first + len(content) - 1)
                if mapped:
                    span = (_char_index(textpage, span[0]), _char_index(textpage, span[1]))
                hyphen = number < len(pieces) - 1
                line = _line(textpage, content, span, rotation, hyphen, piece[-1].isspace())
                if not dirty:
                    lines.append(line)
                elif text := normalise(line.text).strip():
                    lines.append(line if text == line.text else replace(line, text=text))
            at += len(piece) + 1
        at += 1
    return _joined(lines)


def _char_index(textpage: pypdfium2.PdfTextPage, text_index: int) -> int:
    return int(pdfium.FPDFText_GetCharIndexFromTextIndex(textpage, text_index))


def _line(
    textpage: pypdfium2.PdfTextPage, text: str, span: tuple[int, int], rotation: int, hyphen: bool, spaced: bool
) -> PrintedLine:
    first = _box(textpage, span[0], rotation)
    last = _box(textpage, span[1], rotation)
    left, right = min(first[0], last[0]), max(first[2], last[2])
    bottom, top = min(first[1], last[1]), max(first[3], last[3])
    size = max(first[3] - first[1], last[3] - last[1])
    width = right - left
    upright = len(text) < 2 or top - bottom <= max(2.5 * size, width)
    row = _row(textpage, text, span[0], rotation, size, width / max(size * _columns(text), 1)) if upright else None
    bold = len(text) <= _BOLD_CHARS and _is_bold(textpage, span[0]) and _is_bold(textpage, span[1])
    if not text.isascii():
        text = mended(text, lambda index: _box(textpage, span[0] + index, rotation))
    text = row.text if row else text
    cell_left = row.last_left if row else left
    return PrintedLine(text, left, bottom, right, top, size, hyphen, spaced, bold, row is not None, upright, cell_left)


def _row(
    textpage: pypdfium2.PdfTextPage, text: str, first: int, rotation: int, size: float, advance: float
) -> PrintedRow | None:
    """The cells of a line from character `first` on, whose characters take `advance` heights each on average."""
    if " " not in text or len(text) > _ROW_CHARS:
        return None
    sparse = advance > _SPARSE
    if not sparse and (_ARABIC.search(text) or not (advance > _PROSE or _LABEL.search(text))):
        return None
    return row_of(text, lambda index: _box(textpage, first + index, rotation), size=size, sparse=sparse)


def _box(textpage: pypdfium2.PdfTextPage, index: int, rotation: int) -> tuple[float, float, float, float]:
    """Left, bottom, right and top of a glyph's font box as the page is shown; no box at all is a point at 0."""
    rect = pdfium.FS_RECTF()
    pdfium.FPDFText_GetLooseCharBox(textpage, index, rect)
    left, bottom, right, top = rect.left, rect.bottom, rect.right, rect.top
    match rotation:
        case 90:
            return bottom, -right, top, -left
        case 180:
            return -right, -top, -left, -bottom
        case 270:
            return -top, left, -bottom, right
        case _:
            return left, bottom, right, top


def _columns(text: str) -> int:
    """The width of `text` in narrow characters: Chinese, Japanese and Korean ones take two."""
    return len(text) if text.isascii() else len(text) + sum(char >= "\u2e80" for char in text)


def _is_bold(textpage: pypdfium2.PdfTextPage, index: int) -> bool:
    name = (ctypes.c_char * _FONT_NAME_BYTES)()
    flags = ctypes.c_int()
    length = pdfium.FPDFText_GetFontInfo(textpage, index, name, _FONT_NAME_BYTES, flags)
    if not 0 < length <= _FONT_NAME_BYTES:
        return False
    lower = name.value.lower()
    return b"bold" in lower or b"black" in lower or b"heavy" in lower


def _joined(lines: list[PrintedLine]) -> list[PrintedLine]:
    """Joins neighbours on one line, which pdfium split at a raised note number or a change of font."""
    result: list[PrintedLine] = []
    for line in lines:
        before = result[-1] if result else None
        if before and before.upright and line.upright and not before.hyphen:
            height = min(before.top - before.bottom, line.top - line.bottom)
            overlap = min(before.top, line.top) - max(before.bottom, line.bottom)
            gap = line.left - before.right
            size = max(before.size, line.size)
            most = 0.5 if before.row or line.row else 1.5  # a note number in a cell, but no cell of its own
            if overlap > 0.5 * height and -0.5 * size < gap < most * size:
                blank = " " if gap > 0.15 * size or before.spaced else ""
                result[-1] = PrintedLine(
                    before.text + blank + line.text,
                    before.left,
                    min(before.bottom, line.bottom),
                    max(before.right, line.right),
                    max(before.top, line.top),
                    size,
                    line.hyphen,
                    line.spaced,
                    before.bold and line.bold,
                    before.row or line.row,
                    cell_left=line.cell_left if line.row else before.cell_left,
                )
                continue
        result.append(line)
    return result
