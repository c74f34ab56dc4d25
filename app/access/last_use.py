"""The times at which keys were last used: kept in memory, and stored once a minute."""

import threading
from collections.abc import Callable, Mapping

from app.types import Principal

INTERVAL_S = 60.0
"""Seconds between two times of storing, and so the precision of what is stored."""


class LastUses:
    """Collects uses of keys, so that a request costs no write. Safe to use from any thread.

    A crash loses the uses of the last minute.

    Example:
        >>> uses = LastUses(keys.note_uses, clock=time.time)
        >>> uses.seen(principal)
        >>> uses.flush()
    """

    def __init__(self, store: Callable[[Mapping[str, float]], None], *, clock: Callable[[], float]) -> None:
        """`store` gets Unix seconds by key id."""
        self._store = store
        self._clock = clock
        self._lock = threading.Lock()
        self._pending: dict[str, float] = {}

    def seen(self, principal: Principal) -> None:
        """Note that the principal's key is used now. Principals without a key in the database are stored nowhere."""
        with self._lock:
            self._pending[principal.key_id] = self._clock()

    def flush(self) -> None:
        """Store what was noted since the last time; after a failure it is stored the next time.

        Raises:
            StoreUnavailable, StorageFull: As `Database.write`.
        """
        with self._lock:
            pending, self._pending = self._pending, {}
        if not pending:
            return
        try:
            self._store(pending)
        except BaseException:
            with self._lock:
                self._pending = {**pending, **self._pending}
            raise
