"""How a sequence at a remote server ends: stop strings, deadlines, cancellations, the engine's end."""

import asyncio
import threading
import time
from dataclasses import replace

import pytest

from generation.errors import EngineStopped
from generation.types import FinishReason, GenerationRequest
from tests.generation.completion_server import (
    Reply,
    Script,
    endless,
    like_llama_cpp,
    like_vllm,
    silent,
)
from tests.generation.fakes import RecordingObserver, request, wait_until
from tests.generation.remotely import Start, cut_midway, end_midway, outcome, read, serve

__all__ = ["serve"]


async def test_a_stop_string_the_server_let_through_is_cut_and_the_request_ended(serve: Start) -> None:
    async def script(reply: Reply) -> None:
        for letter in "ab--cd":
            await reply.piece(letter, token_ids=[ord(letter)])
        await silent(reply)

    engine, server = serve(script)

    deltas, done = await read(engine.submit(request(stop=("--",)), observer=RecordingObserver()))

    assert outcome(done) == (FinishReason.STOP, "ab", 4)
    assert sum(delta.tokens for delta in deltas) == 4
    assert server.asked().gone.wait(30)


async def test_a_server_that_knows_no_end_is_ended_at_max_tokens(serve: Start) -> None:
    engine, server = serve(endless)

    _, done = await read(engine.submit(request(max_tokens=5), observer=RecordingObserver()))

    assert done.finish_reason is FinishReason.LENGTH
    assert server.asked().gone.wait(30)


@pytest.mark.parametrize("ids", [True, False])
async def test_a_text_that_goes_round_in_a_circle_is_stopped_and_the_request_ended(serve: Start, ids: bool) -> None:
    async def script(reply: Reply) -> None:
        while True:
            for letter in "abc":
                await reply.piece(letter, token_ids=[ord(letter)] if ids else None)

    engine, server = serve(script)

    _, done = await read(engine.submit(request(max_tokens=4000, stop_repetition=True), observer=RecordingObserver()))

    assert outcome(done) == (FinishReason.REPETITION, ("abc" * 22)[:64], 64)
    assert server.asked().gone.wait(30)


@pytest.mark.parametrize("script", [endless, silent])
async def test_closing_a_stream_closes_the_connection_though_the_server_says_nothing_more(
    serve: Start, script: Script
) -> None:
    engine, server = serve(script)
    observer = RecordingObserver()
    stream = engine.submit(request(max_tokens=4000), observer=observer)
    reply = await asyncio.to_thread(server.asked)

    stream.close()

    done = await asyncio.to_thread(observer.wait)
    assert await asyncio.to_thread(reply.gone.wait, 5), "no read times out as early as that"
    assert done.finish_reason is FinishReason.CANCELLED
    assert [item async for item in stream] == [done]
    assert engine.stats().cancelled == 1


async def test_closing_a_queued_stream_ends_it_at_once_and_the_server_never_hears_of_it(serve: Start) -> None:
    engine, server = serve(silent, max_running=1)
    engine.submit(request("first"), observer=RecordingObserver())
    server.asked()
    observer = RecordingObserver()
    queued = engine.submit(request("queued"), observer=observer)

    queued.close()
    queued.close()

    done = observer.wait()
    assert done.finish_reason is FinishReason.CANCELLED, "while the first one still runs"
    assert (done.prompt_tokens, done.generated_tokens) == (0, 0), "nobody read it"
    assert len(server.replies) == 1
    assert (engine.stats().waiting, engine.stats().running) == (0, 1)


@pytest.mark.parametrize("place", ["running", "queued"])
async def test_a_deadline_ends_a_sequence_with_what_it_has(serve: Start, place: str) -> None:
    engine, server = serve(endless, max_running=1)
    if place == "queued":
        engine.submit(request("first", max_tokens=4000), observer=RecordingObserver())
        server.asked()

    hurried = replace(request(max_tokens=4000), deadline_s=0.15)
    deltas, done = await read(engine.submit(hurried, observer=RecordingObserver()))

    assert done.finish_reason is FinishReason.DEADLINE
    assert done.generated_tokens == sum(delta.tokens for delta in deltas) == len(done.text)
    assert bool(deltas) == (place == "running")
    assert done.prompt_tokens == (len(hurried.prompt) if place == "running" else 0)
    assert 150 <= done.timings.total_ms < 1000


