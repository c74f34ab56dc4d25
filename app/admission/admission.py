"""Admission of requests: rate limits, then room in a queue, then a slot, before any work is done for a request.

A request that generates holds a generation slot until its response has ended. The engine and its own queue get only as
many requests as keep it busy; all others wait here, in turns between tenants. A preparation slot is a thread to prepare
an answer with; requests that only search need nothing else.
"""

import asyncio
import os
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, TypeVar

import anyio

from app.admission.address_rate import AddressRate
from app.admission.failed_logins import LoginBrake
from app.admission.fair_queue import FairQueue, PreparationSlot, Waiter, current_slot
from app.admission.quotas import OverriddenQuotas, Quota
from app.admission.scopes import RequestCounts
from app.admission.sliding_windows import RateLimitState
from app.errors import DeadlinePassed, ServerFull
from app.settings import LimitSettings, Settings
from app.telemetry.timing import timed
from app.types import Principal

Body = TypeVar("Body")

_MIN_PREPARATION_SLOTS = 4
_MAX_PREPARATION_SLOTS = 32


class Admission:
    """Admits the requests of one application. All but `rates` and `quotas` is used on the event loop alone.

    Example:
        >>> async with admission.entered(
        ...     principal, generates=True, deadline=time.monotonic() + 60, body=read_body, gone=wait_for_hang_up
        ... ) as body:
        ...     await answer(body)  # holds a generation slot and a preparation slot
    """

    def __init__(
        self,
        *,
        quotas: OverriddenQuotas,
        rates: RequestCounts,
        failed_logins: LoginBrake,
        public_rate: AddressRate,
        generation_slots: FairQueue,
        preparation_slots: FairQueue,
        waiting_tokens: Callable[[], int] = lambda: 0,
        most_waiting_tokens: int = 1 << 62,
    ) -> None:
        """At `most_waiting_tokens` in the engine's queue (`waiting_tokens`), requests that generate are refused."""
        self.quotas = quotas
        self.rates = rates
        self.failed_logins = failed_logins
        self.public_rate = public_rate
        self.generation_slots = generation_slots
        self.preparation_slots = preparation_slots
        self._waiting_tokens = waiting_tokens
        self._most_waiting_tokens = most_waiting_tokens

    async def refresh(self) -> None:
        """Wait for overrides that are too old to be used."""
        if (reading := self.quotas.refreshed()) is not None:
            await asyncio.wait({asyncio.wrap_future(reading)})

    def limit_states(self, principal: Principal) -> tuple[RateLimitState, ...]:
        """The state of each limit that applies to a caller."""
        return self.rates.states(principal)

    @asynccontextmanager
    async def counted(self, principal: Principal) -> AsyncIterator[None]:
        """Count a request against the caller's limits, without a slot; for requests such as uploads.

        Raises:
            RateLimited: A limit is reached.
            StoreUnavailable: The counts that processes share cannot be reached.
        """
        end = await self.rates.begun(principal)
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
        """Count a request, read its body and wait for its slots; inside the block it holds them.

        Args:
            principal: The caller; its limits apply, and its place in the queue.
            generates: Whether the request needs the engine.
            deadline: The `time.monotonic` second until which it may wait.
            body: Reads the request's body; called once there is room. Its exceptions are passed on.
            gone: Raises when the client hangs up; called, and cancelled, while the request waits.

        Raises:
            RateLimited: A limit is reached; nothing was read.
            ServerFull: The queue is full: nothing was read, or a request of another tenant took the place meanwhile.
            DeadlinePassed: It waited too long.
            StoreUnavailable: The counts that processes share cannot be reached; nothing was read.
        """
        queue = self.generation_slots if generates else self.preparation_slots

        joined: list[Waiter] = []

        def room() -> None:
            if generates and self._waiting_tokens() >= self._most_waiting_tokens:
                raise ServerFull(retry_after_s=self.generation_slots.retry_after_s)
            joined.append(queue.join(principal.tenant_id, principal.caller))

        end = await self.rates.begun(principal, room=room)
        (waiter,) = joined
        generating = waiter if generates else None
        preparing = None if generates else waiter
        slot: PreparationSlot | None = None
        try:
            read = await _unless_refused(body(), waiter.outcome, deadline=deadline)
            with timed("admission"):
                await _granted(queue.start(waiter), gone, deadline=deadline)
                if preparing is None:
                    preparing = self.preparation_slots.join(principal.tenant_id, principal.caller, guaranteed=True)
                    await _granted(self.preparation_slots.start(preparing), gone, deadline=deadline)
            slot = PreparationSlot(partial(self.preparation_slots.leave, preparing))
            token = current_slot.set(slot)
            try:
                yield read
            finally:
                current_slot.reset(token)
        finally:
            if slot is not None:
                slot.end()
            elif preparing is not None:
                self.preparation_slots.leave(preparing)
            if generating is not None:
                self.generation_slots.leave(generating)
            end()


