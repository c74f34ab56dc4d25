"""A token grammar that allows only citation markers of presented sources, and those only behind words.

Text is free until it opens a bracket. A bracket with a letter, quotation mark or dot behind it is text, as in "[sic]".
Any other must become a marker: numbers from 1 to the number of sources, with `,` or `;` between them, spaces around
them, then `]`: `[1]`, `[1, 3]`, `[ 2 ; 4 ]`. A marker needs words before it, and an answer may not end before it has
said any: it is never "[1]". Between the three backticks of a code block everything is text.

Tokens are pieces of many bytes (`" ["`, `"1]."`, `"]["`), so each is walked through the automaton
byte by byte, once for each state that needs a mask (Willard and Louf 2023, arXiv:2307.09702).
"""

import re
from collections.abc import Sequence
from enum import IntEnum
from functools import lru_cache
from typing import NamedTuple

import torch
from torch import Tensor

HIGHEST = 999  # a marker's number has at most three digits
_LONGEST = 25  # bytes of a marker before its "]", "[" included: what is longer is shown as plain text
_EXPECTED, _PASSED = -1, 0
_OPEN, _CLOSE, _SPACE, _TICK = b"[] `"
_FENCE = 3  # backticks
_SEPARATORS = b",;"
_DIGITS = b"0123456789"
_LETTERS = bytes(range(ord("A"), ord("Z") + 1)) + bytes(range(ord("a"), ord("z") + 1))
_TEXT = _LETTERS + b"\"'."
"""Bytes behind a bracket that make it text. Others than ASCII may be digits or spaces of another script."""
_WORDS = _LETTERS + _DIGITS + bytes(range(0x80, 0x100))
_GAPS = b" \t\r\n" + _SEPARATORS  # between markers
_LINE_END = ord("\n")
_INSIDE = re.compile(rb"[ 0-9,;]+(?:\].*)?|\].*|[A-Za-z\"'.].*", re.DOTALL)
_TURNS, _IN_WORDS = frozenset((_OPEN, _TICK, _LINE_END)), frozenset(_WORDS)
_MASKS = 256  # kept at a time; one is as many bytes as the vocabulary has tokens


class Preceding(IntEnum):
    """What stands before a place outside markers."""

    NOTHING = 0
    """No word since the beginning: a marker would cite nothing, and the answer may not end."""
    NEW = 1
    """No word since the last marker, but another sign: a marker would cite nothing."""
    WORDS = 2
    """Words without a marker."""
    MARKER = 3
    """A marker, a code block, or the end of a line, with nothing but gaps behind it: another marker may follow."""


class Place(NamedTuple):
    """The state of the automaton.

    Attributes:
        length: Bytes of the unclosed marker, `[` included; 0 outside.
        number: The number being spelt; 0 when spaces have ended it, -1 when one must come first.
        said: What stands before.
        ticks: Backticks just read in a row, below 3.
        code: Whether the place is in a code block.
    """

    length: int
    number: int
    said: Preceding
    ticks: int = 0
    code: bool = False


BEGINNING = Place(0, _PASSED, Preceding.NOTHING)
_AMONG_WORDS = Place(0, _PASSED, Preceding.WORDS)


def step(place: Place, byte: int, *, sources: int) -> Place | None:
    """The place after one more byte, None if it must not follow. Every place can be left by way of `]`."""
    if place.length == 0:
        return _outside(place, byte, sources=sources)
    if place.length == 1 and byte in _TEXT:
        return Place(0, _PASSED, Preceding.WORDS)
    if byte == _CLOSE:
        return None if place.number == _EXPECTED else Place(0, _PASSED, Preceding.MARKER)
    length, number = place.length + 1, place.number
    if byte in _DIGITS and number != _PASSED:
        number = 10 * max(number, 0) + byte - _DIGITS[0]
        allowed = 1 <= number <= sources
    elif byte == _SPACE:
        number = _EXPECTED if number == _EXPECTED else _PASSED
        allowed = True
    else:
        allowed = byte in _SEPARATORS and number != _EXPECTED
        number = _EXPECTED
    room = _LONGEST - (number == _EXPECTED)  # a number that must come needs a digit
    return Place(length, number, place.said) if allowed and length <= room else None


