"""Caches authenticated keys and sessions for 0.5 s, so that most requests need no SQL and no other thread."""

import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

from app.types import Principal

FRESH_SECONDS = 0.5
"""Lifetime of an entry, and so the delay until changes by another process count. Changes by this one count at once."""

_CAPACITY = 10_000


@dataclass(frozen=True, slots=True)
class _Entry:
    principal: Principal
    epoch: int
    until: float


class KeyCache:
    """Principals by the digest of their secret. Failed lookups are not cached, so guessed keys cannot fill it.

    Any change of keys, users, tenants or sessions begins a new epoch. Entries of earlier epochs are not used, and the
    result of a lookup that began before the change is not stored. Safe to use from any thread.

    Example:
        >>> cache = KeyCache()
        >>> epoch = cache.epoch
        >>> cache.store(digest, keys.authenticate(secret), epoch=epoch)
        >>> cache.find(digest)
        Principal(tenant_id='default', ...)
    """

    def __init__(self, *, capacity: int = _CAPACITY, clock: Callable[[], float] = time.monotonic) -> None:
        self._capacity = capacity
        self._clock = clock
        self._lock = threading.Lock()
        self._entries: OrderedDict[str, _Entry] = OrderedDict()
        self._epoch = 0

    @property
    def epoch(self) -> int:
        """The number of the current epoch; read it before a lookup and pass it to `store` with the result."""
        return self._epoch

    def __len__(self) -> int:
        return len(self._entries)

    def find(self, digest: str) -> Principal | None:
        """The cached principal; None on a miss."""
        with self._lock:
            entry = self._entries.get(digest)
            if entry is None:
                return None
            if entry.epoch == self._epoch and self._clock() < entry.until:
                return entry.principal
            del self._entries[digest]
            return None

    def store(self, digest: str, principal: Principal, *, epoch: int) -> None:
        """Cache the result of a lookup that began in `epoch`; the oldest entry is evicted when the cache is full."""
        with self._lock:
            if epoch != self._epoch:
                return
            self._entries[digest] = _Entry(principal, epoch, self._clock() + FRESH_SECONDS)
            self._entries.move_to_end(digest)
            if len(self._entries) > self._capacity:
                self._entries.popitem(last=False)

    def invalidate(self) -> None:
        """Drop every entry, because keys, users, tenants or sessions have changed."""
        with self._lock:
            self._epoch += 1
            self._entries.clear()
