"""Finds a phrase in a document's text, whatever its case, its line breaks and its hyphenation.

Text and phrase are folded alike: compatibility forms and accents by NFKD, case by `str.casefold`, curly quotes to
straight ones, a run of white space to one space, and a hyphen between two letters (with the line break behind it) to
nothing. Offsets count Unicode code points of the unfolded text.
"""

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from retrieval.types import Span

MOST_PHRASE = 200
"""Characters of a phrase."""

MOST_SPAN = 4096
"""Characters of an occurrence, with the white space and the invisible characters inside it."""

_BLOCK = 131_072  # characters folded at once
_LONGEST = 4  # characters that one may fold to: "ffi" and "1⁄2" are three, one of Arabic's is eighteen
_CONTEXT = 64  # characters before a block, which decide whether a hyphen at its start is one inside a word
_OTHER, _LETTER, _SPACE, _HYPHEN = range(4)
_HYPHENS = frozenset("-\u2010\u2011\ufe63\uff0d")
_QUOTES = str.maketrans("‘’‚‛“”„‟", "''''\"\"\"\"")
_ACCENTS = range(0x300, 0x370)
_INVISIBLE = frozenset((0xAD, 0x200B, 0x200C, 0x200D, 0x2060, 0xFEFF))  # soft hyphen, zero width, byte order mark

_Codes = NDArray[np.uint32]
_Offsets = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Occurrences:
    """Occurrences from the start of a text, apart from each other; `total` counts those that are left out too."""

    spans: tuple[Span, ...]
    total: int


def find_phrase(text: str, phrase: str, *, most: int) -> Occurrences:
    """The first `most` occurrences of `phrase` in `text`, and how many there are.

    Takes time linear in the text, whatever is in it: folding is one pass over arrays, and `str.find` is Crochemore and
    Perrin's two-way algorithm.
    """
    assert len(phrase) <= MOST_PHRASE, "the request's schema limits the phrase"
    folding = _Folding()
    needle = _trimmed(folding.folded(phrase))
    if not needle:
        return Occurrences((), 0)
    spans: list[Span] = []
    total = resume = 0
    for start in range(0, len(text), _BLOCK):
        first = max(start - _CONTEXT, 0)
        folded, origins = folding.fold(text[first : start + _BLOCK + MOST_SPAN])
        origins += first
        # one that reaches over the block's end is found in the block that it begins in
        end = int(np.searchsorted(origins, start + _BLOCK)) + len(needle) - 1
        at = folded.find(needle, int(np.searchsorted(origins, max(resume, start))), end)
        while at >= 0 and total < most:
            span = Span(int(origins[at]), int(origins[at + len(needle) - 1]) + 1)
            spans.append(span)
            total, resume = total + 1, span.end_char
            at = folded.find(needle, int(np.searchsorted(origins, resume)), end)
        if at >= 0:
            total += folded.count(needle, at, end)
    return Occurrences(tuple(spans), total)


def snippet(text: str, span: Span, *, around: int = 60) -> str:
    """The words of a span with at most `around` characters on each side, in one line, with "…" where it is cut."""
    first, last = max(span.start_char - around, 0), min(span.end_char + around, len(text))
    before, after = text[first : span.start_char], text[span.end_char : last]
    if first > 0:
        before = "…" + (before.partition(" ")[2] or before)
    if last < len(text):
        after = (after.rpartition(" ")[0] or after) + "…"
    return " ".join((before + text[span.start_char : span.end_char] + after).split())


def pages_of(span: Span, pages: Sequence[tuple[int, int, int]]) -> tuple[int | None, int | None]:
    """The first and the last page of a span; None and None outside of `pages`: number, first character, end."""
    touched = [number for number, start, end in pages if start < span.end_char and end > span.start_char]
    return (touched[0], touched[-1]) if touched else (None, None)