def _outside(place: Place, byte: int, *, sources: int) -> Place | None:
    said, code = place.said, place.code
    if byte == _TICK:
        if place.ticks + 1 < _FENCE:
            return place._replace(ticks=place.ticks + 1)
        return Place(0, _PASSED, Preceding.MARKER if code else Preceding.WORDS, code=not code)
    if code:
        return place._replace(ticks=0)
    if byte == _OPEN:
        return Place(1, _EXPECTED, said) if sources and said >= Preceding.WORDS else None
    if byte in _WORDS:
        said = Preceding.WORDS
    elif byte == _LINE_END and said is Preceding.WORDS:
        said = Preceding.MARKER
    elif byte not in _GAPS and said is Preceding.MARKER:
        said = Preceding.NEW
    return Place(0, _PASSED, said)


def walk(place: Place, text: bytes, *, sources: int) -> Place | None:
    """The place after `text`, None if it must not follow."""
    at: Place | None = place
    for byte in text:
        if at is None:
            return None
        at = step(at, byte, sources=sources)
    return at


class CitationGrammar:
    """The automaton over one vocabulary. Masks are computed when first asked for, and shared."""

    def __init__(self, vocabulary: Sequence[bytes | None]) -> None:
        """Read the vocabulary: bytes by id, None for ids without text; see `vocabulary.token_bytes`."""
        self._vocabulary = tuple(vocabulary)
        texts = [(token, text) for token, text in enumerate(vocabulary) if text]
        self._silent = [token for token, text in enumerate(vocabulary) if not text]
        self._opening = [(token, text) for token, text in texts if _OPEN in text]
        self._inside = [(token, text) for token, text in texts if _INSIDE.fullmatch(text)]
        self._is_prose = bytes(map(_is_prose, vocabulary))
        # One token for each byte of a marker means that everything the automaton allows can be spelt.
        self._spells_markers = {bytes((byte,)) for byte in b"]" + _DIGITS} <= {text for _, text in texts}
        self.mask = lru_cache(maxsize=_MASKS)(self._mask)

    def sources(self, wanted: int) -> int:
        """How many of `wanted` sources can be cited: numbers have three digits, and the vocabulary must spell them."""
        return min(wanted, HIGHEST) if self._spells_markers else 0

    def advance(self, place: Place, token: int, *, sources: int) -> Place | None:
        """The state after a token, None if it must not follow.

        Ids without text, as the one that ends the answer, must be outside a marker, and behind a word where there are
        sources.
        """
        if place.length == 0 and not place.code and self._is_prose[token]:
            return _AMONG_WORDS  # most tokens, at every row of every step: without a walk
        text = self._vocabulary[token]
        if not text:
            return place if place.length == 0 and not _must_speak(place, sources) else None
        return walk(place, text, sources=sources)

    def _mask(self, place: Place, sources: int) -> Tensor:
        """Bool [vocabulary]: which tokens may follow at `place`."""
        outside = place.length == 0
        mask = torch.full((len(self._vocabulary),), outside, dtype=torch.bool)
        if outside and _must_speak(place, sources):
            mask[self._silent] = False
        for token, text in self._opening if outside else self._inside:
            mask[token] = walk(place, text, sources=sources) is not None
        return mask


def _is_prose(text: bytes | None) -> bool:
    """Whether a token has words and no bracket, backtick or line end: in prose it changes only what was `said`."""
    return text is not None and not _TURNS.intersection(text) and not _IN_WORDS.isdisjoint(text)


def _must_speak(place: Place, sources: int) -> bool:
    return sources > 0 and place.said is Preceding.NOTHING
