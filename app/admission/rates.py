"""Rate limits of keys and tenants, counted in memory: requests and tokens a minute, and concurrent requests."""

import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

import sqlalchemy as sa

from app.admission.scopes import CONCURRENT, REQUESTS, TOKENS, Limited, Quotas, scopes_of
from app.admission.sliding_windows import WINDOW_S, RateLimitState, SlidingWindows, WindowBucket
from app.errors import RateLimited
from app.types import Principal


@dataclass(frozen=True, slots=True)
class TokenHold:
    """Tokens counted for a call before it runs: the bucket in the window of each limit that counts them."""

    buckets: tuple[tuple[str, WindowBucket], ...]
    amount: int


class Rates:
    """Counts the requests and tokens of callers against their quotas. Safe to use from any thread.

    Counts are of this process and begin at nothing with it.

    Example:
        >>> rates = Rates(quotas)
        >>> end = rates.begin(principal)      # counts a request, or raises RateLimited
        >>> hold = rates.hold_in(connection, principal, 900) # counts the most tokens that its model call can use
        >>> rates.settle_in(connection, hold, 120)           # the call used 120: the rest is free again
        >>> end()                             # the request is no longer concurrent
    """

    def __init__(self, quotas: Quotas, *, clock: Callable[[], float] = time.monotonic) -> None:
        """`clock` gives seconds and never goes back."""
        self._quotas = quotas
        self._windows = SlidingWindows(WINDOW_S, clock=clock)
        self._concurrent: Counter[str] = Counter()
        self._lock = threading.Lock()  # a check and its count are atomic

    async def begun(self, principal: Principal, *, room: Callable[[], None] = lambda: None) -> Callable[[], None]:
        """As `begin`, for an event loop: it does not wait."""
        return self.begin(principal, room=room)

    def begin(self, principal: Principal, *, room: Callable[[], None] = lambda: None) -> Callable[[], None]:
        """Count a request that begins now. The result ends it: call it exactly once.

        `room` is called between the check and the count; if it raises, nothing is counted.

        Raises:
            RateLimited: A limit is reached. Nothing was counted.
        """
        with self._lock:
            scopes = scopes_of(self._quotas, principal)
            for scope in scopes:
                self._check(scope)
            room()
            for scope in scopes:
                self._concurrent[scope.name] += 1
                if (limit := scope.quota.requests_per_minute) is not None:
                    self._windows.take(scope.counter(REQUESTS), limit=limit)

        def end() -> None:
            with self._lock:
                for scope in scopes:
                    self._concurrent[scope.name] -= 1
                    if not self._concurrent[scope.name]:
                        del self._concurrent[scope.name]

        return end

    def hold_in(
        self,
        connection: sa.Connection,  # noqa: ARG002 - the port's
        principal: Principal,
        amount: int,
    ) -> TokenHold | None:
        """See `TokenCounts.hold_in`. Nothing is written: what was counted stays so if the transaction fails."""
        with self._lock:
            limited = [
                (scope, limit)
                for scope in scopes_of(self._quotas, principal)
                if (limit := scope.quota.tokens_per_minute) is not None
            ]
            for scope, limit in limited:
                if self._windows.used(scope.counter(TOKENS)) + amount > limit:
                    raise self._refusal(scope, TOKENS, limit, amount)
            buckets = []
            for scope, limit in limited:
                bucket = self._windows.take(scope.counter(TOKENS), amount, limit=limit)
                assert bucket is not None, "checked under the same lock"
                buckets.append((scope.counter(TOKENS), bucket))
        return TokenHold(tuple(buckets), amount) if buckets else None

    def settle_in(self, connection: sa.Connection, hold: TokenHold, used: int) -> None:  # noqa: ARG002 - the port's
        """See `TokenCounts.settle_in`."""
        for window, bucket in hold.buckets:
            self._windows.correct(window, bucket, used - hold.amount)

    def states(self, principal: Principal) -> tuple[RateLimitState, ...]:
        """The state of each limit that applies to the caller, those of the key first."""
        with self._lock:
            return tuple(
                self._state(scope, unit, limit)
                for scope in scopes_of(self._quotas, principal)
                for unit, limit in scope.limits()
            )

    def __len__(self) -> int:
        """How many names are remembered."""
        return len(self._windows) + len(self._concurrent)

    def _check(self, scope: Limited) -> None:
        for unit, limit in scope.limits():
            if self._used(scope, unit)[0] >= limit:
                raise self._refusal(scope, unit, limit, 1)

    def _state(self, scope: Limited, unit: str, limit: int) -> RateLimitState:
        used, reset_s = self._used(scope, unit)
        return scope.state(unit, limit, used=used, reset_s=reset_s)

    def _used(self, scope: Limited, unit: str) -> tuple[int, float]:
        if unit == CONCURRENT:
            return self._concurrent.get(scope.name, 0), 0.0
        return self._windows.state(scope.counter(unit))

    def _refusal(self, scope: Limited, unit: str, limit: int, amount: int) -> RateLimited:
        wait_s = 1.0
        if unit != CONCURRENT:
            wait_s = self._windows.seconds_until(scope.counter(unit), amount, limit=limit)
        return scope.refusal(unit, limit, wait_s=wait_s)
