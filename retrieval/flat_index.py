"""Exact inner-product search by FAISS: the index of small collections."""

import threading
from collections.abc import Callable
from typing import Any, TypeVar

import faiss
import numpy as np

from retrieval.fusion import TIE_MARGIN, Scores, best, fetch, selector_of
from retrieval.key_set import KeySet
from retrieval.ports import Keys, Vectors
from retrieval.readers_writer_lock import ReadersWriterLock
from retrieval.vectors import check_keys, check_query, check_rows

Copy = TypeVar("Copy")


class FlatIndex:
    """Implements `VectorIndex` over `IndexIDMap2(IndexFlatIP)`.

    Flat and not HNSW: HNSW cannot remove, and a narrow filter costs it its recall. Searches run
    side by side (FAISS releases the interpreter), writes alone. `allowed` is a selector inside the
    search; this is the CPU index because plain GPU builds of FAISS ignore selectors.
    """

    def __init__(self, dim: int) -> None:
        """An empty index of `dim`-dimensional vectors."""
        self._dim = dim
        self._index: Any = faiss.IndexIDMap2(faiss.IndexFlatIP(dim))
        self._writers = threading.Lock()  # held while writing or saving, never by searches
        self._lock = ReadersWriterLock()

    @classmethod
    def of(cls, raw: Any) -> "FlatIndex":
        """The index over a FAISS index as `write` saved it.

        Raises:
            ValueError: It is of another kind.
        """
        if not isinstance(raw, faiss.IndexIDMap2) or not isinstance(faiss.downcast_index(raw.index), faiss.IndexFlatIP):
            raise ValueError("the bytes hold another kind of FAISS index")
        index = cls(raw.d)
        index._index = raw
        return index

    def __len__(self) -> int:
        with self._lock.reading():
            return int(self._index.ntotal)

    @property
    def dim(self) -> int:
        """Length of every vector held."""
        return self._dim

    @property
    def lists(self) -> int:
        """0: every vector is compared."""
        return 0

    def keys(self) -> Keys:
        """Every key held, sorted ascending."""
        with self._lock.reading():
            return np.sort(self._held())

    def add(self, keys: Keys, vectors: Vectors) -> None:
        """Add `(n,)` keys with `(n, dim)` rows. A key already held is replaced; O(held) if one is.

        Raises:
            ValueError: The shapes do not match, a key comes twice, or a number is not finite.
        """
        check_rows(keys, vectors, dim=self._dim)
        if not len(keys):
            return
        ids = np.ascontiguousarray(keys, dtype=np.int64)
        rows = np.ascontiguousarray(vectors, dtype=np.float32)
        with self._writers:
            held = ids[np.isin(ids, self._held())]
            with self._lock.writing():
                if len(held):  # searches wait for the whole write
                    self._index.remove_ids(faiss.IDSelectorBatch(held))
                self._index.add_with_ids(rows, ids)

    def remove(self, keys: Keys) -> int:
        """Remove keys, ignoring unknown ones; returns how many were held. O(held)."""
        check_keys(keys)
        if not len(keys):
            return 0
        with self._writers, self._lock.writing():
            return int(self._index.remove_ids(faiss.IDSelectorBatch(np.ascontiguousarray(keys, dtype=np.int64))))

    def search(self, query: Vectors, *, k: int, allowed: KeySet | None) -> list[tuple[int, float]]:
        """At most `k` (key, inner product) of the allowed keys, best first, ties by key ascending.

        Raises:
            ValueError: `query` is not `(dim,)` finite numbers, or `k` is negative.
        """
        check_query(query, k=k, dim=self._dim)
        row = np.ascontiguousarray(query, dtype=np.float32)[None, :]
        # FAISS's own constructors are rewritten at import.
        swig: Any = faiss
        parameters = None if allowed is None else swig.SearchParameters(sel=selector_of(allowed))

        def nearest(n: int) -> tuple[Scores, Keys]:
            scores, ids = self._index.search(row, n, params=parameters)
            return scores[0], ids[0]

        with self._lock.reading():
            # FAISS shares out queries, not rows: for one query its thread team only costs waiting.
            # The setting is the calling thread's own, and FAISS's OpenMP is not torch's.
            faiss.omp_set_num_threads(1)
            most = int(self._index.ntotal) if allowed is None else min(int(self._index.ntotal), len(allowed))
            if not k or not most:
                return []
            scores, keys = fetch(nearest, k=k, first=k + TIE_MARGIN, most=most)
        return best(scores, keys, k=k)

    def candidates(self, k: int) -> int:
        """How many of the nearest must be fetched to have the best `k`, with room for ties."""
        return k + TIE_MARGIN

    def probes(self, share: float) -> int:  # noqa: ARG002 - an inverted index goes by it
        """0: there are no lists to read, whatever share of the keys is allowed."""
        return 0

    def rescored(
        self,
        row: Vectors,
        scores: Scores,  # noqa: ARG002 - an inverted index may have no better ones
        keys: Keys,
    ) -> tuple[Scores, Keys]:
        """Those of `keys` still held with their scores by the stored vectors; `scores` is ignored.

        Args:
            row: The question, `(dim,)` float32.
            scores: `(n,)`, by the search that found the keys.
            keys: `(n,)`, distinct.
        """
        with self._lock.reading():
            try:
                vectors = self._index.reconstruct_batch(keys)
            except RuntimeError:  # one of them was removed
                held = self._held()
                keys = keys[np.isin(keys, held)]
                vectors = self._index.reconstruct_batch(keys)
        # Not `@`: BLAS rounds equal rows differently by their position, and equal rows must tie.
        return np.einsum("ij,j->i", vectors, row), keys

    def copied(self, transfer: Callable[[Any], Copy]) -> tuple[Copy, KeySet]:
        """The FAISS index as converted by `transfer`, and its keys. Writers wait, searches do not."""
        with self._writers:
            return transfer(self._index), KeySet(self._held())

    def write(self, writer: Any) -> int:
        """Write the index through a FAISS `IOWriter`; how many keys are in it. Writers wait, searches do not."""
        with self._writers:
            faiss.write_index(self._index, writer)
            return int(self._index.ntotal)

    def _held(self) -> Keys:
        held: Keys = faiss.vector_to_array(self._index.id_map)
        return held
