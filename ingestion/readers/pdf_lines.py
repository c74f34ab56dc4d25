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

_ARABIC = re.compile("[\u0600-\u06ff]")
_TURNED = re.compile("[\u0622\u0623\u0625\u0627]\u0644")  # an alef of any kind, then lam
_GLUED = re.compile("(?<=[\u0621-\u064a])(?=[A-Za-z])|(?<=[A-Za-z])(?=[\u0621-\u064a])")

Box = tuple[float, float, float, float]


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
_ROW_CHARS = 400  # a longer line is no row of a table
_BOLD_CHARS = 120  # a longer line is no heading, so its weight is not asked for
_FONT_NAME_BYTES = 64


@dataclass(frozen=True, slots=True)
class Line:
    """One printed line. Lengths are points of 1/72 inch, `bottom` and `top` grow upwards as in PDF.

    `size` is the height of its font's box. `hyphen` says that a word breaks at its end, `spaced`
    that the file writes a blank there. `row` is a table's row, its cells joined by ` | `. `upright`
    is false for text that runs up or down the page. `furniture` is a running line, such as a header, that is in the
    text and not searched.
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
    furniture: bool = False


def page_lines(textpage: pypdfium2.PdfTextPage, *, rotation: int = 0) -> list[Line]:
    """The lines of a page that is shown turned by `rotation` degrees; text without a visible glyph is left out."""
    raw = textpage.get_text_range()
    mapped = textpage.count_chars() != len(raw)
    clean = raw.replace("\r\n", "\n")
    dirty = normalise(clean) != clean.replace(_HYPHEN, "")
    lines: list[Line] = []
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
) -> Line:
    first = _box(textpage, span[0], rotation)
    last = _box(textpage, span[1], rotation)
    left, right = min(first[0], last[0]), max(first[2], last[2])
    bottom, top = min(first[1], last[1]), max(first[3], last[3])
    size = max(first[3] - first[1], last[3] - last[1])
    width = right - left
    upright = len(text) < 2 or top - bottom <= max(2.5 * size, width)
    row = False
    if upright and " " in text and len(text) <= _ROW_CHARS and width > _SPARSE * size * _columns(text):
        text = _cells(textpage, text, span[0], size)
        row = " | " in text
    bold = len(text) <= _BOLD_CHARS and _is_bold(textpage, span[0]) and _is_bold(textpage, span[1])
    if not text.isascii():
        text = mended(text, lambda index: _box(textpage, span[0] + index, rotation))
    return Line(text, left, bottom, right, top, size, hyphen, spaced, bold, row, upright)


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


def _cells(textpage: pypdfium2.PdfTextPage, text: str, first: int, size: float) -> str:
    """`text` with ` | ` where a gap wider than a blank is between two words."""
    words: list[str] = []
    for at, char in enumerate(text):
        if char == " " and at + 1 < len(text) and text[at + 1] != " ":
            before = at - 1
            while before > 0 and text[before] == " ":
                before -= 1
            gap = _box(textpage, first + at + 1, 0)[0] - _box(textpage, first + before, 0)[2]
            words.append(" | " if gap > size else " ")
        elif char != " ":
            words.append(char)
    return "".join(words)


def _is_bold(textpage: pypdfium2.PdfTextPage, index: int) -> bool:
    name = (ctypes.c_char * _FONT_NAME_BYTES)()
    flags = ctypes.c_int()
    length = pdfium.FPDFText_GetFontInfo(textpage, index, name, _FONT_NAME_BYTES, flags)
    if not 0 < length <= _FONT_NAME_BYTES:
        return False
    lower = name.value.lower()
    return b"bold" in lower or b"black" in lower or b"heavy" in lower


def _joined(lines: list[Line]) -> list[Line]:
    """Joins neighbours on one line, which pdfium split at a raised note number or a change of font."""
    result: list[Line] = []
    for line in lines:
        before = result[-1] if result else None
        if before and before.upright and line.upright and not (before.hyphen or before.row or line.row):
            height = min(before.top - before.bottom, line.top - line.bottom)
            overlap = min(before.top, line.top) - max(before.bottom, line.bottom)
            gap = line.left - before.right
            size = max(before.size, line.size)
            if overlap > 0.5 * height and -0.5 * size < gap < 1.5 * size:
                blank = " " if gap > 0.15 * size or before.spaced else ""
                result[-1] = Line(
                    before.text + blank + line.text,
                    before.left,
                    min(before.bottom, line.bottom),
                    max(before.right, line.right),
                    max(before.top, line.top),
                    size,
                    line.hyphen,
                    line.spaced,
                    before.bold and line.bold,
                )
                continue
        result.append(line)
    return result
