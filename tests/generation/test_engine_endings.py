"""generation.engine ends every sequence exactly once, tells its observer, and survives what one sequence does."""

import asyncio
import logging
import threading
import time
from collections.abc import Callable
from dataclasses import replace

import pytest

from generation.engine import LocalEngine
from generation.errors import EngineStopped
from generation.sequence import SequenceState
from generation.step import DeviceLost
from generation.types import Completion, Delta, FinishReason
from tests.generation.fakes import Gate, Plan, RecordingObserver, ScriptedRunner, names, read, request, wait_until


async def test_the_observer_hears_of_progress_every_32_tokens_and_then_of_the_end(
    start: Callable[..., LocalEngine],
) -> None:
    engine = start(ScriptedRunner())
    observer = RecordingObserver()

    await read(engine.submit(request(max_tokens=100), observer=observer))

    assert observer.checkpoints == [32, 64, 96]
    assert len(observer.wait().token_ids) == 100


async def test_the_completion_comes_after_the_observer_was_told(start: Callable[..., LocalEngine]) -> None:
    class Slow(RecordingObserver):
        def finish(self, completion: Completion) -> None:
            time.sleep(0.1)
            super().finish(completion)

    observer = Slow()
    engine = start(ScriptedRunner())

    async for item in engine.submit(request(), observer=observer):
        assert observer.finished.is_set() == isinstance(item, Completion)


async def test_a_failing_observer_is_logged_and_the_stream_ends_well(
    start: Callable[..., LocalEngine], caplog: pytest.LogCaptureFixture
) -> None:
    engine = start(ScriptedRunner())
    observer = RecordingObserver(raises=True)

    with caplog.at_level(logging.ERROR, "footnote.generation"):
        _, done = await read(engine.submit(request(max_tokens=40), observer=observer))

    assert done.finish_reason is FinishReason.LENGTH
    assert [record.getMessage() for record in caplog.records] == ["an observer failed"] * 2
    assert observer.wait() is not None


async def test_a_text_that_goes_round_in_a_circle_is_stopped_where_that_is_asked_for(
    start: Callable[..., LocalEngine],
) -> None:
    says = "It is the heat of" + " the heat of" * 50
    engine, observer = start(ScriptedRunner(says)), RecordingObserver()

    deltas, done = await read(engine.submit(request(max_tokens=500, stop_repetition=True), observer=observer))
    _, whole = await read(engine.submit(request(max_tokens=500), observer=RecordingObserver()))

    assert done.finish_reason is FinishReason.REPETITION
    assert (done.text, done.error) == ("It is" + " the heat of" * 5 + " the", None), "a piece of 12 letters, 64 of them"
    assert sum(delta.tokens for delta in deltas) == len(done.token_ids) == len(done.text)
    assert observer.wait().finish_reason is FinishReason.REPETITION
    assert (whole.finish_reason, whole.text) == (FinishReason.LENGTH, says[:500])


def test_a_stream_nobody_reads_is_finished_after_the_grace(start: Callable[..., LocalEngine]) -> None:
    engine = start(ScriptedRunner(), reader_grace_s=0.2)
    observer = RecordingObserver()
    began = time.monotonic()

    engine.submit(request(max_tokens=5), observer=observer)

    done = observer.wait()
    assert time.monotonic() - began >= 0.2
    assert (done.finish_reason, len(done.token_ids), done.delivered_tokens) == (FinishReason.LENGTH, 5, 0)


def test_a_stream_nobody_reads_is_finished_at_once_when_closed(start: Callable[..., LocalEngine]) -> None:
    engine = start(ScriptedRunner(), reader_grace_s=30)
    observer = RecordingObserver()
    stream = engine.submit(request(max_tokens=5), observer=observer)
    wait_until(lambda: engine.stats().decode_tokens == 5)
    assert not observer.finished.wait(0.1)

    stream.close()

    assert observer.wait().finish_reason is FinishReason.LENGTH, "it had ended before the reader left"


async def test_a_slow_reader_gets_everything_but_the_books_close_without_it(start: Callable[..., LocalEngine]) -> None:
    engine = start(ScriptedRunner(), reader_grace_s=0.1)
    observer = RecordingObserver()
    stream = engine.submit(request(max_tokens=6), observer=observer)
    reader = aiter(stream)
    await anext(reader)

    done = await asyncio.to_thread(observer.wait)
    rest = [item async for item in reader]

    assert done.delivered_tokens == 1
    assert rest == [*(Delta(letter, 1) for letter in "bcdef"), done]


