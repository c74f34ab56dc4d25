"""A frozen set of chunk keys that a search may return, in the forms that indexes read."""

from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

# A bitmap pays off while it takes at most 8 bytes a key, as the key itself does.
_SPARSEST = 64
_SMALL = 1 << 20  # keys below this make a bitmap of at most 128 KiB, always acceptable


class KeySet:
    """Sorted distinct int64 keys, never changed once made; safe to share between threads and to cache."""

    def __init__(self, keys: npt.NDArray[np.int64]) -> None:
        """The keys of `(n,)`, in any order; the array is copied unless it can be kept as it is."""
        given = np.asarray(keys, dtype=np.int64)
        if given.ndim != 1:
            raise ValueError(f"keys must be one row, got shape {given.shape}")
        rising = bool((given[1:] > given[:-1]).all())
        self._keys = given if rising and not given.flags.writeable else given.copy() if rising else np.unique(given)
        self._keys.flags.writeable = False

    @classmethod
    def of_runs(cls, firsts: npt.NDArray[np.int64], counts: npt.NDArray[np.int64]) -> "KeySet":
        """The union of the ranges `[first, first + count)`, which must not overlap."""
        order = np.argsort(firsts)
        firsts, counts = firsts[order], counts[order]
        before = np.cumsum(counts) - counts
        keys = np.repeat(firsts - before, counts) + np.arange(int(counts.sum()))
        keys.flags.writeable = False
        return cls(keys)

    def __len__(self) -> int:
        return len(self._keys)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, KeySet) and np.array_equal(self._keys, other._keys)

    def __hash__(self) -> int:
        return hash(self._keys.tobytes())

    @property
    def keys(self) -> npt.NDArray[np.int64]:
        """`(n,)` sorted ascending, read-only."""
        return self._keys

    @property
    def dtype(self) -> np.dtype[Any]:
        """Always int64."""
        return self._keys.dtype

    def tolist(self) -> list[int]:
        """The keys as Python integers, ascending."""
        found: list[int] = self._keys.tolist()
        return found

    @cached_property
    def bitmap(self) -> npt.NDArray[np.uint8] | None:
        """Bit `key & 7` of byte `key >> 3` says whether `key` is in; `None` when the keys are too sparse.

        Keys are row ids, so they are dense: a million take 125 kB, and the bits are read in a few
        nanoseconds. Negative keys have no bit. Made at first use; two threads may both make it.
        """
        held = self._keys[np.searchsorted(self._keys, 0) :]
        top = int(held[-1]) if len(held) else 0
        if top >= max(_SMALL, _SPARSEST * len(held)):
            return None
        bits = np.zeros(top + 1, dtype=bool)
        bits[held] = True
        return np.packbits(bits, bitorder="little")

    def contains(self, keys: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
        """`(m,)`: which of `keys` are in."""
        if not len(self._keys):
            return np.zeros(len(keys), dtype=bool)
        places = np.minimum(np.searchsorted(self._keys, keys), len(self._keys) - 1)
        found: npt.NDArray[np.bool_] = self._keys[places] == keys
        return found

    def plus(self, keys: npt.NDArray[np.int64]) -> "KeySet":
        """With `keys` added; itself when all are in."""
        new = KeySet(keys[~self.contains(keys)])
        if not len(new):
            return self
        if len(self) and new.keys[0] < self._keys[-1]:
            merged = np.sort(np.concatenate([self._keys, new.keys]), kind="stable")
        else:  # keys are handed out ascending, so new ones nearly always come last
            merged = np.concatenate([self._keys, new.keys])
        merged.flags.writeable = False
        return KeySet(merged)

    def minus(self, keys: npt.NDArray[np.int64]) -> "KeySet":
        """Without `keys`; itself when none is in."""
        gone = keys[self.contains(keys)]
        if not len(gone):
            return self
        left = np.delete(self._keys, np.searchsorted(self._keys, gone))
        left.flags.writeable = False
        return KeySet(left)


NO_KEYS = KeySet(np.empty(0, np.int64))
