"""Rate limits of keys and tenants, counted in the database that several processes share: exact over all of them.

A caller without a limit costs nothing: the database is asked only where a limit is set. A limit that is set while
requests run counts those that begin after it.
"""

import asyncio
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from threading import Lock

import sqlalchemy as sa
from cachetools import LRUCache

from app.admission.rate_rows import Counted, Look, RateRows
from app.admission.scopes import CONCURRENT, REQUESTS, TOKENS, Limited, Quotas, scopes_of
from app.admission.sliding_windows import RateLimitState
from app.db.session import Database
from app.errors import RateLimited, StorageFull, StoreUnavailable
from app.ids import new_id
from app.telemetry.logs import logger
from app.types import Principal

_THREADS = 8  # of the database's 30 connections
_LOOKS_AGAIN_S = 0.05
_MAX_SEEN = 20_000  # counters of which the last state is remembered


@dataclass(frozen=True, slots=True)
class SharedHold:
    """Tokens counted for a call before it runs, in one grain of each counter."""

    counters: tuple[str, ...]
    grain: int
    amount: int


@dataclass(frozen=True, slots=True)
class _Request:
    """A request that was counted: its seat, empty where no limit needs one, and where it counts as a request."""

    seat_id: str
    counters: tuple[str, ...]
    grain: int


@dataclass(frozen=True, slots=True)
class _LastLook:
    """A counter as this process last saw it, at a second of its monotonic clock."""

    counted: Counted
    at: float