async def test_a_step_that_fails_ends_only_the_sequence_that_makes_it_fail(
    start: Callable[..., LocalEngine], caplog: pytest.LogCaptureFixture
) -> None:
    def explode(plan: Plan) -> None:
        if "culprit" in names(plan) and all(work.sequence.generated for work in plan):
            raise RuntimeError("secret detail")

    engine = start(ScriptedRunner(before_step=explode))
    asked = [request(name, max_tokens=6) for name in ("one", "culprit", "two")]

    outcomes = await asyncio.gather(*(read(engine.submit(each, observer=RecordingObserver())) for each in asked))
    one, culprit, two = (done for _, done in outcomes)

    assert (one.text, two.text) == ("abcdef", "abcdef")
    assert (culprit.finish_reason, culprit.text) == (FinishReason.ERROR, "a")
    assert culprit.error == "The model failed on this sequence."
    assert "secret detail" in caplog.text
    assert engine.alive()


async def test_a_prompt_that_could_not_be_read_is_not_counted_as_read(start: Callable[..., LocalEngine]) -> None:
    def explode(plan: Plan) -> None:
        if "culprit" in names(plan):
            raise RuntimeError

    engine = start(ScriptedRunner(before_step=explode))

    for name in ("culprit", "well"):
        await read(engine.submit(request(name, prompt=range(1, 8)), observer=RecordingObserver()))

    assert engine.stats().prefill_tokens == 7


@pytest.mark.parametrize("reason", [FinishReason.CANCELLED, FinishReason.DEADLINE])
async def test_a_sequence_that_ends_in_the_waiting_line_cost_nothing(
    start: Callable[..., LocalEngine], reason: FinishReason
) -> None:
    gate = Gate()
    engine = start(ScriptedRunner(before_step=gate), max_running=1)
    first, observer = engine.submit(request("first"), observer=RecordingObserver()), RecordingObserver()
    late = reason is FinishReason.DEADLINE
    queued = engine.submit(replace(request("queued"), deadline_s=0.0 if late else None), observer=observer)

    if not late:
        queued.close()
    gate.free()
    done = await asyncio.to_thread(observer.wait)
    _, whole = await read(first)

    assert (done.finish_reason, done.prompt_tokens, done.cached_tokens, done.generated_tokens) == (reason, 0, 0, 0)
    assert whole.prompt_tokens == engine.stats().prefill_tokens == 3


async def test_a_sequence_with_a_place_that_never_got_a_share_of_a_step_cost_nothing(
    start: Callable[..., LocalEngine],
) -> None:
    gate = Gate()
    runner = ScriptedRunner(before_step=gate)
    engine = start(runner, step_tokens=4, max_running=2)
    long = engine.submit(request("long", prompt=range(1, 41)), observer=RecordingObserver())
    wait_until(lambda: engine.stats().running == 1)
    observer = RecordingObserver()
    behind = engine.submit(request("behind"), observer=observer)
    gate.step()  # until here it waited in the inbox
    wait_until(lambda: engine.stats().running == 2)

    behind.close()
    gate.free()
    done = await asyncio.to_thread(observer.wait)
    await read(long)

    assert all("behind" not in plan for plan in runner.plans)
    assert (done.finish_reason, done.prompt_tokens) == (FinishReason.CANCELLED, 0)
    assert engine.stats().prefill_tokens == 40


async def test_a_sequence_that_began_to_be_read_is_billed_its_prompt(start: Callable[..., LocalEngine]) -> None:
    gate = Gate()
    engine = start(ScriptedRunner(before_step=gate), step_tokens=4, max_running=2)
    observer = RecordingObserver()
    stream = engine.submit(request(prompt=range(1, 41)), observer=observer)
    gate.step(2)

    stream.close()
    gate.free()

    assert observer.wait().prompt_tokens == 40
    assert 0 < engine.stats().prefill_tokens < 40


async def test_no_room_for_one_sequence_ends_that_one(start: Callable[..., LocalEngine]) -> None:
    def refuse(sequence: SequenceState) -> None:
        if sequence.request.id == "huge":
            raise MemoryError

    runner = ScriptedRunner(on_allocate=refuse)
    engine = start(runner)

    _, huge = await read(engine.submit(request("huge"), observer=RecordingObserver()))
    _, small = await read(engine.submit(request("small"), observer=RecordingObserver()))

    assert (huge.finish_reason, small.finish_reason) == (FinishReason.ERROR, FinishReason.LENGTH)
    assert (engine.stats().running, runner.held) == (0, [])


