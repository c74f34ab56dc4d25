"""Request bodies that are too large or arrive too slowly are refused."""

import math
from collections.abc import Awaitable, Callable
from typing import Any

import anyio
import pytest
from fastapi import HTTPException

from app.api.gate.request_body import SLOWEST, bounded

Messages = Callable[[], Awaitable[Any]]


def receiving(*messages: dict[str, Any]) -> Messages:
    left = list(messages)

    async def receive() -> dict[str, Any]:
        return left.pop(0)

    return receive


def piece(size: int, *, more: bool = True) -> dict[str, Any]:
    return {"type": "http.request", "body": b"x" * size, "more_body": more}


async def never() -> Any:
    await anyio.sleep(math.inf)


async def test_a_body_up_to_the_limit_passes_and_one_byte_more_is_413():
    fits = bounded(receiving(piece(6), piece(4, more=False)), limit=10)
    assert [(await fits())["body"], (await fits())["body"]] == [b"x" * 6, b"x" * 4]

    above = bounded(receiving(piece(6), piece(5, more=False)), limit=10)
    await above()
    with pytest.raises(HTTPException) as refused:
        await above()
    assert refused.value.status_code == 413


async def test_a_body_that_stalls_is_408():
    receive = bounded(never, limit=10, stall_s=0.01)

    with pytest.raises(HTTPException) as refused:
        await receive()
    assert refused.value.status_code == 408
    assert refused.value.headers == {"Connection": "close"}


async def test_a_body_that_comes_a_byte_at_a_time_is_408_before_its_end():
    now = [0.0]
    receive = bounded(receiving(*[piece(1)] * 1000), limit=10_000, stall_s=30, clock=lambda: now[0])
    for _ in range(3):  # the time in which no rate is asked for
        now[0] += 10.0
        await receive()
    now[0] += 10.0
    with pytest.raises(HTTPException) as refused:
        await receive()
    assert refused.value.status_code == 408


async def test_a_body_at_the_least_rate_may_take_its_time():
    now = [0.0]
    pieces = [piece(10 * SLOWEST)] * 99 + [piece(10 * SLOWEST, more=False)]
    receive = bounded(receiving(*pieces), limit=1 << 30, stall_s=30, clock=lambda: now[0])

    for _ in range(100):
        now[0] += 10.0
        await receive()


async def test_after_its_end_waiting_for_a_disconnect_has_no_limit():
    receive = bounded(receiving(piece(1, more=False), {"type": "http.disconnect"}), limit=10, stall_s=0.01)

    assert (await receive())["type"] == "http.request"
    assert (await receive())["type"] == "http.disconnect"

    ended = False

    async def ends_then_waits() -> Any:
        nonlocal ended
        if ended:
            await anyio.sleep(math.inf)
        ended = True
        return piece(1, more=False)

    waiting = bounded(ends_then_waits, limit=10, stall_s=0.01)
    await waiting()
    with anyio.move_on_after(0.1) as patience:
        await waiting()
    assert patience.cancelled_caught, "it was still waiting, and had not given up by itself"