async def test_no_more_than_max_running_are_at_the_server_and_users_take_turns(serve: Start) -> None:
    first_may_end = threading.Event()

    async def hold(reply: Reply) -> None:
        await asyncio.to_thread(first_may_end.wait, 10)
        await like_vllm("abcdef")(reply)

    engine, server = serve(hold, like_vllm("abcdef"), max_running=1)

    def asks(user: str, prompt: int) -> GenerationRequest:
        return replace(request(f"{user}{prompt}", prompt=[prompt]), user=user)

    streams = [engine.submit(asks("ann", 1), observer=RecordingObserver())]
    server.asked()
    for each in (asks("ann", 2), asks("ann", 3), asks("bob", 4)):
        streams.append(engine.submit(each, observer=RecordingObserver()))
    assert len(server.replies) == 1
    first_may_end.set()
    await asyncio.gather(*map(read, streams))

    order = [reply.body["prompt"][0] for reply in server.replies]
    assert order.index(4) < order.index(3), "bob did not wait for all of ann's"


async def test_closing_the_engine_cancels_everyone_and_tells_the_observers(serve: Start) -> None:
    engine, server = serve(endless, max_running=1)
    observers = [RecordingObserver() for _ in range(3)]
    streams = [
        engine.submit(request(str(number), max_tokens=4000), observer=observer)
        for number, observer in enumerate(observers)
    ]
    wait_until(lambda: engine.stats().decode_tokens > 0)
    began = time.monotonic()

    engine.close()
    engine.close()

    assert time.monotonic() - began < 8, "it waited for readers or the server"
    assert {observer.wait().finish_reason for observer in observers} == {FinishReason.CANCELLED}
    for stream, observer in zip(streams, observers, strict=True):
        assert [item async for item in stream][-1] == observer.wait()
        stream.close()
    assert server.asked().gone.wait(30)
    assert not engine.alive()
    assert (engine.stats().waiting, engine.stats().running) == (0, 0)
    with pytest.raises(EngineStopped):
        engine.submit(request(), observer=RecordingObserver())


def test_a_stream_nobody_reads_is_finished_after_the_grace(serve: Start) -> None:
    engine, _ = serve(like_vllm("abcde"), reader_grace_s=0.2)
    observer = RecordingObserver()

    engine.submit(request(max_tokens=5), observer=observer)

    done = observer.wait()
    assert (done.finish_reason, done.generated_tokens, done.delivered_tokens) == (FinishReason.LENGTH, 5, 0)


async def test_whatever_happens_every_accepted_sequence_is_finished_once(serve: Start) -> None:
    """Servers that answer and that break, readers that read, leave and never come, all at once."""
    scripts = [like_vllm("abcdefghij"), endless, cut_midway, like_llama_cpp("ab", "cd", completion=5), end_midway]
    engine, _ = serve(*scripts * 12, max_running=5, max_waiting=200, reader_grace_s=0.2)
    observers = [RecordingObserver() for _ in range(60)]

    async def behave(number: int) -> None:
        hurried = replace(request(str(number), max_tokens=50), deadline_s=0.5 if number % 5 == 0 else None)
        stream = engine.submit(hurried, observer=observers[number])
        if number % 4 == 0:
            stream.close()
        elif number % 4 == 1:
            async for _ in stream:
                stream.close()
        elif number % 4 == 2:
            await read(stream)

    await asyncio.gather(*map(behave, range(60)))
    done = [await asyncio.to_thread(observer.wait) for observer in observers]

    assert [completion.id for completion in done] == [str(number) for number in range(60)]
    assert all(0 <= completion.delivered_tokens <= completion.generated_tokens for completion in done)
    assert all(completion.delivered_tokens == completion.generated_tokens for completion in done[2::4])
    stats = engine.stats()
    assert (stats.waiting, stats.running, stats.requests) == (0, 0, 60)
