"""A token grammar that allows only citation markers of presented sources.

Text is free until it opens a bracket. From there on only a marker can be written: numbers from 1 to
the number of sources, with `,` or `;` between them, spaces around them, then `]`: `[1]`, `[1, 3]`,
`[ 2 ; 4 ]`. So no other use of `[` can be generated: a bracket that could not become a marker is
not opened at all.

Tokens are pieces of many bytes (`" ["`, `"1]."`, `"]["`), so each is walked through the automaton
byte by byte, once for each state that needs a mask (Willard and Louf 2023, arXiv:2307.09702).
"""

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import torch
from torch import Tensor

HIGHEST = 999  # a marker's number has at most three digits
_LONGEST = 25  # bytes of a marker before its "]", "[" included: what is longer is shown as plain text
_EXPECTED, _PASSED = -1, 0
_OPEN, _CLOSE, _SPACE = b"[] "
_SEPARATORS = b",;"
_DIGITS = b"0123456789"
_INSIDE = re.compile(rb"[ 0-9,;]+(?:\].*)?|\].*", re.DOTALL)
_MASKS = 256  # kept at a time; one is as many bytes as the vocabulary has tokens


class Place(NamedTuple):
    """The state of the automaton.

    Attributes:
        length: Bytes of the unclosed marker, `[` included; 0 outside.
        number: The number being spelt; 0 when spaces have ended it, -1 when one must come first.
    """

    length: int
    number: int


OUTSIDE = Place(0, _PASSED)


def step(place: Place, byte: int, *, sources: int) -> Place | None:
    """The place after one more byte, None if it must not follow. Every place can be left by way of `]`."""
    if place == OUTSIDE:
        if byte != _OPEN:
            return OUTSIDE
        return Place(1, _EXPECTED) if sources else None
    if byte == _CLOSE:
        return None if place.number == _EXPECTED else OUTSIDE
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
    return Place(length, number) if allowed and length <= room else None


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
        self._opening = [(token, text) for token, text in texts if _OPEN in text]
        self._inside = [(token, text) for token, text in texts if _INSIDE.fullmatch(text)]
        # One token for each byte of a marker means that everything the automaton allows can be spelt.
        self._spells_markers = {bytes((byte,)) for byte in b"]" + _DIGITS} <= {text for _, text in texts}
        self.mask = lru_cache(maxsize=_MASKS)(self._mask)

    def sources(self, wanted: int) -> int:
        """How many of `wanted` sources can be cited: numbers have three digits, and the vocabulary must spell them."""
        return min(wanted, HIGHEST) if self._spells_markers else 0

    def advance(self, place: Place, token: int, *, sources: int) -> Place | None:
        """The state after a token, None if it must not follow. Ids without text must be outside a marker."""
        text = self._vocabulary[token]
        if not text:
            return OUTSIDE if place == OUTSIDE else None
        if place == OUTSIDE and _OPEN not in text:
            return OUTSIDE
        return walk(place, text, sources=sources)

    def _mask(self, place: Place, sources: int) -> Tensor:
        """Bool [vocabulary]: which tokens may follow at `place`."""
        outside = place == OUTSIDE
        mask = torch.full((len(self._vocabulary),), outside, dtype=torch.bool)
        for token, text in self._opening if outside else self._inside:
            mask[token] = walk(place, text, sources=sources) is not None
        return mask
