"""generation.delivery carries deltas from a thread to a reader in order, and lets go of readers who left."""

import asyncio
import threading
import time

import pytest

from generation.delivery import TokenStream
from generation.types import Completion, Delta, FinishReason, Timings


def completion() -> Completion:
    return Completion(
        id="r",
        text="",
        token_ids=(),
        finish_reason=FinishReason.STOP,
        prompt_tokens=1,
        cached_tokens=0,
        delivered_tokens=0,
        timings=Timings(0, None, 0),
    )


class Calls:
    """Counts the two callbacks."""

    def __init__(self) -> None:
        self.closed = 0
        self.drained = 0
        self.stream = TokenStream(on_close=self._close, on_drained=self._drain)

    def _close(self) -> None:
        self.closed += 1

    def _drain(self) -> None:
        self.drained += 1


async def test_a_waiting_reader_gets_what_another_thread_puts() -> None:
    stream = Calls().stream

    def produce() -> None:
        for number in range(50):
            stream.put(Delta(str(number), 1))
            time.sleep(0.0005 * (number % 3))
        stream.end()
        stream.seal(completion())

    producer = threading.Thread(target=produce)
    producer.start()
    items = [item async for item in stream]
    producer.join()

    assert items == [*(Delta(str(number), 1) for number in range(50)), completion()]
    assert stream.taken_tokens == 50


def test_each_read_may_run_on_another_loop() -> None:
    stream = Calls().stream
    stream.put(Delta("a", 1))
    stream.put(Delta("b", 1))

    async def take() -> Delta | Completion:
        return await anext(aiter(stream))

    assert [asyncio.run(take()), asyncio.run(take())] == [Delta("a", 1), Delta("b", 1)]


async def test_the_reader_who_takes_the_last_delta_after_the_end_says_so_once() -> None:
    calls = Calls()
    stream = calls.stream
    stream.put(Delta("a", 2))
    stream.put(Delta("b", 1))
    reader = aiter(stream)

    await anext(reader)
    stream.end()
    assert (calls.drained, stream.settled) == (0, False)
    await anext(reader)
    assert (calls.drained, stream.settled) == (1, True)

    stream.seal(completion())
    assert await anext(reader) == completion()
    with pytest.raises(StopAsyncIteration):
        await anext(reader)
    assert calls.drained == 1


async def test_closing_drops_what_was_not_taken_and_still_brings_the_completion() -> None:
    calls = Calls()
    stream = calls.stream
    stream.put(Delta("a", 1))

    stream.close()
    stream.close()
    stream.put(Delta("b", 1))
    stream.end()
    stream.seal(completion())

    assert [item async for item in stream] == [completion()]
    assert (calls.closed, stream.taken_tokens) == (1, 0)


async def test_closing_from_a_thread_reaches_a_reader_who_waits() -> None:
    stream = Calls().stream

    def leave() -> None:
        stream.close()
        stream.end()
        stream.seal(completion())

    timer = threading.Timer(0.05, leave)
    timer.start()

    assert [item async for item in stream] == [completion()]


def test_a_reader_whose_loop_is_gone_does_not_disturb_the_engine() -> None:
    stream = Calls().stream

    async def wait_briefly() -> None:
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(anext(aiter(stream)), 0.01)

    asyncio.run(wait_briefly())
    stream.put(Delta("a", 1))
    stream.end()
    stream.seal(completion())

    async def read() -> list[Delta | Completion]:
        return [item async for item in stream]

    assert asyncio.run(read()) == [Delta("a", 1), completion()]


async def test_a_read_that_was_cancelled_loses_nothing() -> None:
    stream = Calls().stream
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(anext(aiter(stream)), 0.01)

    stream.put(Delta("a", 1))

    assert await anext(aiter(stream)) == Delta("a", 1)
