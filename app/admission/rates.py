"""What keys and tenants may take, counted in memory: requests and tokens a minute, and requests at once."""

import math
import threading
import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from threading import Lock
from typing import Protocol

import sqlalchemy as sa
from limits import RateLimitItemPerMinute
from limits.strategies import MovingWindowRateLimiter

from app.admission.types import WINDOW_S, Quota, Standing
from app.admission.windows import Entry as Taken
from app.admission.windows import Windows
from app.errors import RateLimited
from app.types import Operation, Principal, Reservation
from app.usage.ledger.entry import ADJUSTMENT, Entry

_REQUESTS, _TOKENS, _CONCURRENT = "requests", "tokens", "concurrent-requests"
_SAID = {
    _REQUESTS: "{whose} may make {limit} requests a minute, and has.",
    _TOKENS: "{whose} may use {limit} tokens a minute, and has no room for this request.",
    _CONCURRENT: "{whose} may have {limit} requests at work at once, and has.",
}
_WHOSE = {"key": "This key", "tenant": "Your tenant"}


class _Minute(RateLimitItemPerMinute):
    """So much a minute; what was taken counts on when the limit becomes another."""

    def key_for(self, *identifiers: object) -> str:
        return "/".join(map(str, identifiers))


class Quotas(Protocol):
    """Who may take what."""

    def of_key(self, principal: Principal) -> Quota:
        """The quota of the caller's key."""
        ...

    def of_tenant(self, principal: Principal) -> Quota:
        """The quota of all of the caller's tenant."""
        ...


@dataclass(frozen=True, slots=True)
class Tokens:
    """Tokens that a call has taken: an entry in the window of each limit that counts them."""

    entries: tuple[tuple[str, Taken], ...]
    amount: int


class Rates:
    """Counts what callers take. Every method may be called from any thread; `clock` gives seconds."""

    def __init__(self, quotas: Quotas, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._quotas = quotas
        self._clock = clock
        self._windows = Windows(clock=clock)
        self._moving = MovingWindowRateLimiter(self._windows)
        self._concurrent: Counter[str] = Counter()
        self._lock = threading.Lock()  # checks and counts are one act

    def begin(self, principal: Principal, *, room: Callable[[], None] = lambda: None) -> Callable[[], None]:
        """Count a request that begins now; the result is called, once, when it has ended.

        `room` is called between the check and the count; when it raises nothing was counted.

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
                    self._moving.hit(_Minute(quota.requests_per_minute), name, _REQUESTS)

        def end() -> None:
            with self._lock:
                for _, name, _ in scopes:
                    self._concurrent[name] -= 1
                    if not self._concurrent[name]:
                        del self._concurrent[name]

        return end

    def take(self, principal: Principal, amount: int) -> Tokens | None:
        """Count the most tokens a call can take, before it is made; None where nothing limits them.

        Raises:
            RateLimited: A limit has no room for so many. Nothing was counted.
        """
        with self._lock:
            limited = [
                (kind, name, quota.tokens_per_minute)
                for kind, name, quota in self._scopes(principal)
                if quota.tokens_per_minute is not None
            ]
            for kind, name, limit in limited:
                if not self._moving.test(_Minute(limit), name, _TOKENS, cost=amount):
                    raise self._refusal(kind, name, _TOKENS, limit, amount)
            entries = []
            for _, name, limit in limited:
                window = _Minute(limit).key_for(name, _TOKENS)
                entry = self._windows.enter(window, limit, WINDOW_S, amount)
                assert entry is not None, "checked under the same lock"
                entries.append((window, entry))
        return Tokens(tuple(entries), amount) if entries else None

    def correct(self, tokens: Tokens, amount: int) -> None:
        """A call that had taken `tokens` has used `amount`: what it did not use is free again."""
        for window, entry in tokens.entries:
            self._windows.correct(window, entry, amount - tokens.amount)

    def standings(self, principal: Principal) -> tuple[Standing, ...]:
        """Where the caller stands in each limit that applies, those of the key first."""
        with self._lock:
            return tuple(
                self._standing(kind, name, unit, limit)
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
            if unit == _CONCURRENT:
                fits = self._concurrent.get(name, 0) < limit
            else:
                fits = self._moving.test(_Minute(limit), name, unit)
            if not fits:
                raise self._refusal(kind, name, unit, limit, 1)

    def _standing(self, kind: str, name: str, unit: str, limit: int) -> Standing:
        if unit == _CONCURRENT:
            left = max(0, limit - self._concurrent.get(name, 0))
            return Standing(name=f"{kind}-{unit}", unit=unit, limit=limit, remaining=left, window_s=None, reset_s=0)
        stats = self._moving.get_window_stats(_Minute(limit), name, unit)
        reset = stats.reset_time - self._clock() if stats.remaining < limit else 0
        return Standing(
            name=f"{kind}-{unit}",
            unit=unit,
            limit=limit,
            remaining=max(0, stats.remaining),
            window_s=WINDOW_S,
            reset_s=max(0, math.ceil(reset)),
        )

    def _refusal(self, kind: str, name: str, unit: str, limit: int, amount: int) -> RateLimited:
        wait = 1.0
        if unit != _CONCURRENT:
            wait = self._windows.seconds_until(_Minute(limit).key_for(name, unit), limit, WINDOW_S, amount)
        return RateLimited(
            _SAID[unit].format(whose=_WHOSE[kind], limit=limit),
            name=f"{kind}-{unit}",
            limit=limit,
            window_s=None if unit == _CONCURRENT else WINDOW_S,
            retry_after_s=max(1, math.ceil(wait)),
        )


def _limits(quota: Quota) -> Iterator[tuple[str, int]]:
    for unit, limit in (
        (_REQUESTS, quota.requests_per_minute),
        (_TOKENS, quota.tokens_per_minute),
        (_CONCURRENT, quota.concurrent_requests),
    ):
        if limit is not None:
            yield unit, limit


_MOST_OPEN = 100_000  # calls that were reserved and not settled


class TokenBook:
    """A `Book` that keeps nothing: the most a call can take is counted when it is reserved, what it took when it ends.

    Ingestion is not counted: it has no caller who waits, and its pace is the worker's. A transaction that fails after
    this book leaves its tokens counted until they leave the window.
    """

    def __init__(self, rates: Rates) -> None:
        self._rates = rates
        self._open: OrderedDict[str, Tokens] = OrderedDict()
        self._lock = Lock()

    def reserve_in(
        self,
        connection: sa.Connection,  # noqa: ARG002 - the port's
        reservation: Reservation,
        *,
        at: int,  # noqa: ARG002 - the port's
        most_pico: int | None,  # noqa: ARG002 - the port's
    ) -> None:
        """See `Book.reserve_in`.

        Raises:
            RateLimited: A limit has no room for the call.
        """
        if reservation.operation is Operation.EMBED_DOC:
            return
        most = reservation.input_tokens + reservation.max_output_tokens
        taken = self._rates.take(reservation.principal, most)
        if taken is not None:
            with self._lock:
                self._open[reservation.event_id] = taken
                while len(self._open) > _MOST_OPEN:
                    self._open.popitem(last=False)

    def settle_in(self, connection: sa.Connection, entry: Entry) -> None:  # noqa: ARG002 - the port's
        """See `Book.settle_in`."""
        if entry.status == ADJUSTMENT:
            return
        with self._lock:
            taken = self._open.pop(entry.event_id, None)
        if taken is not None:
            self._rates.correct(taken, entry.input_tokens + entry.output_tokens)
