"""Brute-force search in numpy: the reference that every vector index must equal."""

from threading import Lock
from typing import NamedTuple

import numpy as np

from retrieval.key_set import KeySet
from retrieval.ports import Keys, Vectors
from retrieval.vectors import check_keys, check_query, check_rows


class _Rows(NamedTuple):
    """Keys `(n,)` sorted ascending and their rows `(n, dim)`. Never written to, only replaced."""

    keys: Keys
    vectors: Vectors


class ExactIndex:
    """Implements `VectorIndex` with one product per row and search.

    Searches read an immutable snapshot and never wait; each write copies the matrix, O(n · dim).
    """

    def __init__(self, dim: int) -> None:
        """An empty index of `dim`-dimensional vectors."""
        self._dim = dim
        self._rows = _Rows(np.empty(0, np.int64), np.empty((0, dim), np.float32))
        self._writing = Lock()

    def __len__(self) -> int:
        return len(self._rows.keys)

    def keys(self) -> Keys:
        """Every key held, sorted ascending."""
        return self._rows.keys.copy()

    def add(self, keys: Keys, vectors: Vectors) -> None:
        """Add `(n,)` keys with `(n, dim)` rows. A key already held is replaced.

        Raises:
            ValueError: The shapes do not match, a key comes twice, or a number is not finite.
        """
        check_rows(keys, vectors, dim=self._dim)
        with self._writing:
            kept = ~np.isin(self._rows.keys, keys)
            all_keys = np.concatenate([self._rows.keys[kept], keys.astype(np.int64)])
            all_vectors = np.concatenate([self._rows.vectors[kept], vectors.astype(np.float32)])
            order = np.argsort(all_keys)
            self._rows = _Rows(all_keys[order], all_vectors[order])

    def remove(self, keys: Keys) -> int:
        """Remove keys, ignoring unknown ones; returns how many were held."""
        check_keys(keys)
        with self._writing:
            kept = ~np.isin(self._rows.keys, keys)
            removed = len(kept) - int(kept.sum())
            if removed:
                self._rows = _Rows(self._rows.keys[kept], self._rows.vectors[kept])
        return removed

    def search(self, query: Vectors, *, k: int, allowed: KeySet | None) -> list[tuple[int, float]]:
        """At most `k` (key, inner product) of the allowed keys, best first, ties by key ascending.

        Raises:
            ValueError: `query` is not `(dim,)` finite numbers, or `k` is negative.
        """
        check_query(query, k=k, dim=self._dim)
        keys, vectors = self._rows
        if allowed is not None:
            mask = allowed.contains(keys)
            keys, vectors = keys[mask], vectors[mask]
        # Not `@`: BLAS rounds equal rows differently by their position, and equal rows must tie.
        scores = np.einsum("ij,j->i", vectors, query.astype(np.float32))
        order = np.lexsort((keys, -scores))[:k]
        return [(int(keys[i]), float(scores[i])) for i in order]
