"""BM25 in memory, by which training finds near misses; the product searches with its own lexical index."""

import re
from collections import Counter
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

_WORD = re.compile(r"\w+")

FloatScores = npt.NDArray[np.float32]


class Bm25:
    """BM25 over whole words.

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


def _words(text: str) -> list[str]:
    return _WORD.findall(text.casefold())
