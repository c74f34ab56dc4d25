"""Vector search with a copy of the index on a GPU: the GPU finds candidates, the index in memory rescores them."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from threading import Lock
from typing import TypeAlias

import numpy as np

from retrieval.device_copy import MOST, DeviceCopy, Transfer
from retrieval.flat_index import FlatIndex
from retrieval.fusion import Scores, best
from retrieval.inverted_index import InvertedIndex
from retrieval.key_set import NO_KEYS, KeySet
from retrieval.ports import Keys, Vectors
from retrieval.vectors import check_query

REFRESH_AFTER = 4096  # changes; so many recent vectors are compared one by one in a fraction of a millisecond
_SPARE = 1.3  # neighbours fetched for each one needed by the filter's share
_ROUNDING = 1e-5  # of scores of unit vectors, between one processor's sums and another's

_Source: TypeAlias = FlatIndex | InvertedIndex


@dataclass(frozen=True, slots=True)
class _Device:
    """The copy on the device and the changes since it was made.

    A key of `held` that was removed or replaced is in `gone`; vectors added or replaced since are in
    `recent`, which is written to in place. `copy` is None while the device does not serve.
    """

    copy: DeviceCopy | None
    held: KeySet
    gone: KeySet
    recent: FlatIndex


class DeviceIndex:
    """Implements `VectorIndex` over another one, the source, of which a copy lies on a device.

    The source in memory is authoritative: it is written first, saved, and used for everything the device
    lacks. A search fetches more neighbours than requested from the copy, leaves out those that
    are not allowed or gone, adds those of the recent changes, and takes the final scores from the
    source, so that they do not depend on where a search ran. It doubles what it fetches until enough
    are left or everything was seen. The source answers alone where

    * the filter is so narrow that more than `MOST` neighbours would be expected to hold `k` allowed ones,
    * doubling exceeds `MOST`, or the lists read hold too few,
    * the device has failed; `report` is called, and the next refresh tries again.

    The copy is never written to. After `refresh_after` changes the writer makes another.
    """

    def __init__(
        self,
        source: _Source,
        *,
        transfer: Transfer,
        report: Callable[[Exception], None],
        refresh_after: int = REFRESH_AFTER,
    ) -> None:
        """Copy `source` to the device. From here on it is written to through this index alone.

        Args:
            source: The index in memory.
            transfer: Makes a copy of its FAISS index on the device.
            report: Called when the device fails or is full; the source answers from then on.
            refresh_after: Keys added or removed before the copy is made anew.
        """
        assert refresh_after >= 1, "a copy is worth at least one search"
        self._source = source
        self._transfer = transfer
        self._report = report
        self._refresh_after = refresh_after
        self._writing = Lock()
        self._changed = 0
        self._device = self._without_copy()
        with self._writing:
            self._refresh()

    def __len__(self) -> int:
        return len(self._source)

    @property
    def on_device(self) -> bool:
        """Whether the device answers searches; otherwise the index in memory does."""
        return self._device.copy is not None

    def keys(self) -> Keys:
        """Every key held, sorted ascending."""
        return self._source.keys()

    def add(self, keys: Keys, vectors: Vectors) -> None:
        """Add `(n,)` keys with `(n, dim)` rows. A key already held is replaced.

        Raises:
            ValueError: The shapes do not match, a key comes twice, or a number is not finite.
        """
        with self._writing:
            self._source.add(keys, vectors)
            device = self._device
            if device.copy is not None and len(keys):
                device.recent.add(keys, vectors)  # before `gone` grows: a search may see both, never neither
            self._leave_out(keys)
            self._count(len(keys))

    def remove(self, keys: Keys) -> int:
        """Remove keys, ignoring unknown ones; returns how many were held."""
        with self._writing:
            removed = self._source.remove(keys)
            if removed:
                self._leave_out(keys)
                self._device.recent.remove(keys)
                self._count(removed)
        return removed

    def search(self, query: Vectors, *, k: int, allowed: KeySet | None) -> list[tuple[int, float]]:
        """At most `k` (key, inner product) of the allowed keys, best first, ties by key ascending.

        Raises:
            ValueError: `query` is not `(dim,)` finite numbers, or `k` is negative.
        """
        check_query(query, k=k, dim=self._source.dim)
        most = len(self._source) if allowed is None else min(len(self._source), len(allowed))
        if not k or not most:
            return []
        row = np.ascontiguousarray(query, dtype=np.float32)
        found = self._search_device(self._device, row, k=k, allowed=allowed)
        # Fewer than there may be: too few in the lists read, keys allowed but not held, or removed while this ran.
        if found is None or len(found) < min(k, most):
            return self._source.search(query, k=k, allowed=allowed)
        return found

    def close(self) -> None:
        """Give the device's memory back; the source answers from here on."""
        with self._writing:
            self._replace(self._without_copy())

    def _search_device(
        self, device: _Device, row: Vectors, *, k: int, allowed: KeySet | None
    ) -> list[tuple[int, float]] | None:
        """Searches the device; None where the index in memory must answer."""
        enough = self._source.candidates(k)
        fetched = self._fetch(device, row, k=k, enough=enough, allowed=allowed)
        if fetched is None:
            return None
        scores, keys = fetched
        recent = device.recent.search(row, k=enough, allowed=allowed)
        if recent:
            keys = np.concatenate([np.array([key for key, _ in recent], np.int64), keys])
            scores = np.concatenate([np.array([score for _, score in recent], np.float32), scores])
            keys, first = np.unique(keys, return_index=True)  # of a key in both, the recent one
            scores = scores[first]
        scores, keys = self._source.rescored(row, scores, keys)
        return best(scores, keys, k=k)

    def _fetch(
        self, device: _Device, row: Vectors, *, k: int, enough: int, allowed: KeySet | None
    ) -> tuple[Scores, Keys] | None:
        """`enough` of the allowed keys in the copy, or all in the lists read; None where the source should answer."""
        held = len(device.held)
        if not held:
            return None
        share = 1.0 if allowed is None else min(1.0, len(allowed) / held)
        probes = self._source.probes(share)
        if probes > MOST:
            return None
        wanted = min(held, math.ceil(enough / share * (1.0 if allowed is None else _SPARE)))
        while wanted <= MOST:
            answer = self._ask(device, row, n=wanted, probes=probes)
            if answer is None:
                return None
            scores, keys = answer
            kept = (keys >= 0) & ~device.gone.contains(keys)
            if allowed is not None:
                kept &= allowed.contains(keys)
            found = scores[kept], keys[kept]
            # Keys not fetched score at most as the last fetched: they are not among the k best, nor tie with them.
            if len(found[0]) >= enough and scores[-1] < found[0][k - 1] - _ROUNDING:
                return found
            if wanted == held or keys[-1] < 0:  # all keys of the lists read were seen
                return found
            wanted = min(held, wanted * 2)
        return None

    def _ask(self, device: _Device, row: Vectors, *, n: int, probes: int) -> tuple[Scores, Keys] | None:
        """The candidates of the device's copy; None when there is no copy any more."""
        if device.copy is None:
            return None
        try:
            return device.copy.search(row, n=n, probes=probes)
        except (RuntimeError, MemoryError) as error:
            self._fail(device, error)
            return None

    def _leave_out(self, keys: Keys) -> None:
        """Excludes `keys` from the copy; the caller holds `_writing`."""
        device = self._device
        old = np.asarray(keys[device.held.contains(keys)], np.int64)
        self._device = replace(device, gone=device.gone.plus(old))

    def _count(self, changes: int) -> None:
        """Refreshes the copy when enough has changed; the caller holds `_writing`."""
        self._changed += changes
        if self._changed >= self._refresh_after:
            self._refresh()

    def _refresh(self) -> None:
        """Copies the source again; the caller holds `_writing`."""
        self._changed = 0
        try:
            copy, held = self._source.copied(self._transfer)
        except (RuntimeError, MemoryError) as error:
            self._replace(self._without_copy())
            self._report(error)
            return
        self._replace(_Device(copy, held=held, gone=NO_KEYS, recent=FlatIndex(self._source.dim)))

    def _replace(self, device: _Device) -> None:
        old, self._device = self._device, device
        if old.copy is not None:
            old.copy.close()

    def _fail(self, device: _Device, error: Exception) -> None:
        """Handles a device failure in a search; several searches may report the same copy."""
        with self._writing:
            if self._device.copy is not device.copy:
                return
            self._replace(self._without_copy())
        self._report(error)

    def _without_copy(self) -> _Device:
        return _Device(None, held=NO_KEYS, gone=NO_KEYS, recent=FlatIndex(self._source.dim))
