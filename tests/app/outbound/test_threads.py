"""app.outbound.threads: a party has its share of the threads, and gives each back however its call ends."""

import asyncio
import threading

import pytest

from app.errors import ServerFull
from app.outbound.threads import OutboundThreads


async def started(threads: OutboundThreads, gate: threading.Event, *parties: str) -> "list[asyncio.Task[bool]]":
    """Calls under way that end with the gate."""
    tasks = [asyncio.create_task(threads.run(lambda: gate.wait(10), party=party)) for party in parties]
    await asyncio.sleep(0)  # each task runs to its thread
    return tasks


async def test_a_party_has_half_of_the_threads_and_all_parties_have_all():
    threads, gate = OutboundThreads(4), threading.Event()
    running = await started(threads, gate, "a", "a")
    try:
        with pytest.raises(ServerFull):
            await threads.run(lambda: None, party="a")
        running += await started(threads, gate, "b", "c")
        with pytest.raises(ServerFull) as full:
            await threads.run(lambda: None, party="d")
    finally:
        gate.set()

    assert full.value.retry_after_s > 0
    assert await asyncio.gather(*running) == [True] * 4
    assert await threads.run(lambda: "free", party="a") == "free"


async def test_one_thread_is_everybodys():
    assert await OutboundThreads(1).run(lambda: "done", party="a") == "done"


async def test_a_call_that_fails_gives_its_thread_back():
    threads = OutboundThreads(2)
    for _ in range(3):
        with pytest.raises(ZeroDivisionError):
            await threads.run(lambda: 1 / 0, party="a")