def _trimmed(needle: str) -> str:
    """Without white space at its ends, and without a hyphen there that a longer phrase would lose."""
    needle = needle.strip()
    while len(needle) > 1 and needle[-1] in _HYPHENS and needle[-2].isalpha():
        needle = needle[:-1].rstrip()
    while len(needle) > 1 and needle[0] in _HYPHENS and needle[1].isalpha():
        needle = needle[1:].lstrip()
    return needle


class _Folding:
    """Folds texts by tables that grow with the characters it meets.

    >>> _Folding().folded("Straße")
    'strasse'
    """

    def __init__(self) -> None:
        self._known = np.zeros(0x110000, dtype=np.bool_)
        self._starts = np.zeros(0x110000, dtype=np.int64)
        self._lengths = np.zeros(0x110000, dtype=np.int64)
        self._codes: _Codes = np.zeros(0, dtype=np.uint32)
        self._kinds: NDArray[np.uint8] = np.zeros(0, dtype=np.uint8)

    def folded(self, text: str) -> str:
        """The folded text alone."""
        return self.fold(text)[0]

    def fold(self, text: str) -> tuple[str, _Offsets]:
        """The folded text, and for each of its characters the offset of the one that it comes from."""
        given = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype="<u4")
        self._learn(given)
        lengths = self._lengths[given]
        origins = np.repeat(np.arange(len(given), dtype=np.int64), lengths)
        first = np.repeat(self._starts[given] - (np.cumsum(lengths) - lengths), lengths)
        places = first + np.arange(len(origins), dtype=np.int64)
        codes, kinds = self._codes[places], self._kinds[places]
        for keep in (_once_each_space, _outside_words):
            kept = keep(kinds)
            codes, kinds, origins = codes[kept], kinds[kept], origins[kept]
        return codes.astype("<u4").tobytes().decode("utf-32-le", "surrogatepass"), origins

    def _learn(self, given: _Codes) -> None:
        """Extend the tables by the characters of a text that they lack."""
        met = np.zeros(0x110000, dtype=np.bool_)
        met[given] = True
        codes: list[int] = []
        kinds: list[int] = []
        known = len(self._codes)
        for code in np.flatnonzero(met & ~self._known).tolist():
            folded = _folded_character(code)
            self._starts[code] = known + len(codes)
            self._lengths[code] = len(folded)
            codes += map(ord, folded)
            kinds += map(_kind, folded)
        self._known |= met
        if codes:
            self._codes = np.concatenate([self._codes, np.array(codes, dtype=np.uint32)])
            self._kinds = np.concatenate([self._kinds, np.array(kinds, dtype=np.uint8)])


def _folded_character(code: int) -> str:
    character = chr(code)
    if character.isspace():
        return " "
    decomposed = unicodedata.normalize("NFKD", character.translate(_QUOTES)).casefold()
    if len(decomposed) > _LONGEST:
        return character
    return "".join(part for part in decomposed if ord(part) not in _ACCENTS and ord(part) not in _INVISIBLE)


def _kind(character: str) -> int:
    if character.isspace():
        return _SPACE
    if character in _HYPHENS:
        return _HYPHEN
    return _LETTER if character.isalpha() else _OTHER


def _once_each_space(kinds: NDArray[np.uint8]) -> NDArray[np.bool_]:
    """All but the spaces behind a space."""
    space = kinds == _SPACE
    kept = np.ones(len(kinds), dtype=np.bool_)
    kept[1:] = ~(space[1:] & space[:-1])
    return kept


def _outside_words(kinds: NDArray[np.uint8]) -> NDArray[np.bool_]:
    """All but a hyphen between two letters, and the space behind it."""
    kept = np.ones(len(kinds), dtype=np.bool_)
    if len(kinds) < 3:
        return kept
    begun = (kinds[:-2] == _LETTER) & (kinds[1:-1] == _HYPHEN)
    kept[1:-1] &= ~(begun & (kinds[2:] == _LETTER))
    broken = begun[:-1] & (kinds[2:-1] == _SPACE) & (kinds[3:] == _LETTER)
    kept[1:-2] &= ~broken
    kept[2:-1] &= ~broken
    return kept
