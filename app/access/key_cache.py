"""Caches authenticated keys and sessions for 0.5 s, so that most requests need no SQL and no other thread."""

import threading
import time
from collections.abc import Callable

from cachetools import TTLCache

from app.types import Principal

FRESH_SECONDS = 0.5
"""Lifetime of an entry, and so the delay until changes by another process count. Changes by this one count at once."""

_CAPACITY = 10_000


class KeyCache:
    """Principals by the digest of their secret. Failed lookups are not cached, so guessed keys cannot fill it.

    Any change of keys, users, tenants or sessions begins a new epoch. It drops all entries, and the result of a lookup
    that began before it is not stored. Safe to use from any thread.

    Example:
        >>> cache = KeyCache()
        >>> epoch = cache.epoch
        >>> cache.store(digest, keys.authenticate(secret), epoch=epoch)
        >>> cache.find(digest)
        Principal(tenant_id='default', ...)
    """

    def __init__(self, *, capacity: int = _CAPACITY, clock: Callable[[], float] = time.monotonic) -> None:
        self._lock = threading.Lock()
        self._entries: TTLCache[str, Principal, float] = TTLCache(capacity, FRESH_SECONDS, timer=clock)
        self._epoch = 0

    @property
    def epoch(self) -> int:
        """The number of the current epoch; read it before a lookup and pass it to `store` with the result."""
        return self._epoch

    def __len__(self) -> int:
        with self._lock:
            return len(self._entries)

    def find(self, digest: str) -> Principal | None:
        """The cached principal; None on a miss."""
        with self._lock:
            return self._entries.get(digest)

    def store(self, digest: str, principal: Principal, *, epoch: int) -> None:
        """Cache the result of a lookup that began in `epoch`; a full cache evicts the least recently used entry."""
        with self._lock:
            if epoch == self._epoch:
                self._entries[digest] = principal

    def invalidate(self) -> None:
        """Drop every entry, because keys, users, tenants or sessions have changed."""
        with self._lock:
            self._epoch += 1
            self._entries.clear()
