"""Which quota applies to whom: what administrators set, or the default of the settings."""

import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from threading import Lock

from app.admission.types import Override, Quota
from app.errors import AppError
from app.telemetry.logs import logger
from app.types import Principal

STALE_S = 0.5
"""After so many seconds what administrators set is read again."""

_TOO_OLD_S = 1.0


class OverriddenQuotas:
    """Overrides in memory, read again by whoever asks; nothing is read while nobody does.

    A change made in this process holds at once, one made by another process within a second. Every method may be
    called from any thread. `read` gives all overrides; `clock` seconds.
    """

    def __init__(
        self,
        read: Callable[[], tuple[Override, ...]],
        *,
        key: Quota,
        tenant: Quota,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._read = read
        self._key, self._tenant = key, tenant
        self._clock = clock
        self._set: Mapping[tuple[str, str], Quota] = {}
        self._read_at = float("-inf")
        self._reading: Future[None] | None = None
        self._reader = ThreadPoolExecutor(1, thread_name_prefix="footnote-quotas")
        self._lock = Lock()

    @property
    def defaults(self) -> tuple[Quota, Quota]:
        """Of a key and of a tenant for whom nothing was set."""
        return self._key, self._tenant

    def of_key(self, principal: Principal) -> Quota:
        """The quota of the caller's key."""
        return self._set.get(("key", principal.key_id), self._key)

    def of_tenant(self, principal: Principal) -> Quota:
        """The quota of all of the caller's tenant."""
        return self._set.get(("tenant", principal.tenant_id), self._tenant)

    def refreshed(self) -> Future[None] | None:
        """Read again what is stale, in a thread of its own; a future to wait for where it is too old to be used."""
        with self._lock:
            age = self._clock() - self._read_at
            if age < STALE_S:
                return None
            if self._reading is None:
                self._reading = self._reader.submit(self.refresh)
            return self._reading if age >= _TOO_OLD_S else None

    def refresh(self) -> None:
        """Read all overrides now. What cannot be read stays as it was, and the log tells."""
        began = self._clock()
        try:
            found = {(item.scope_type, item.scope_id): item.quota for item in self._read()}
        except AppError as error:
            logger().warning("quotas.unread", error=type(error).__name__)
            found = dict(self._set)
        with self._lock:
            if began >= self._read_at:
                self._set, self._read_at = found, began
            self._reading = None

    def close(self) -> None:
        """Read no more."""
        self._reader.shutdown()
