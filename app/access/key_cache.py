"""Whose secrets are known to be good, for half a second: a request then needs no SQL and no other thread."""

import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

from app.types import Principal

FRESH_SECONDS = 0.5
"""How long a change that another process made may go unnoticed. This process's own changes count at once."""

_MOST = 10_000


@dataclass(frozen=True, slots=True)
class _Entry:
    principal: Principal
    epoch: int
    until: float


class KnownPrincipals:
    """Principals by the digest of their secret. Only good ones are kept, so strangers cannot fill it.

    Any change of keys, users, tenants or sessions begins an epoch, and what was read in an earlier one is not used:
    also not what was read before the change and arrives after it. Safe to use from any thread.
    """

    def __init__(self, *, most: int = _MOST, clock: Callable[[], float] = time.monotonic) -> None:
        self._most = most
        self._clock = clock
        self._lock = threading.Lock()
        self._entries: OrderedDict[str, _Entry] = OrderedDict()
        self._epoch = 0

    @property
    def epoch(self) -> int:
        """To be read before the lookup whose result is handed to `keep`."""
        return self._epoch

    def __len__(self) -> int:
        return len(self._entries)

    def find(self, digest: str) -> Principal | None:
        """The principal, None where it has to be looked up."""
        with self._lock:
            entry = self._entries.get(digest)
            if entry is None:
                return None
            if entry.epoch == self._epoch and self._clock() < entry.until:
                return entry.principal
            del self._entries[digest]
            return None

    def keep(self, digest: str, principal: Principal, *, epoch: int) -> None:
        """Remember what a lookup found that began in `epoch`; the oldest entry makes room."""
        with self._lock:
            if epoch != self._epoch:
                return
            self._entries[digest] = _Entry(principal, epoch, self._clock() + FRESH_SECONDS)
            self._entries.move_to_end(digest)
            if len(self._entries) > self._most:
                self._entries.popitem(last=False)

    def forget(self) -> None:
        """Something changed: look everybody up again."""
        with self._lock:
            self._epoch += 1
            self._entries.clear()