class SharedRates:
    """Counts the requests and tokens of callers in the database of all processes. Safe to use from any thread.

    Requests are counted by threads of its own, in a transaction each; tokens in that of the ledger. Locks are taken in
    one order, the key's before the tenant's, those of requests and those of tokens apart: a request at the door does
    not wait for a call that is being reserved.

    Example:
        >>> rates = SharedRates(quotas, database, boot_id="boot_1")
        >>> end = await rates.begun(principal)
        >>> end()
        >>> rates.close()
    """

    def __init__(
        self,
        quotas: Quotas,
        database: Database,
        *,
        boot_id: str,
        rows: RateRows | None = None,
        monotonic: Callable[[], float] = time.monotonic,
        looks_again_s: float = _LOOKS_AGAIN_S,
    ) -> None:
        """Start nothing yet.

        Args:
            quotas: Of callers.
            database: Of all processes.
            boot_id: This process, to which its seats belong: they are free when it is buried.
            rows: The counters; by the database's clock if None.
            monotonic: Seconds by which the states that `states` returns grow older.
            looks_again_s: After so many seconds a request that no seat was free for looks once more: the caller may
                have read the end of an answer whose seat is being given back.
        """
        self._quotas = quotas
        self._database = database
        self._boot_id = boot_id
        self._rows = RateRows() if rows is None else rows
        self._monotonic = monotonic
        self._looks_again_s = looks_again_s
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="footnote-rates")
        self._seen: LRUCache[str, _LastLook] = LRUCache(_MAX_SEEN)
        self._left: set[str] = set()  # seats that are to be given back
        self._lock = Lock()

    async def begun(self, principal: Principal, *, room: Callable[[], None] = lambda: None) -> Callable[[], None]:
        """See `RequestCounts.begun`. A request for which there is no room was counted for a moment."""
        scopes = scopes_of(self._quotas, principal)
        if not any(True for scope in scopes for _ in scope.limits()):
            room()
            return _nothing
        try:
            request = await self._counted(scopes)
        except RateLimited as refusal:
            if refusal.window_s is not None:
                raise
            await asyncio.sleep(self._looks_again_s)
            request = await self._counted(scopes)
        try:
            room()
        except BaseException:
            self._threads.submit(self._take_back, request)
            raise
        return lambda: self._ended(request)

    def hold_in(self, connection: sa.Connection, principal: Principal, amount: int) -> SharedHold | None:
        """See `TokenCounts.hold_in`. The counters are locked until the transaction ends, and count what it commits."""
        limited = [
            (scope, limit)
            for scope in scopes_of(self._quotas, principal)
            if (limit := scope.quota.tokens_per_minute) is not None
        ]
        if not limited:
            return None
        counters = tuple(scope.counter(TOKENS) for scope, _ in limited)
        look = self._rows.look_in(connection, counters, locks=counters)
        self._note(counters, look)
        for scope, limit in limited:
            if look.of(scope.counter(TOKENS)).used + amount > limit:
                raise self._refused(connection, look, scope, TOKENS, limit, amount)
        self._rows.add_in(connection, counters, amount, grain=look.grain)
        self._note(counters, look, more=amount)
        return SharedHold(counters, look.grain, amount)

    def settle_in(self, connection: sa.Connection, hold: SharedHold, used: int) -> None:
        """See `TokenCounts.settle_in`."""
        change = used - hold.amount
        self._rows.correct_in(connection, hold.counters, change, grain=hold.grain)
        with self._lock:
            for counter in hold.counters:
                if (seen := self._seen.get(counter)) is not None:
                    left = max(0, seen.counted.used + change)
                    self._seen[counter] = _LastLook(Counted(left, seen.counted.reset_s), seen.at)

    def states(self, principal: Principal) -> tuple[RateLimitState, ...]:
        """The state of each limit of the caller, those of the key first, as this process last saw it."""
        with self._lock:
            return tuple(
                self._state(scope, unit, limit)
                for scope in scopes_of(self._quotas, principal)
                for unit, limit in scope.limits()
            )

    def close(self) -> None:
        """End the threads, once the seats of requests that ended are given back."""
        self._threads.shutdown()
        self._give_back()

    async def _counted(self, scopes: Sequence[Limited]) -> _Request:
        """Count a request in a thread."""
        counting = self._threads.submit(self._begin, scopes)
        try:
            return await asyncio.wrap_future(counting)
        except asyncio.CancelledError:
            counting.add_done_callback(self._abandoned)
            raise

    def _begin(self, scopes: Sequence[Limited]) -> _Request:
        """Count a request, in a transaction; raises as `RequestCounts.begun`."""
        self._give_back()
        limits = [(scope, unit, limit) for scope in scopes for unit, limit in scope.limits()]
        counters = [scope.counter(unit) for scope, unit, _ in limits]
        requests = tuple(scope.counter(unit) for scope, unit, _ in limits if unit == REQUESTS)
        seats = tuple(scope.counter(unit) for scope, unit, _ in limits if unit == CONCURRENT)
        adding = {scope.name: True for scope, unit, _ in limits if unit != TOKENS}
        seat_id = new_id("seat") if seats else ""
        try:
            with self._database.write() as connection:
                look = self._rows.look_in(connection, counters, locks=tuple(adding))
                self._note(counters, look)
                for scope, unit, limit in limits:
                    if look.of(scope.counter(unit)).used >= limit:
                        raise self._refused(connection, look, scope, unit, limit, 1)
                self._rows.add_in(connection, requests, 1, grain=look.grain)
                self._rows.sit_in(connection, seats, seat_id=seat_id, boot_id=self._boot_id)
        except StoreUnavailable:
            self._leave(seat_id)  # the commit may have got through all the same
            raise
        self._note((*requests, *seats), look, more=1)
        return _Request(seat_id, requests, look.grain)

    def _refused(
        self, connection: sa.Connection, look: Look, scope: Limited, unit: str, limit: int, amount: int
    ) -> RateLimited:
        wait_s = 1.0
        if unit != CONCURRENT:
            wait_s = self._rows.seconds_until(connection, scope.counter(unit), amount, limit=limit, look=look)
        return scope.refusal(unit, limit, wait_s=wait_s)

    def _abandoned(self, counting: "Future[_Request]") -> None:
        """The client left while its request was being counted: it stays counted, and has no seat."""
        if not counting.cancelled() and counting.exception() is None:
            self._ended(counting.result())

    def _ended(self, request: _Request) -> None:
        """Give the seat of a request back."""
        if self._leave(request.seat_id):
            with suppress(RuntimeError):  # `close` waits for what was begun, and gives back what that left
                self._threads.submit(self._give_back)

    def _leave(self, seat_id: str) -> bool:
        """Note that a seat is to be given back; False where there is none."""
        with self._lock:
            self._left |= {seat_id} - {""}
        return bool(seat_id)

    def _take_back(self, request: _Request) -> None:
        """Undo the count of a request that never began, in a thread."""
        self._leave(request.seat_id)
        try:
            with self._database.write() as connection:
                self._rows.correct_in(connection, request.counters, -1, grain=request.grain)
        except (StoreUnavailable, StorageFull) as error:
            logger().warning("rates.not_corrected", error=type(error).__name__)  # it leaves the window by itself
        self._give_back()

    def _give_back(self) -> None:
        """Give back the seats of all requests that ended; what fails is tried again with the next request."""
        with self._lock:
            left, self._left = self._left, set()
        if not left:
            return
        try:
            with self._database.write() as connection:
                self._rows.rise_in(connection, left)
        except (StoreUnavailable, StorageFull) as error:
            logger().warning("rates.seats_kept", seats=len(left), error=type(error).__name__)
            with self._lock:
                self._left |= left

    def _note(self, counters: Sequence[str], look: Look, *, more: int = 0) -> None:
        now = self._monotonic()
        with self._lock:
            for counter in counters:
                found = look.of(counter)
                reset_s = found.reset_s if found.reset_s or not more else look.leaves_s(look.grain)
                self._seen[counter] = _LastLook(Counted(found.used + more, reset_s), now)

    def _state(self, scope: Limited, unit: str, limit: int) -> RateLimitState:
        seen = self._seen.get(scope.counter(unit))
        if seen is None:
            return scope.state(unit, limit, used=0, reset_s=0.0)
        reset_s = 0.0 if unit == CONCURRENT else seen.counted.reset_s - (self._monotonic() - seen.at)
        return scope.state(unit, limit, used=seen.counted.used, reset_s=reset_s)


def _nothing() -> None:
    """End a request that no limit counts."""
