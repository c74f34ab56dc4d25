"""What the FAISS indexes share: whom a search may return, and which of those found are best."""

from collections.abc import Callable
from typing import Any, TypeAlias

import faiss
import numpy as np
import numpy.typing as npt

from retrieval.key_set import KeySet
from retrieval.ports import Keys

Scores: TypeAlias = npt.NDArray[np.float32]

# Fetched beyond `k` so that ties across the k-th place are seen and broken by key.
TIE_MARGIN = 16


def selector_of(allowed: KeySet) -> Any:
    """`allowed` as FAISS reads it: one bit a key while that is small, else a hash set, slow to build."""
    # FAISS's own constructors are rewritten at import and keep a reference to the array they are given.
    swig: Any = faiss
    bits = allowed.bitmap
    return swig.IDSelectorBatch(allowed.keys) if bits is None else swig.IDSelectorBitmap(bits)


def fetch(search: Callable[[int], tuple[Scores, Keys]], *, k: int, first: int, most: int) -> tuple[Scores, Keys]:
    """Run `search(n)` with growing `n` until no tie is cut at the k-th place.

    Args:
        search: The n best as `(n,)` scores and keys, best first, padded with key -1 when fewer match.
        k: Place across which no tie may be cut.
        first: How many to ask for at first.
        most: More than this many cannot match.

    Returns:
        Scores and keys of what was found, best first, at least the best `k` with their ties.
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
