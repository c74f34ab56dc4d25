"""A line before a few places: short, fair between tenants and their keys, and left by who hangs up.

Everything happens on the event loop, so nothing is locked.
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

_REMEMBERED = 10_000  # tenants and keys whose last turn is known
_USUAL_S = 1.0  # how long a place is held, before anybody held one


class Waiter:
    """One request's part in a line: on its way into it, waiting, holding a place, or gone."""

    def __init__(self, tenant: str, key: str) -> None:
        self.tenant = tenant
        self.key = (tenant, key)
        self.ready = False
        self.since: float | None = None  # when it got its place
        self.outcome: asyncio.Future[None] = asyncio.get_running_loop().create_future()


class Line:
    """At most `places` are held at once, and at most `waiting` requests wait for one.

    A free place goes to the tenant that holds the fewest, between equals to the one whose last turn is longest ago;
    among its keys in the same way, and there to who came first. When the line is full, the last who joined of the
    tenant that has the most in it is refused, or the newcomer if that is its own tenant (among its keys in the same
    way): whoever floods the line waits behind nobody but himself (longest queue drop, Suter et al. 1998).
    """

    def __init__(self, places: int, *, waiting: int, clock: Callable[[], float] = time.monotonic) -> None:
        assert places > 0, "somebody must be able to go"
        assert waiting >= 0, "nobody waits at least"
        self._places = places
        self._most = waiting
        self._clock = clock
        self._line: list[Waiter] = []  # in order of arrival
        self._held: set[Waiter] = set()
        self._held_by: Counter[object] = Counter()
        self._turns: OrderedDict[object, int] = OrderedDict()  # the number of the last place each got
        self._granted = 0
        self._service_s = _USUAL_S

    @property
    def waiting(self) -> int:
        """Requests that wait for a place or are on their way into the line."""
        return len(self._line)

    @property
    def held(self) -> int:
        """Places that are held."""
        return len(self._held)

    @property
    def retry_after_s(self) -> int:
        """Seconds until half of the line has moved up, at the pace of late; from 1 to 60."""
        rounds = len(self._line) / 2 / self._places
        return min(60, max(1, math.ceil(rounds * self._service_s)))

    def join(self, tenant: str, key: str, *, sure: bool = False) -> Waiter:
        """Count a request in, before anything is done for it; it waits once it is `ready`. Leave with `leave`.

        `sure`: it was counted in before another line, and is not refused here.

        Raises:
            ServerFull: There is no room in the line.
        """
        waiter = Waiter(tenant, key)
        if not sure and len(self._line) >= self._most + max(0, self._places - len(self._held)):
            self._make_room_for(waiter)
        self._line.append(waiter)
        return waiter

    def start(self, waiter: Waiter) -> asyncio.Future[None]:
        """It is ready for a place: the result is done when it has one, or fails with ServerFull if others need its."""
        waiter.ready = True
        self._grant()
        return waiter.outcome

    def leave(self, waiter: Waiter) -> None:
        """Give back the place, or leave the line. Idempotent."""
        if waiter in self._held:
            self._held.remove(waiter)
            for holder in (waiter.tenant, waiter.key):
                self._held_by[holder] -= 1
                if not self._held_by[holder]:
                    del self._held_by[holder]
            assert waiter.since is not None, "it held a place"
            self._service_s += 0.1 * (self._clock() - waiter.since - self._service_s)
            self._grant()
        elif waiter in self._line:
            self._line.remove(waiter)
        if not waiter.outcome.cancel() and not waiter.outcome.cancelled():
            waiter.outcome.exception()  # nobody asks for it any more

    def check_integrity(self) -> None:
        """Raise AssertionError if the books of the line do not agree."""
        assert len(self._held) <= self._places
        assert sum(self._held_by.values()) == 2 * len(self._held)
        assert not self._held & set(self._line)
        assert len(self._held) == self._places or not any(waiter.ready for waiter in self._line), "a place lies idle"

    def _grant(self) -> None:
        while len(self._held) < self._places:
            ready = [waiter for waiter in self._line if waiter.ready]
            if not ready:
                return
            chosen = min(ready, key=self._rank)
            self._line.remove(chosen)
            self._held.add(chosen)
            self._granted += 1
            for holder in (chosen.tenant, chosen.key):
                self._held_by[holder] += 1
                self._turns[holder] = self._granted
                self._turns.move_to_end(holder)
            while len(self._turns) > _REMEMBERED:
                self._turns.popitem(last=False)
            chosen.since = self._clock()
            if not chosen.outcome.done():
                chosen.outcome.set_result(None)

    def _rank(self, waiter: Waiter) -> tuple[int, int, int, int]:
        return (
            self._held_by[waiter.tenant],
            self._turns.get(waiter.tenant, 0),
            self._held_by[waiter.key],
            self._turns.get(waiter.key, 0),
        )

    def _make_room_for(self, newcomer: Waiter) -> None:
        """Refuse the last of who has the most in the line.

        Raises:
            ServerFull: The newcomer is that.
        """
        tenants = Counter(waiter.tenant for waiter in self._line)
        crowded = self._fullest(tenants, newcomer.tenant)
        keys = Counter(waiter.key for waiter in self._line if waiter.tenant == crowded)
        key = self._fullest(keys, newcomer.key)
        refused = [newcomer] if key == newcomer.key else [waiter for waiter in self._line if waiter.key == key]
        error = ServerFull(retry_after_s=self.retry_after_s)
        if refused[-1] is newcomer:
            raise error
        self._line.remove(refused[-1])
        if not refused[-1].outcome.done():
            refused[-1].outcome.set_exception(error)

    @staticmethod
    def _fullest(counts: Counter[Group], newcomer: Group) -> Group:
        """The group that has more in the line than the newcomer's would have; else the newcomer's."""
        longest, most = counts.most_common(1)[0] if counts else (newcomer, 0)
        return longest if most > counts[newcomer] + 1 else newcomer


class Turn:
    """One request's. `give_back` is called once, when it is over."""

    def __init__(self, give_back: Callable[[], None]) -> None:
        self._give_back = give_back
        self._threads = 0
        self._over = False

    def lasts(self, work: "asyncio.Future[Any]") -> None:
        """It is over with this work, and not before."""
        self._threads += 1
        work.add_done_callback(self._done)

    def end(self) -> None:
        """The request has ended; so has its turn, unless a thread still works for it."""
        if not self._threads:
            self._finish()

    def _done(self, _: object) -> None:
        self._threads -= 1
        if not self._threads:
            self._finish()

    def _finish(self) -> None:
        if not self._over:
            self._over = True
            self._give_back()


current: ContextVar[Turn | None] = ContextVar("turn", default=None)
"""The turn of the request that is being handled, None outside of one."""
