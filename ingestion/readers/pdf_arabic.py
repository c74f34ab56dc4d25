"""Mends what pdfium does to Arabic: it turns the letters of a ligature round and glues Latin words to it.

A lam-alef ligature is one glyph that stands for two letters. pdfium lists right-to-left glyphs
backwards, the letters inside such a glyph included, so that alef comes before lam; both then have
one and the same box, which the article alef-lam, two glyphs, has not.
"""

import re
from collections.abc import Callable

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
