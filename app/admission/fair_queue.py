"""A bounded queue before a fixed number of slots, fair between tenants and between the keys of a tenant.

It is used on the event loop alone, so nothing is locked.
"""

import asyncio
import math
import time
from collections import Counter, OrderedDict
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any, TypeVar

from app.errors import ServerFull

Group = TypeVar("Group")

_MAX_REMEMBERED = 10_000  # tenants and keys whose last grant is remembered
_INITIAL_SERVICE_S = 1.0  # estimate of how long a slot is held, before one was released


class Waiter:
    """A request in a queue: joining, waiting (`ready`), holding a slot, or gone."""

    def __init__(self, tenant: str, key: str) -> None:
        self.tenant = tenant
        self.key = (tenant, key)
        self.ready = False
        self.since: float | None = None  # the second at which it got its slot
        self.outcome: asyncio.Future[None] = asyncio.get_running_loop().create_future()


class FairQueue:
    """Grants `slots` to requests, of which at most `waiting` wait; all others are refused.

    A free slot goes to the tenant that holds the fewest, among equals to the one whose last grant is the oldest; then
    to one of its keys by the same rule, and there to the request that joined first. When the queue is full, the tenant
    with the most requests in it loses the one that joined last, or the newcomer is refused if that is its own tenant;
    among the tenant's keys the same rule applies. So a burst delays only its own sender (longest queue drop: Suter et
    al., "Design considerations for supporting TCP with per-flow queueing", INFOCOM 1998).

    Example:
        >>> queue = FairQueue(2, waiting=10)
        >>> waiter = queue.join("tenant", "key")  # or raises ServerFull
        >>> await queue.start(waiter)             # until a slot is free
        >>> queue.leave(waiter)
    """

    def __init__(self, slots: int, *, waiting: int, clock: Callable[[], float] = time.monotonic) -> None:
        """`clock` gives seconds and never goes back."""
        assert slots > 0, "a queue without a slot never ends"
        assert waiting >= 0, "a negative number of requests cannot wait"
        self._slots = slots
        self._max_waiting = waiting
        self._clock = clock
        self._queue: list[Waiter] = []  # in order of arrival
        self._held: set[Waiter] = set()
        self._held_by: Counter[object] = Counter()
        self._last_grant: OrderedDict[object, int] = OrderedDict()  # number of the last grant, by tenant and key
        self._granted = 0
        self._service_s = _INITIAL_SERVICE_S

    @property
    def waiting(self) -> int:
        """Requests in the queue: joining, or waiting for a slot."""
        return len(self._queue)

    @property
    def held(self) -> int:
        """Slots that are held."""
        return len(self._held)

    @property
    def retry_after_s(self) -> int:
        """Estimated seconds until half of the queue has a slot, at the recent rate; from 1 to 60."""
        rounds = len(self._queue) / 2 / self._slots
        return min(60, max(1, math.ceil(rounds * self._service_s)))

    def widen(self, slots: int) -> None:
        """Grant `slots` from the next grant on, where they are more than now. Safe from any thread."""
        self._slots = max(self._slots, slots)

    def join(self, tenant: str, key: str, *, guaranteed: bool = False) -> Waiter:
        """Add a request to the queue; it waits for a slot from `start` on. Call `leave` in the end.

        `guaranteed` requests, which were admitted by another queue, are not refused.

        Raises:
            ServerFull: The queue is full.
        """
        waiter = Waiter(tenant, key)
        if not guaranteed and len(self._queue) >= self._max_waiting + max(0, self._slots - len(self._held)):
            self._make_room_for(waiter)
        self._queue.append(waiter)
        return waiter

    def start(self, waiter: Waiter) -> asyncio.Future[None]:
        """Wait for a slot: the future is done when it is granted, and fails with ServerFull if its place is taken."""
        waiter.ready = True
        self._grant()
        return waiter.outcome

    def leave(self, waiter: Waiter) -> None:
        """Release the slot, or leave the queue. Idempotent."""
        if waiter in self._held:
            self._held.remove(waiter)
            for holder in (waiter.tenant, waiter.key):
                self._held_by[holder] -= 1
                if not self._held_by[holder]:
                    del self._held_by[holder]
            assert waiter.since is not None, "a granted slot has a time"
            self._service_s += 0.1 * (self._clock() - waiter.since - self._service_s)
            self._grant()
        elif waiter in self._queue:
            self._queue.remove(waiter)
        if not waiter.outcome.cancel() and not waiter.outcome.cancelled():
            waiter.outcome.exception()  # retrieved, or asyncio logs it as never retrieved

    def check_integrity(self) -> None:
        """Raise AssertionError if the counts disagree with each other."""
        assert len(self._held) <= self._slots
        assert sum(self._held_by.values()) == 2 * len(self._held)
        assert not self._held & set(self._queue)
        assert len(self._held) == self._slots or not any(waiter.ready for waiter in self._queue), (
            "a free slot is granted at once"
        )

    def _grant(self) -> None:
        while len(self._held) < self._slots:
            ready = [waiter for waiter in self._queue if waiter.ready]
            if not ready:
                return
            chosen = min(ready, key=self._rank)
            self._queue.remove(chosen)
            self._held.add(chosen)
            self._granted += 1
            for holder in (chosen.tenant, chosen.key):
                self._held_by[holder] += 1
                self._last_grant[holder] = self._granted
                self._last_grant.move_to_end(holder)
            while len(self._last_grant) > _MAX_REMEMBERED:
                self._last_grant.popitem(last=False)
            chosen.since = self._clock()
            if not chosen.outcome.done():
                chosen.outcome.set_result(None)

    def _rank(self, waiter: Waiter) -> tuple[int, int, int, int]:
        return (
            self._held_by[waiter.tenant],
            self._last_grant.get(waiter.tenant, 0),
            self._held_by[waiter.key],
            self._last_grant.get(waiter.key, 0),
        )

    def _make_room_for(self, newcomer: Waiter) -> None:
        """Refuse the request that joined last of the tenant and key with the most requests in the queue.

        Raises:
            ServerFull: That is the newcomer.
        """
        tenants = Counter(waiter.tenant for waiter in self._queue)
        crowded = self._fullest(tenants, newcomer.tenant)
        keys = Counter(waiter.key for waiter in self._queue if waiter.tenant == crowded)
        key = self._fullest(keys, newcomer.key)
        refused = [newcomer] if key == newcomer.key else [waiter for waiter in self._queue if waiter.key == key]
        error = ServerFull(retry_after_s=self.retry_after_s)
        if refused[-1] is newcomer:
            raise error
        self._queue.remove(refused[-1])
        if not refused[-1].outcome.done():
            refused[-1].outcome.set_exception(error)

    @staticmethod
    def _fullest(counts: Counter[Group], newcomer: Group) -> Group:
        """The group with more requests in the queue than the newcomer's would have; else the newcomer's."""
        longest, most = counts.most_common(1)[0] if counts else (newcomer, 0)
        return longest if most > counts[newcomer] + 1 else newcomer


class PreparationSlot:
    """The preparation slot of one request, held until the request and the threads that work for it have ended."""

    def __init__(self, release: Callable[[], None]) -> None:
        """`release` is called once."""
        self._release = release
        self._threads = 0
        self._released = False

    def hold_until(self, work: "asyncio.Future[Any]") -> None:
        """Keep the slot until `work` is done, also if the request ends before."""
        self._threads += 1
        work.add_done_callback(self._done)

    def end(self) -> None:
        """Release the slot now that the request has ended, unless a thread still works for it."""
        if not self._threads:
            self._finish()

    def _done(self, _: object) -> None:
        self._threads -= 1
        if not self._threads:
            self._finish()

    def _finish(self) -> None:
        if not self._released:
            self._released = True
            self._release()


current_slot: ContextVar[PreparationSlot | None] = ContextVar("footnote_preparation_slot", default=None)
"""The preparation slot of the current request, None outside of one."""
