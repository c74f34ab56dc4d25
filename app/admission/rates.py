"""Rate limits of keys and tenants, counted in memory: requests and tokens a minute, and concurrent requests."""

import math
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol

import sqlalchemy as sa
from cachetools import FIFOCache

from app.admission.quotas import Quota
from app.admission.sliding_windows import WINDOW_S, RateLimitState, SlidingWindows, WindowBucket
from app.errors import RateLimited
from app.types import Operation, Principal, Reservation
from app.usage.ledger.entry import ADJUSTMENT, Entry

_REQUESTS, _TOKENS, _CONCURRENT = "requests", "tokens", "concurrent-requests"
_MESSAGES = {
    _REQUESTS: "{subject} has reached its limit of {limit} requests a minute.",
    _TOKENS: "{subject} has a limit of {limit} tokens a minute, with too few left for this request.",
    _CONCURRENT: "{subject} has reached its limit of {limit} concurrent requests.",
}
_SUBJECTS = {"key": "This key", "tenant": "Your tenant"}
_MAX_OPEN = 100_000  # calls that are reserved and not settled


class Quotas(Protocol):
    """Port: the quotas of a caller.

    Example:
        >>> class Same:
        ...     def of_key(self, principal: Principal) -> Quota:
        ...         return Quota(requests_per_minute=60)
        ...     def of_tenant(self, principal: Principal) -> Quota:
        ...         return UNLIMITED
    """

    def of_key(self, principal: Principal) -> Quota:
        """The quota of the caller's key."""
        ...

    def of_tenant(self, principal: Principal) -> Quota:
        """The quota of the caller's tenant, over all its keys."""
        ...


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
        >>> hold = rates.hold(principal, 900) # counts the most tokens that its model call can use
        >>> rates.settle(hold, 120)           # the call used 120: the rest is free again
        >>> end()                             # the request is no longer concurrent
    """

    def __init__(self, quotas: Quotas, *, clock: Callable[[], float] = time.monotonic) -> None:
        """`clock` gives seconds and never goes back."""
        self._quotas = quotas
        self._windows = SlidingWindows(WINDOW_S, clock=clock)
        self._concurrent: Counter[str] = Counter()
        self._lock = threading.Lock()  # a check and its count are atomic

    def begin(self, principal: Principal, *, room: Callable[[], None] = lambda: None) -> Callable[[], None]:
        """Count a request that begins now. The result ends it: call it exactly once.

        `room` is called between the check and the count; if it raises, nothing is counted.

        Raises:
            RateLimited: A limit is reached. Nothing was counted.
        """
        with self._lock:
            scopes = list(self._scopes(principal))
            for kind, name, quota in scopes:
                self._check(kind, name, quota)
            room()
            for _, name, quota in scopes:
                self._concurrent[name] += 1
                if quota.requests_per_minute is not None:
                    self._windows.take(_window(name, _REQUESTS), limit=quota.requests_per_minute)

        def end() -> None:
            with self._lock:
                for _, name, _ in scopes:
                    self._concurrent[name] -= 1
                    if not self._concurrent[name]:
                        del self._concurrent[name]

        return end

    def hold(self, principal: Principal, amount: int) -> TokenHold | None:
        """Count the most tokens that a call can use, before it runs; None if no limit counts them.

        Raises:
            RateLimited: A limit has less than `amount` left. Nothing was counted.
        """
        with self._lock:
            limited = [
                (kind, name, quota.tokens_per_minute)
                for kind, name, quota in self._scopes(principal)
                if quota.tokens_per_minute is not None
            ]
            for kind, name, limit in limited:
                if self._windows.used(_window(name, _TOKENS)) + amount > limit:
                    raise self._refusal(kind, name, _TOKENS, limit, amount)
            buckets = []
            for _, name, limit in limited:
                window = _window(name, _TOKENS)
                bucket = self._windows.take(window, amount, limit=limit)
                assert bucket is not None, "checked under the same lock"
                buckets.append((window, bucket))
        return TokenHold(tuple(buckets), amount) if buckets else None

    def settle(self, hold: TokenHold, used: int) -> None:
        """Replace the amount of `hold` by the tokens that the call used."""
        for window, bucket in hold.buckets:
            self._windows.correct(window, bucket, used - hold.amount)

    def states(self, principal: Principal) -> tuple[RateLimitState, ...]:
        """The state of each limit that applies to the caller, those of the key first."""
        with self._lock:
            return tuple(
                self._state(kind, name, unit, limit)
                for kind, name, quota in self._scopes(principal)
                for unit, limit in _limits(quota)
            )

    def __len__(self) -> int:
        """How many names are remembered."""
        return len(self._windows) + len(self._concurrent)

    def _scopes(self, principal: Principal) -> Iterator[tuple[str, str, Quota]]:
        yield "key", f"key/{principal.tenant_id}/{principal.key_id}", self._quotas.of_key(principal)
        yield "tenant", f"tenant/{principal.tenant_id}", self._quotas.of_tenant(principal)

    def _check(self, kind: str, name: str, quota: Quota) -> None:
        for unit, limit in _limits(quota):
            concurrent = unit == _CONCURRENT
            used = self._concurrent.get(name, 0) if concurrent else self._windows.used(_window(name, unit))
            if used >= limit:
                raise self._refusal(kind, name, unit, limit, 1)

    def _state(self, kind: str, name: str, unit: str, limit: int) -> RateLimitState:
        concurrent = unit == _CONCURRENT
        used, reset_s = (self._concurrent.get(name, 0), 0.0) if concurrent else self._windows.state(_window(name, unit))
        return RateLimitState(
            name=f"{kind}-{unit}",
            unit=unit,
            limit=limit,
            remaining=max(0, limit - used),
            window_s=None if concurrent else WINDOW_S,
            reset_s=max(0, math.ceil(reset_s)) if used else 0,
        )

    def _refusal(self, kind: str, name: str, unit: str, limit: int, amount: int) -> RateLimited:
        wait = 1.0
        if unit != _CONCURRENT:
            wait = self._windows.seconds_until(_window(name, unit), amount, limit=limit)
        return RateLimited(
            _MESSAGES[unit].format(subject=_SUBJECTS[kind], limit=limit),
            name=f"{kind}-{unit}",
            limit=limit,
            window_s=None if unit == _CONCURRENT else WINDOW_S,
            retry_after_s=max(1, math.ceil(wait)),
        )


def _window(name: str, unit: str) -> str:
    """The name of a window; without the limit, so that a changed limit counts what was used before."""
    return f"{name}/{unit}"


def _limits(quota: Quota) -> Iterator[tuple[str, int]]:
    for unit, limit in (
        (_REQUESTS, quota.requests_per_minute),
        (_TOKENS, quota.tokens_per_minute),
        (_CONCURRENT, quota.concurrent_requests),
    ):
        if limit is not None:
            yield unit, limit


class TokenLimiter:
    """A `LedgerObserver` that counts the tokens of calls against `tokens_per_minute`.

    A reserved call counts with the most it can use, a settled one with what it used. Ingestion is not counted: no
    caller waits for it, and the worker sets its pace. If the transaction fails later, the tokens of a reservation stay
    counted until they leave the window.
    """

    def __init__(self, rates: Rates) -> None:
        self._rates = rates
        self._open: FIFOCache[str, TokenHold] = FIFOCache(_MAX_OPEN)
        self._lock = threading.Lock()

    def reserve_in(
        self,
        connection: sa.Connection,  # noqa: ARG002 - the port's
        reservation: Reservation,
        *,
        at: int,  # noqa: ARG002 - the port's
        most_pico: int | None,  # noqa: ARG002 - the port's
    ) -> None:
        """See `LedgerObserver.reserve_in`.

        Raises:
            RateLimited: A limit has no room for the call.
        """
        if reservation.operation is Operation.EMBED_DOC:
            return
        hold = self._rates.hold(reservation.principal, reservation.input_tokens + reservation.max_output_tokens)
        if hold is not None:
            with self._lock:
                self._open[reservation.event_id] = hold

    def settle_in(self, connection: sa.Connection, entry: Entry) -> None:  # noqa: ARG002 - the port's
        """See `LedgerObserver.settle_in`."""
        if entry.status == ADJUSTMENT:
            return
        with self._lock:
            hold = self._open.pop(entry.event_id, None)
        if hold is not None:
            self._rates.settle(hold, entry.measures.total_tokens)