async def test_logits_that_are_not_numbers_end_their_sequence_alone(start: Callable[..., LocalEngine]) -> None:
    class Sick(ScriptedRunner):
        def next_token(self, index: int) -> int | None:
            return None if index == 2 else super().next_token(index)

    engine = start(Sick())

    _, sick = await read(engine.submit(request("sick", max_tokens=5), observer=RecordingObserver()))
    _, well = await read(engine.submit(request("well", max_tokens=2), observer=RecordingObserver()))

    assert (sick.finish_reason, sick.text) == (FinishReason.ERROR, "ab")
    assert well.finish_reason is FinishReason.LENGTH


@pytest.mark.parametrize("way", ["device", "release"])
async def test_when_the_thread_dies_everyone_is_told_and_nothing_new_is_taken(
    start: Callable[..., LocalEngine], way: str
) -> None:
    everyone_is_in = threading.Event()

    def lose_the_device(plan: Plan) -> None:
        everyone_is_in.wait(30)
        if way == "device" and any(len(work.sequence.generated) == 3 for work in plan):
            raise DeviceLost

    def fail_to_release(sequence: SequenceState) -> None:
        raise RuntimeError("the books do not balance")

    runner = ScriptedRunner(
        before_step=lose_the_device, on_release=fail_to_release if way == "release" else lambda sequence: None
    )
    engine = start(runner, max_running=2)
    observers = [RecordingObserver() for _ in range(4)]

    streams = [
        engine.submit(request(str(number), max_tokens=4 if number == 0 else 50), observer=observer)
        for number, observer in enumerate(observers)
    ]
    everyone_is_in.set()
    outcomes = await asyncio.gather(*map(read, streams))

    wait_until(lambda: not engine.alive())
    first, *others = [done for _, done in outcomes]
    assert first.finish_reason is (FinishReason.ERROR if way == "device" else FinishReason.LENGTH)
    assert [done.finish_reason for done in others] == [FinishReason.ERROR] * 3
    assert {done.error for done in others} == {"The generation engine stopped unexpectedly."}
    assert [observer.wait() for observer in observers] == [done for _, done in outcomes]
    with pytest.raises(EngineStopped):
        engine.submit(request(), observer=RecordingObserver())


async def test_closing_the_engine_cancels_everyone_and_tells_the_observers(start: Callable[..., LocalEngine]) -> None:
    engine = start(ScriptedRunner(before_step=lambda plan: time.sleep(0.005)), max_running=1, reader_grace_s=30)
    observers = [RecordingObserver() for _ in range(3)]
    streams = [
        engine.submit(request(str(number), max_tokens=900), observer=observer)
        for number, observer in enumerate(observers)
    ]
    wait_until(lambda: engine.stats().decode_tokens > 0)
    began = time.monotonic()

    engine.close()
    engine.close()

    assert time.monotonic() - began < 5, "it waited for readers"
    assert [len(observer.completions) for observer in observers] == [1, 1, 1]
    assert {observer.completions[0].finish_reason for observer in observers} == {FinishReason.CANCELLED}
    for stream, observer in zip(streams, observers, strict=True):
        assert [item async for item in stream][-1] == observer.completions[0]
    assert not engine.alive()
    with pytest.raises(EngineStopped):
        engine.submit(request(), observer=RecordingObserver())


def test_an_idle_engine_uses_no_processor_time(start: Callable[..., LocalEngine]) -> None:
    engine = start(ScriptedRunner())
    asyncio.run(read(engine.submit(request(), observer=RecordingObserver())))
    before = time.process_time()

    time.sleep(0.5)

    assert time.process_time() - before < 0.1


async def test_whatever_happens_every_accepted_sequence_is_finished_once(start: Callable[..., LocalEngine]) -> None:
    """Readers that read, leave at once, leave midway, and never come, at random moments."""
    engine = start(ScriptedRunner(), max_running=3, max_waiting=200, reader_grace_s=0.3)
    observers = [RecordingObserver() for _ in range(60)]

    async def behave(number: int) -> None:
        stream = engine.submit(request(str(number), max_tokens=1 + number % 40), observer=observers[number])
        taken = 0
        if number % 4 == 0:
            stream.close()
        elif number % 4 == 1:
            async for item in stream:
                taken += item.tokens if isinstance(item, Delta) else 0
                if taken == number % 7:
                    stream.close()
        elif number % 4 == 2:
            await read(stream)

    await asyncio.gather(*map(behave, range(60)))
    done = [await asyncio.to_thread(observer.wait) for observer in observers]

    assert [completion.id for completion in done] == [str(number) for number in range(60)]
    assert all(0 <= completion.delivered_tokens <= len(completion.token_ids) for completion in done)
    assert all(completion.delivered_tokens == len(completion.token_ids) for completion in done[2::4])
    stats = engine.stats()
    assert (stats.waiting, stats.running, stats.requests) == (0, 0, 60)
