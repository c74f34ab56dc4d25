"""Synthetic chunks and questions: Zipf's words, about 120 a chunk, the same for the same numbers."""

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from retrieval.tantivy_fields import LexicalEntry

TENANT, COLLECTIONS, CHUNKS_A_DOCUMENT = "t1", 100, 10
_VOCABULARY = 200_000
_FILLER = 100  # the commonest words, which a question loses as stop words
_AT_ONCE = 10_000
_CONSONANTS, _VOWELS = "bcdfghklmnprstvz", "aeiou"


class Texts:
    """Draws words by Zipf's law with exponent 1.05."""

    def __init__(self) -> None:
        shares = 1 / np.arange(1, _VOCABULARY + 1) ** 1.05
        self._below: npt.NDArray[np.float64] = np.cumsum(shares / shares.sum())
        self._words = np.array([_word(rank) for rank in range(_VOCABULARY)], dtype=object)

    def entries(self, count: int) -> Iterator[LexicalEntry]:
        """`count` chunks with keys from 1 on, ten a document, every hundredth document in one collection."""
        rng = np.random.default_rng(0)
        for start in range(0, count, _AT_ONCE):
            lengths = rng.integers(60, 180, min(_AT_ONCE, count - start))
            drawn = self._draw(rng.random(lengths.sum()))
            ends = np.cumsum(lengths)
            for place, (end, length) in enumerate(zip(ends, lengths, strict=True), start=start):
                words = drawn[end - length : end]
                collection = f"col_{place // CHUNKS_A_DOCUMENT % COLLECTIONS}"
                yield LexicalEntry(place + 1, TENANT, collection, " ".join(words[:3]), " ".join(words))

    def questions(self, count: int) -> list[str]:
        """Questions of 6 to 10 words, none of them among the commonest."""
        rng = np.random.default_rng(1)
        least = self._below[_FILLER - 1]
        return [" ".join(self._draw(least + (1 - least) * rng.random(rng.integers(6, 11)))) for _ in range(count)]

    def _draw(self, uniform: npt.NDArray[np.float64]) -> npt.NDArray[np.object_]:
        drawn: npt.NDArray[np.object_] = self._words[np.minimum(np.searchsorted(self._below, uniform), _VOCABULARY - 1)]
        return drawn


def _word(rank: int) -> str:
    """Pronounceable, distinct, short when common; may share a stem with another, as words do."""
    letters, rest = "", rank + 1
    while rest:
        rest, consonant = divmod(rest, len(_CONSONANTS))
        rest, vowel = divmod(rest, len(_VOWELS))
        letters += _CONSONANTS[consonant] + _VOWELS[vowel]
    return letters
