"""Quotas of keys and tenants: an administrator's override, or the default of the settings."""

import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from threading import Lock

from app.errors import AppError
from app.telemetry.logs import logger
from app.types import Principal

STALE_S = 0.5
"""Overrides older than this, in seconds, are read again in the background."""

_EXPIRED_S = 1.0  # overrides older than this are not used before they were read again


@dataclass(frozen=True, slots=True, kw_only=True)
class Quota:
    """The most that a key, or all keys of a tenant together, may use. None is no limit."""

    requests_per_minute: int | None = None
    tokens_per_minute: int | None = None
    concurrent_requests: int | None = None


UNLIMITED = Quota()


@dataclass(frozen=True, slots=True)
class Override:
    """A quota that an administrator set in place of the default. `scope_type` is `key` or `tenant`.

    `updated_at` is Unix seconds.
    """

    scope_type: str
    scope_id: str
    tenant_id: str
    quota: Quota
    updated_at: float


class OverriddenQuotas:
    """A cache of all overrides over the default quotas. Safe to use from any thread.

    `refreshed` reads them again at most twice a second, and only when called. A change made in this process applies at
    once, one made by another process within a second.

    Example:
        >>> quotas = OverriddenQuotas(repository.all, key=Quota(requests_per_minute=60), tenant=UNLIMITED)
        >>> quotas.refresh()
        >>> quotas.of_key(principal).requests_per_minute
        60
    """

    def __init__(
        self,
        read: Callable[[], tuple[Override, ...]],
        *,
        key: Quota,
        tenant: Quota,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`read` returns all overrides, `key` and `tenant` are the defaults, and `clock` gives seconds."""
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
        """The quotas of a key and of a tenant without an override."""
        return self._key, self._tenant

    def of_key(self, principal: Principal) -> Quota:
        """The quota of the caller's key."""
        return self._set.get(("key", principal.key_id), self._key)

    def of_tenant(self, principal: Principal) -> Quota:
        """The quota of the caller's tenant, over all its keys."""
        return self._set.get(("tenant", principal.tenant_id), self._tenant)

    def refreshed(self) -> Future[None] | None:
        """Read stale overrides again in the background; returns a future to wait for if they are too old to use."""
        with self._lock:
            age = self._clock() - self._read_at
            if age < STALE_S:
                return None
            if self._reading is None:
                self._reading = self._reader.submit(self.refresh)
            return self._reading if age >= _EXPIRED_S else None

    def refresh(self) -> None:
        """Read all overrides now. If that fails, the former ones stay in force and the failure is logged."""
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
        """Stop the background thread."""
        self._reader.shutdown()
