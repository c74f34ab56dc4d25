"""Who may come in: limits, then room, then a seat, then a turn, before anything is done for a request.

A request that generates holds a seat until its response has ended: the engine and its own line get no more of them
than keep it busy, and all others wait here, where nothing was done for them yet and tenants take turns. A turn is
a thread to prepare with; requests that only search need nothing else.
"""

import asyncio
import os
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from typing import Any, TypeVar

import anyio

from app.admission.failed_logins import FailedLogins
from app.admission.line import Line, Turn, Waiter, current
from app.admission.quotas import OverriddenQuotas, Quota
from app.admission.rates import Rates
from app.admission.sliding_windows import RateLimitState
from app.errors import DeadlinePassed, ServerFull
from app.settings import LimitSettings, Settings
from app.telemetry.stations import station
from app.types import Principal

Body = TypeVar("Body")


class Admission:
    """One application's. Everything but `rates` and `quotas` belongs to the event loop."""

    def __init__(
        self,
        *,
        quotas: OverriddenQuotas,
        rates: Rates,
        failed_logins: FailedLogins,
        seats: Line,
        turns: Line,
        waiting_tokens: Callable[[], int] = lambda: 0,
        most_waiting_tokens: int = 1 << 62,
    ) -> None:
        """`waiting_tokens` are those of prompts in the engine's line; from `most_waiting_tokens` on nobody comes in."""
        self.quotas = quotas
        self.rates = rates
        self.failed_logins = failed_logins
        self.seats = seats
        self.turns = turns
        self._waiting_tokens = waiting_tokens
        self._most_waiting_tokens = most_waiting_tokens

    async def refresh(self) -> None:
        """Wait for quotas that are too old to be used."""
        if (reading := self.quotas.refreshed()) is not None:
            await asyncio.wait({asyncio.wrap_future(reading)})

    def limit_states(self, principal: Principal) -> tuple[RateLimitState, ...]:
        """The state of each limit that applies to a caller."""
        return self.rates.states(principal)

    @contextmanager
    def counted(self, principal: Principal) -> Iterator[None]:
        """For a request that is only counted, such as an upload.

        Raises:
            RateLimited: A limit is reached.
        """
        end = self.rates.begin(principal)
        try:
            yield
        finally:
            end()

    @asynccontextmanager
    async def entered(
        self,
        principal: Principal,
        *,
        generates: bool,
        deadline: float,
        body: Callable[[], Coroutine[Any, Any, Body]],
        gone: Callable[[], Coroutine[Any, Any, None]],
    ) -> AsyncIterator[Body]:
        """For a request that is worked for; inside, it has what it needs, and its `body` is read.

        Args:
            principal: Whose limits and whose turn.
            generates: Whether it is for the engine.
            deadline: The `time.monotonic` second until which it may wait.
            body: Reads the request's body; called once there is room. What it raises is passed on.
            gone: Raises when the client hangs up; called, and cancelled, while the request waits.

        Raises:
            RateLimited: A limit is reached; nothing was read.
            ServerFull: There is no room; nothing was read, or others had more right to the room meanwhile.
            DeadlinePassed: It waited too long.
        """
        line = self.seats if generates else self.turns

        joined: list[Waiter] = []

        def room() -> None:
            if generates and self._waiting_tokens() >= self._most_waiting_tokens:
                raise ServerFull(retry_after_s=self.seats.retry_after_s)
            joined.append(line.join(principal.tenant_id, principal.key_id))

        end = self.rates.begin(principal, room=room)
        (waiter,) = joined
        seated = waiter if generates else None
        preparing = None if generates else waiter
        turn: Turn | None = None
        try:
            read = await _unless_refused(body(), waiter.outcome, deadline=deadline)
            with station("admission"):
                await _granted(line.start(waiter), gone, deadline=deadline)
                if preparing is None:
                    preparing = self.turns.join(principal.tenant_id, principal.key_id, sure=True)
                    await _granted(self.turns.start(preparing), gone, deadline=deadline)
            turn = Turn(partial(self.turns.leave, preparing))
            token = current.set(turn)
            try:
                yield read
            finally:
                current.reset(token)
        finally:
            if turn is not None:
                turn.end()
            elif preparing is not None:
                self.turns.leave(preparing)
            if seated is not None:
                self.seats.leave(seated)
            end()


async def _unless_refused(
    reading: Coroutine[Any, Any, Body], refusal: "asyncio.Future[None]", *, deadline: float
) -> Body:
    """What `reading` gives, unless the place in the line goes to somebody else first, or it takes too long."""
    task = asyncio.ensure_future(reading)
    try:
        either: set[asyncio.Future[Any]] = {task, refusal}
        await asyncio.wait(either, timeout=_left(deadline), return_when=asyncio.FIRST_COMPLETED)
        if refusal.done():
            refusal.result()
        if not task.done():
            raise DeadlinePassed
        return task.result()
    finally:
        await _ended(task)


async def _granted(
    place: "asyncio.Future[None]", gone: Callable[[], Coroutine[Any, Any, None]], *, deadline: float
) -> None:
    """Wait for a place, unless the client hangs up or it takes too long."""
    if place.done():
        return place.result()
    leaving = asyncio.ensure_future(gone())
    try:
        either: set[asyncio.Future[Any]] = {leaving, place}
        await asyncio.wait(either, timeout=_left(deadline), return_when=asyncio.FIRST_COMPLETED)
        if leaving.done():
            leaving.result()
        if not place.done():
            raise DeadlinePassed
        return place.result()
    finally:
        await _ended(leaving)


def _left(deadline: float) -> float:
    return max(0.0, deadline - time.monotonic())


async def _ended(task: "asyncio.Task[Any]") -> None:
    """Cancel a task and wait for it, without being cancelled oneself."""
    task.cancel()
    with anyio.CancelScope(shield=True):
        await asyncio.wait({task})
    if not task.cancelled():
        task.exception()  # nobody asks for it any more


_LEAST_TURNS = 4


def default_quotas(settings: LimitSettings) -> tuple[Quota, Quota]:
    """What a key and what a tenant may take for whom nothing else was set."""
    key = Quota(
        requests_per_minute=settings.requests_per_minute,
        tokens_per_minute=settings.tokens_per_minute,
        concurrent_requests=settings.concurrent_requests,
    )
    tenant = Quota(
        requests_per_minute=settings.tenant_requests_per_minute,
        tokens_per_minute=settings.tenant_tokens_per_minute,
        concurrent_requests=settings.tenant_concurrent_requests,
    )
    return key, tenant


def sized_admission(
    settings: Settings, *, quotas: OverriddenQuotas, rates: Rates, waiting_tokens: Callable[[], int]
) -> Admission:
    """Admission as the settings want it.

    Seats: as many as generate, as many again so that the next ones stand ready, and those being prepared.
    """
    turns = _turns(settings)
    return Admission(
        quotas=quotas,
        rates=rates,
        failed_logins=FailedLogins(settings.failed_logins_per_minute),
        seats=Line(2 * settings.max_running + turns, waiting=settings.max_waiting),
        turns=Line(turns, waiting=settings.max_waiting),
        waiting_tokens=waiting_tokens,
        most_waiting_tokens=settings.max_waiting_tokens,
    )


def _turns(settings: Settings) -> int:
    """Threads that prepare at once: no more than the executor has, or they would wait there, in no order."""
    cores = len(os.sched_getaffinity(0))
    wanted = max(_LEAST_TURNS, cores)
    if settings.overflow == "summarise" or settings.followup == "model":
        wanted += settings.max_running  # their threads wait for the generator
    return min(wanted, 32, (os.cpu_count() or 1) + 4)
