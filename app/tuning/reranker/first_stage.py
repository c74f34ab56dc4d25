"""The ranking a reranker improves on: BM25 and the embedder, min–max normalised and mixed."""

import re
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from retrieval.ports import Vectors

_WORD = re.compile(r"\w+")
_DENSE_SHARE = 0.6

FloatScores = npt.NDArray[np.float32]


class Bm25:
    """BM25 over whole words, for mining; the product searches with its own lexical index.

    k1 = 1.5 and b = 0.75, Lucene's variant of the inverse document frequency
    (Kamphuis et al. 2020, "Which BM25 do you mean?", ECIR).
    """

    def __init__(self, texts: Sequence[str], *, k1: float = 1.5, b: float = 0.75) -> None:
        counts = [Counter(_words(text)) for text in texts]
        lengths = np.array([sum(count.values()) for count in counts], dtype=np.float32)
        norms = k1 * (1 - b + b * lengths / max(float(lengths.mean()), 1.0))
        postings: dict[str, tuple[list[int], list[float]]] = {}
        for at, count in enumerate(counts):
            for word, times in count.items():
                rows, frequencies = postings.setdefault(word, ([], []))
                rows.append(at)
                frequencies.append(times / (times + float(norms[at])))
        self._size = len(texts)
        self._postings = {
            word: (
                np.array(rows, dtype=np.int64),
                np.float32(np.log(1 + (len(texts) - len(rows) + 0.5) / (len(rows) + 0.5)))
                * np.array(frequencies, dtype=np.float32),
            )
            for word, (rows, frequencies) in postings.items()
        }

    def scores(self, query: str) -> FloatScores:
        """(documents,) scores; 0 where no word is shared."""
        total = np.zeros(self._size, dtype=np.float32)
        for word in _words(query):
            if word in self._postings:
                rows, weights = self._postings[word]
                total[rows] += weights
        return total


class FirstStage:
    """Ranks the documents of one collection."""

    def __init__(self, texts: Sequence[str], *, vectors: "Vectors | None") -> None:
        """`vectors` are the texts' unit rows; without them BM25 ranks alone."""
        self._bm25 = Bm25(texts)
        self._vectors = vectors

    def scores(self, query: str, *, vector: "Vectors | None") -> FloatScores:
        """(documents,) scores in [0, 1]: .6 dense and .4 BM25, each scaled to [0, 1] over all documents."""
        lexical = unit_range(self._bm25.scores(query))
        if self._vectors is None or vector is None:
            return lexical
        return _DENSE_SHARE * unit_range(self._vectors @ vector) + np.float32(1 - _DENSE_SHARE) * lexical


def unit_range(scores: FloatScores) -> FloatScores:
    """Scores scaled to [0, 1], equal scores to 0."""
    low, high = scores.min(), scores.max()
    scaled: FloatScores = (scores - low) / max(float(high - low), 1e-9)
    return scaled


def _words(text: str) -> list[str]:
    return _WORD.findall(text.casefold())
