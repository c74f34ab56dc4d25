"""Fuses several rankings into one, and collects enough candidates from FAISS to rank exactly."""

from collections.abc import Callable, Sequence
from math import isfinite
from typing import Any, TypeAlias

import faiss
import numpy as np
import numpy.typing as npt

from retrieval.key_set import KeySet
from retrieval.ports import Keys

# The cosine of the least similar passage of a collection, as seen with the default embedder on seven
# question sets (-0.22 to -0.11). The optimum is flat: 0 and -0.3 rank about as well (docs/EXPERIMENTS.md).
LEAST_COSINE = -0.2
DENSE_WEIGHT = 0.6

_Ranking = Sequence[tuple[int, float]]


def convex_combination(
    dense: _Ranking, lexical: _Ranking, *, dense_weight: float = DENSE_WEIGHT
) -> list[tuple[int, float]]:
    """Fuse scores, each ranking's divided by its best, by a weighted mean.

    Scores show how much better a passage is, which ranks do not (Bruch, Gai and Ingber 2023, "An
    analysis of fusion functions for hybrid retrieval", TOIS, arXiv:2210.11934). Each search's scores
    are put on [0, 1] between the least they can be, 0 for BM25 and `LEAST_COSINE`, and the best of this
    query. A passage found only by keywords has at most the similarity of the last dense hit,
    which is used for it; one without a shared word has the lexical score 0.

    Args:
        dense: (key, cosine) best first, each key once.
        lexical: (key, score) best first, each key once; scores on a ratio scale, never negative.
        dense_weight: Share of `dense` in the mean, in [0, 1].

    Returns:
        Every key of either ranking with its score in [0, 1], best first, ties by key ascending. A
        ranking that is empty leaves the other one's scores alone.
    """
    assert 0.0 <= dense_weight <= 1.0, "a share"
    similar = _normalised(dense, least=LEAST_COSINE)
    worded = _normalised(lexical, least=0.0)
    if not similar or not worded:
        return _sorted(similar or worded)
    last = min(similar.values())
    return _sorted(
        {
            key: dense_weight * similar.get(key, last) + (1.0 - dense_weight) * worded.get(key, 0.0)
            for key in {*similar, *worded}
        }
    )


def _normalised(ranking: _Ranking, *, least: float) -> dict[int, float]:
    """Scores on [0, 1]: `least` and below is 0, the best 1; all 0 where even the best is no more than `least`."""
    scores = dict(ranking)
    assert len(scores) == len(ranking), "a ranking holds a key at most once"
    assert all(map(isfinite, scores.values())), "a score is a number"
    span = max(scores.values(), default=least) - least
    if span <= 0.0:
        return dict.fromkeys(scores, 0.0)
    return {key: max(0.0, (score - least) / span) for key, score in scores.items()}


def _sorted(fused: dict[int, float]) -> list[tuple[int, float]]:
    return sorted(fused.items(), key=lambda pair: (-pair[1], pair[0]))


Scores: TypeAlias = npt.NDArray[np.float32]

# Fetched beyond `k` so that ties across the k-th place are seen and broken by key.
TIE_MARGIN = 16


def selector_of(allowed: KeySet) -> Any:
    """Converts `allowed` for FAISS: a bitmap while it is small, else a hash set, which is slower to build."""
    # FAISS's own constructors are rewritten at import and keep a reference to the array they are given.
    swig: Any = faiss
    bits = allowed.bitmap
    return swig.IDSelectorBatch(allowed.keys) if bits is None else swig.IDSelectorBitmap(bits)


def fetch(search: Callable[[int], tuple[Scores, Keys]], *, k: int, first: int, most: int) -> tuple[Scores, Keys]:
    """Run `search(n)` with growing `n` until no tie is cut at the k-th place.

    Args:
        search: The n best as `(n,)` scores and keys, best first, padded with key -1 when fewer match.
        k: Place across which no tie may be cut.
        first: How many to fetch at first.
        most: More than this many cannot match.

    Returns:
        Scores and keys of the hits, best first, at least the best `k` with their ties.
    """
    wanted = min(most, first)
    while True:
        scores, keys = search(wanted)
        found = keys >= 0
        tied_to_the_end = bool(found.all()) and scores[-1] == scores[min(k, wanted) - 1]
        if wanted == most or not tied_to_the_end:
            return scores[found], keys[found]
        wanted = min(most, wanted * 2)


def best(scores: Scores, keys: Keys, *, k: int) -> list[tuple[int, float]]:
    """The `k` best (key, score), ties by key ascending."""
    order = np.lexsort((keys, -scores))[:k]
    return [(int(keys[i]), float(scores[i])) for i in order]
