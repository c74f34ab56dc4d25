"""Exact inner-product search by FAISS: the index the product serves from."""

from typing import Any

import faiss
import numpy as np
import numpy.typing as npt

from retrieval.ports import Keys, Vectors
from retrieval.readers_writer_lock import ReadersWriterLock
from retrieval.vectors import check_keys, check_query, check_rows

# Fetched beyond `k` so that ties across the k-th place are seen and broken by key.
TIE_MARGIN = 16


class FaissIndex:
    """Implements `VectorIndex` over `IndexIDMap2(IndexFlatIP)`.

    Flat and not HNSW: HNSW cannot remove, and a narrow filter costs it its recall. Searches run
    side by side (FAISS releases the interpreter), writes alone. `allowed` is a selector inside the
    search; this is the CPU index because plain GPU builds of FAISS ignore selectors in silence.
    """

    def __init__(self, dim: int) -> None:
        """An empty index of `dim`-dimensional vectors."""
        self._dim = dim
        self._index: Any = faiss.IndexIDMap2(faiss.IndexFlatIP(dim))
        self._lock = ReadersWriterLock()

    def __len__(self) -> int:
        with self._lock.reading():
            return int(self._index.ntotal)

    @property
    def dim(self) -> int:
        """Length of every vector held."""
        return self._dim

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
        with self._lock.writing():
            held = ids[np.isin(ids, self._held())]
            if len(held):  # a search never sees the gap: it waits for the whole write
                self._index.remove_ids(faiss.IDSelectorBatch(held))
            self._index.add_with_ids(rows, ids)

    def remove(self, keys: Keys) -> int:
        """Remove keys, ignoring unknown ones; returns how many were held. O(held)."""
        check_keys(keys)
        if not len(keys):
            return 0
        with self._lock.writing():
            return int(self._index.remove_ids(faiss.IDSelectorBatch(np.ascontiguousarray(keys, dtype=np.int64))))

    def search(self, query: Vectors, *, k: int, allowed: Keys | None) -> list[tuple[int, float]]:
        """At most `k` (key, inner product) of the allowed keys, best first, ties by key ascending.

        Raises:
            ValueError: `query` is not `(dim,)` finite numbers, or `k` is negative.
        """
        check_query(query, k=k, dim=self._dim)
        row = np.ascontiguousarray(query, dtype=np.float32)[None, :]
        selector = None if allowed is None else _Selector(allowed)
        with self._lock.reading():
            # FAISS shares out queries, not rows: for one query its thread team only costs waiting.
            # The setting is the calling thread's own, and FAISS's OpenMP is not torch's.
            faiss.omp_set_num_threads(1)
            most = int(self._index.ntotal) if allowed is None else min(int(self._index.ntotal), len(allowed))
            if not k or not most:
                return []
            fetch = min(most, k + TIE_MARGIN)
            while True:
                scores, ids = self._index.search(row, fetch, params=selector.parameters if selector else None)
                found = ids[0] >= 0  # FAISS pads with -1 when fewer match
                tied_to_the_end = found.all() and scores[0][-1] == scores[0][min(k, fetch) - 1]
                if fetch == most or not tied_to_the_end:
                    break
                fetch = min(most, fetch * 2)
        held_ids, held_scores = ids[0][found], scores[0][found]
        order = np.lexsort((held_ids, -held_scores))[:k]
        return [(int(held_ids[i]), float(held_scores[i])) for i in order]

    def snapshot(self) -> tuple[bytes, int]:
        """The index in FAISS's own format and how many keys are in it, both of one moment."""
        with self._lock.reading():
            data: npt.NDArray[np.uint8] = faiss.serialize_index(self._index)
            count = int(self._index.ntotal)
        return data.tobytes(), count

    @classmethod
    def from_bytes(cls, data: bytes, *, dim: int) -> "FaissIndex":
        """The index of a `snapshot`. Only for bytes whose checksum was verified: the format is not hardened.

        Raises:
            ValueError: The bytes hold no index, or one of another kind or dimension.
        """
        try:
            raw = faiss.deserialize_index(np.frombuffer(data, dtype=np.uint8))
        except RuntimeError as error:
            raise ValueError("the bytes hold no FAISS index") from error
        if not isinstance(raw, faiss.IndexIDMap2) or not isinstance(faiss.downcast_index(raw.index), faiss.IndexFlatIP):
            raise ValueError("the bytes hold another kind of FAISS index")
        if raw.d != dim:
            raise ValueError(f"the index holds vectors of {raw.d} dimensions, not {dim}")
        index = cls(dim)
        index._index = raw
        return index

    def _held(self) -> Keys:
        held: Keys = faiss.vector_to_array(self._index.id_map)
        return held


class _Selector:
    """Allowed keys as FAISS reads them: one bit a key while that is small, else a hash set.

    Keys are row ids, so they are dense and the bitmap is a few kilobytes; a hash set of the same
    keys takes far longer to build than the search itself.
    """

    def __init__(self, allowed: Keys) -> None:
        # FAISS's own constructors are rewritten at import and keep a reference to the array they are given.
        swig: Any = faiss
        ids = np.ascontiguousarray(allowed[allowed >= 0], dtype=np.int64)
        top = int(ids.max(initial=0))
        if top < max(1 << 20, 64 * len(ids)):
            bits = np.zeros(top + 1, dtype=bool)
            bits[ids] = True
            selector = swig.IDSelectorBitmap(np.packbits(bits, bitorder="little"))
        else:
            selector = swig.IDSelectorBatch(ids)
        self._parameters = swig.SearchParameters(sel=selector)

    @property
    def parameters(self) -> Any:
        return self._parameters
