"""Approximate inner-product search by FAISS in inverted lists of 8-bit codes: the index of large collections."""

import math
import os
import threading
from collections.abc import Callable
from typing import Any, TypeVar

import faiss
import numpy as np

from retrieval.fusion import TIE_MARGIN, Scores, best, fetch, selector_of
from retrieval.key_set import KeySet
from retrieval.ports import ExactVectors, Keys, Vectors
from retrieval.readers_writer_lock import ReadersWriterLock
from retrieval.vectors import check_keys, check_query, check_rows

SAMPLE_PER_LIST = 40  # vectors a list is trained on; FAISS advises 39 or more
_ITERATIONS = 6  # of k-means; later ones move the lists too little to change the results
_READ = 24_576  # allowed vectors a search reads: a few milliseconds, and most there are in a small index
_FEWEST_PROBED = 32
_AT_ONCE = 1024  # rows a search waits for at most

Copy = TypeVar("Copy")


class InvertedIndex:
    """Implements `VectorIndex` over `IndexIVFScalarQuantizer` (`IVF,SQ8`; Jégou et al. 2011, "Product quantization").

    A vector takes `dim` bytes and its key 8. A search reads the lists whose centres are nearest:
    more of them the narrower the filter, and all when fewer than `k` come back. Codes of 8 bits
    misorder near neighbours, so a search takes more candidates than asked for and scores them again
    by their `exact` vectors; a candidate without one keeps its approximate score.

    Searches run side by side, writes alone and in short steps. An index mapped from a file is copied
    into memory at its first write; the file is never written to.
    """

    def __init__(self, raw: Any, *, exact: ExactVectors | None, mapped: bool = False) -> None:
        """The index over a trained FAISS index.

        Args:
            raw: As `train` made it or `write` saved it.
            exact: Where the vectors of candidates are read for their final scores; called by searching threads.
            mapped: Whether `raw` is in a mapped file and must be copied before it is changed.

        Raises:
            ValueError: `raw` is of another kind, or its lists disagree with its count.
        """
        if not isinstance(raw, faiss.IndexIVFScalarQuantizer) or raw.metric_type != faiss.METRIC_INNER_PRODUCT:
            raise ValueError("the bytes hold another kind of FAISS index")
        if not raw.is_trained or raw.quantizer.ntotal != raw.nlist or raw.nlist < 1:
            raise ValueError("the index was never trained")
        self._index = raw
        self._exact = exact
        self._mapped = mapped
        self._held = KeySet(_keys_of(raw))
        if len(self._held) != raw.ntotal:
            raise ValueError("the index holds a key twice or has lost one")
        self._writers = threading.Lock()  # held while writing or saving, never by searches
        self._lock = ReadersWriterLock()

    @classmethod
    def train(
        cls, sample: Vectors, *, lists: int, exact: ExactVectors | None, threads: int | None = None
    ) -> "InvertedIndex":
        """An empty index whose lists and codes are fitted to `sample`, `(n, dim)` rows with n >= lists.

        Args:
            sample: `SAMPLE_PER_LIST` rows a list are enough.
            lists: How many inverted lists.
            exact: As in the constructor.
            threads: The most threads to use; None means all.

        Raises:
            ValueError: The sample has too few rows, or a number in it is not finite.
        """
        check_rows(np.arange(len(sample)), sample, dim=sample.shape[1])
        if not 1 <= lists <= len(sample):
            raise ValueError(f"{lists} lists cannot be trained on {len(sample)} vectors")
        dim = sample.shape[1]
        swig: Any = faiss  # its constructors, rewritten at import, keep references to their arguments
        centres = swig.IndexFlatIP(dim)
        raw = swig.IndexIVFScalarQuantizer(
            centres, dim, lists, faiss.ScalarQuantizer.QT_8bit, faiss.METRIC_INNER_PRODUCT
        )
        raw.cp.niter = _ITERATIONS
        raw.cp.spherical = True
        raw.cp.min_points_per_centroid = 1  # the small sample is intended; FAISS would print a warning
        faiss.omp_set_num_threads(threads or os.cpu_count() or 1)
        raw.train(np.ascontiguousarray(sample, dtype=np.float32))
        return cls(raw, exact=exact)

    def __len__(self) -> int:
        return len(self._held)

    @property
    def dim(self) -> int:
        """Length of every vector held."""
        return int(self._index.d)

    @property
    def lists(self) -> int:
        """How many inverted lists."""
        return int(self._index.nlist)

    def keys(self) -> Keys:
        """Every key held, sorted ascending."""
        return self._held.keys.copy()

    def add(self, keys: Keys, vectors: Vectors, *, threads: int | None = 1) -> None:
        """Add `(n,)` keys with `(n, dim)` rows. A key already held is replaced; O(held) if one is.

        At most `threads` (None: all) find the lists the rows belong to, while searches run.

        Raises:
            ValueError: The shapes do not match, a key comes twice, or a number is not finite.
        """
        check_rows(keys, vectors, dim=self.dim)
        if not len(keys):
            return
        ids = np.ascontiguousarray(keys, dtype=np.int64)
        rows = np.ascontiguousarray(vectors, dtype=np.float32)
        faiss.omp_set_num_threads(threads or os.cpu_count() or 1)
        lists = np.ascontiguousarray(self._index.quantizer.search(rows, 1)[1][:, 0])
        with self._writers:
            self._own()
            for start in range(0, len(ids), _AT_ONCE):
                part = slice(start, start + _AT_ONCE)
                self._write(ids[part], rows[part], lists[part])

    def remove(self, keys: Keys) -> int:
        """Remove keys, ignoring unknown ones; returns how many were held. O(held)."""
        check_keys(keys)
        with self._writers:
            gone = np.ascontiguousarray(keys[self._held.contains(keys)], dtype=np.int64)
            if not len(gone):
                return 0
            self._own()
            left = self._held.minus(gone)
            with self._lock.writing():
                self._index.remove_ids(faiss.IDSelectorBatch(gone))
                self._held = left
        return len(gone)

    def search(self, query: Vectors, *, k: int, allowed: KeySet | None) -> list[tuple[int, float]]:
        """At most `k` (key, inner product) of the allowed keys, best first, ties by key ascending.

        Raises:
            ValueError: `query` is not `(dim,)` finite numbers, or `k` is negative.
        """
        check_query(query, k=k, dim=self.dim)
        row = np.ascontiguousarray(query, dtype=np.float32)
        selector = None if allowed is None else selector_of(allowed)
        with self._lock.reading():
            faiss.omp_set_num_threads(1)  # the calling thread's own setting
            held = len(self._held)
            most = held if allowed is None else min(held, len(allowed))
            if not k or not most:
                return []
            probed = self.probes(most / held)
            while True:
                scores, keys = self._nearest(row, k=k, most=most, probed=probed, selector=selector)
                if len(keys) >= min(k, most) or probed == self.lists:
                    break
                probed = min(self.lists, probed * 8)
        return best(self._rescored(row, scores, keys), keys, k=k)

    def candidates(self, k: int) -> int:
        """How many of the nearest by their codes are scored again to have the best `k`."""
        return k + max(TIE_MARGIN, k // 2)

    def rescored(self, row: Vectors, scores: Scores, keys: Keys) -> tuple[Scores, Keys]:
        """Those of `keys` still held with their final scores: by the exact vectors, else as `scores` has them.

        Args:
            row: The question, `(dim,)` float32.
            scores: `(n,)`, by the search that found the keys.
            keys: `(n,)`, distinct.
        """
        held = self._held.contains(keys)
        return self._rescored(row, scores[held], keys[held]), keys[held]

    def copied(self, transfer: Callable[[Any], Copy]) -> tuple[Copy, KeySet]:
        """The FAISS index as converted by `transfer`, and its keys. Writers wait, searches do not."""
        with self._writers:
            return transfer(self._index), self._held

    def write(self, writer: Any) -> int:
        """Write the index through a FAISS `IOWriter`; how many keys are in it. Writers wait, searches do not."""
        with self._writers:
            faiss.write_index(self._index, writer)
            return len(self._held)

    def probes(self, share: float) -> int:
        """Lists to read when `share` of the keys is allowed: about as many allowed keys are read for any filter."""
        unfiltered = max(_FEWEST_PROBED, _READ * self.lists / max(1, len(self._held)))
        return min(self.lists, math.ceil(unfiltered / share))

    def _nearest(self, row: Vectors, *, k: int, most: int, probed: int, selector: Any) -> tuple[Scores, Keys]:
        swig: Any = faiss
        parameters = swig.SearchParametersIVF(nprobe=probed, sel=selector)

        def nearest(n: int) -> tuple[Scores, Keys]:
            scores, ids = self._index.search(row[None, :], n, params=parameters)
            return scores[0], ids[0]

        return fetch(nearest, k=k, first=self.candidates(k), most=most)

    def _rescored(self, row: Vectors, scores: Scores, keys: Keys) -> Scores:
        """The scores of `keys` by their exact vectors."""
        if self._exact is None or not len(keys):
            return scores
        known, vectors = self._exact(np.sort(keys))
        if not len(known):
            return scores
        order = np.argsort(keys)
        places = order[np.searchsorted(keys, known, sorter=order)]
        rescored = scores.copy()
        # Not `@`: BLAS rounds equal rows differently by their position, and equal rows must tie.
        rescored[places] = np.einsum("ij,j->i", vectors, row)
        return rescored

    def _write(self, ids: Keys, rows: Vectors, lists: Keys) -> None:
        """Add a few rows to known lists, replacing rows with the same keys; the caller holds `_writers`."""
        replaced = ids[self._held.contains(ids)]
        now = self._held.plus(ids)
        swig: Any = faiss
        with self._lock.writing():
            if len(replaced):
                self._index.remove_ids(faiss.IDSelectorBatch(replaced))
            self._index.add_core(len(ids), swig.swig_ptr(rows), swig.swig_ptr(ids), swig.swig_ptr(lists))
            self._held = now

    def _own(self) -> None:
        """Copy the lists out of the mapped file; the caller holds `_writers`. Searches go on in the file."""
        if not self._mapped:
            return
        swig: Any = faiss
        old: Any = self._index.invlists
        new = swig.ArrayInvertedLists(self._index.nlist, self._index.code_size)
        for number in range(self._index.nlist):
            size = old.list_size(number)
            if size:
                new.add_entries(number, size, old.get_ids(number), old.get_codes(number))
        with self._lock.writing():
            self._index.replace_invlists(new, True)
            new.this.disown()  # the FAISS index frees it
        self._mapped = False


def _keys_of(raw: Any) -> Keys:
    swig: Any = faiss
    lists = raw.invlists
    found = [np.empty(0, np.int64)]
    for number in range(raw.nlist):
        size = lists.list_size(number)
        if size:
            found.append(swig.rev_swig_ptr(lists.get_ids(number), size).copy())
    keys = np.concatenate(found)
    keys.sort()
    return keys