def default_quotas(settings: LimitSettings) -> tuple[Quota, Quota]:
    """The quotas of a key and of a tenant without an override."""
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
    settings: Settings,
    *,
    quotas: OverriddenQuotas,
    rates: RequestCounts,
    failed_logins: LoginBrake,
    waiting_tokens: Callable[[], int],
) -> Admission:
    """Admission in the sizes of the settings.

    The models need not be loaded. Where they then run in larger batches, `generation_slots` says by how much its
    queue is to be widened.
    """
    preparation_slots = _preparation_slots(settings)
    return Admission(
        quotas=quotas,
        rates=rates,
        failed_logins=failed_logins,
        public_rate=AddressRate(settings.public_requests_per_minute, name="public-requests"),
        generation_slots=FairQueue(generation_slots(settings), waiting=settings.max_waiting),
        preparation_slots=FairQueue(preparation_slots, waiting=settings.max_waiting),
        waiting_tokens=waiting_tokens,
        most_waiting_tokens=settings.max_waiting_tokens,
    )


def generation_slots(settings: Settings) -> int:
    """Requests that generate or are prepared for it at once.

    Twice `max_running`, so that the next requests are prepared when one ends, and those in preparation.
    """
    return 2 * settings.max_running + _preparation_slots(settings)


async def _unless_refused(
    reading: Coroutine[Any, Any, Body], refusal: "asyncio.Future[None]", *, deadline: float
) -> Body:
    """The result of `reading`, unless the place in the queue is taken away first or the deadline passes."""
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
        await _cancelled(task)


async def _granted(
    slot: "asyncio.Future[None]", gone: Callable[[], Coroutine[Any, Any, None]], *, deadline: float
) -> None:
    """Wait for a slot, unless the client hangs up or the deadline passes."""
    if slot.done():
        return slot.result()
    leaving = asyncio.ensure_future(gone())
    try:
        either: set[asyncio.Future[Any]] = {leaving, slot}
        await asyncio.wait(either, timeout=_left(deadline), return_when=asyncio.FIRST_COMPLETED)
        if leaving.done():
            leaving.result()
        if not slot.done():
            raise DeadlinePassed
        return slot.result()
    finally:
        await _cancelled(leaving)


def _left(deadline: float) -> float:
    return max(0.0, deadline - time.monotonic())


async def _cancelled(task: "asyncio.Task[Any]") -> None:
    """Cancel a task and wait until it has ended, even if the caller is cancelled meanwhile."""
    task.cancel()
    with anyio.CancelScope(shield=True):
        await asyncio.wait({task})
    if not task.cancelled():
        task.exception()  # retrieved, or asyncio logs it as never retrieved


def _preparation_slots(settings: Settings) -> int:
    """Requests prepared at once: at most the executor's threads, since further ones would wait there in no order."""
    cores = len(os.sched_getaffinity(0))
    wanted = max(_MIN_PREPARATION_SLOTS, cores)
    if settings.overflow == "summarise" or settings.followup == "model":
        wanted += settings.max_running  # their threads wait for the generator
    return min(wanted, _MAX_PREPARATION_SLOTS, (os.cpu_count() or 1) + 4)
