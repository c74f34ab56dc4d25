"""generation.engine serves everyone, ends everyone exactly once, and survives what one sequence does."""

import asyncio
import logging
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence

import pytest

from generation.engine import LocalEngine
from generation.errors import ContextLengthExceeded, EngineFull, EngineStopped
from generation.scheduler import Work
from generation.sequence import SequenceState
from generation.step import DeviceLost
from generation.types import Completion, Delta, FinishReason
from tests.generation.fakes import EOS, RecordingObserver, ScriptedRunner, read, request, scripted_engine

Plan = Sequence[Work[SequenceState]]


@pytest.fixture
def start() -> Iterator[Callable[..., LocalEngine]]:
    """Make engines that are closed after the test."""
    engines: list[LocalEngine] = []

    def start_engine(runner: ScriptedRunner, **settings: float) -> LocalEngine:
        engines.append(scripted_engine(runner, **settings))  # type: ignore[arg-type]
        return engines[-1]

    yield start_engine
    for engine in engines:
        engine.close()


class Gate:
    """Holds the engine thread before a step until the test lets it through."""

    def __init__(self) -> None:
        self._open = threading.Semaphore(0)
        self.reached = threading.Semaphore(0)
        self._free = False

    def __call__(self, plan: Plan) -> None:
        if not self._free:
            self.reached.release()
            self._open.acquire(timeout=10)

    def step(self, count: int = 1) -> None:
        """Let `count` steps happen; each must be on its way."""
        for _ in range(count):
            assert self.reached.acquire(timeout=10)
            self._open.release()

    def free(self) -> None:
        """Hold nothing any more."""
        self._free = True
        self._open.release(1000)


def names(plan: Plan) -> set[str]:
    return {work.sequence.request.id for work in plan}


def wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < deadline, "it never happened"
        time.sleep(0.002)


def test_the_engine_itself_needs_no_torch() -> None:
    program = "import sys, generation.engine; sys.exit('torch' in sys.modules or 'transformers' in sys.modules)"

    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


async def test_a_sequence_streams_its_text_and_ends_at_its_length(start: Callable[..., LocalEngine]) -> None:
    engine = start(ScriptedRunner("abcdef"))
    observer = RecordingObserver()

    deltas, done = await read(engine.submit(request(max_tokens=3), observer=observer))

    assert [delta.text for delta in deltas] == ["a", "b", "c"]
    assert (done.text, done.finish_reason, done.prompt_tokens, done.delivered_tokens) == (
        "abc",
        FinishReason.LENGTH,
        3,
        3,
    )
    assert done.error is None
    assert observer.wait() == done


async def test_the_end_of_sequence_token_counts_but_has_no_text(start: Callable[..., LocalEngine]) -> None:
    engine = start(ScriptedRunner("ab"))

    _, done = await read(engine.submit(request(), observer=RecordingObserver()))

    assert (done.text, done.token_ids, done.finish_reason) == ("ab", (ord("a"), ord("b"), EOS), FinishReason.STOP)
    assert done.delivered_tokens == 3


async def test_the_end_of_sequence_token_can_be_ignored(start: Callable[..., LocalEngine]) -> None:
    engine = start(ScriptedRunner("ab"))

    _, done = await read(engine.submit(request(max_tokens=5, ignore_eos=True), observer=RecordingObserver()))

    assert (done.text, done.finish_reason, len(done.token_ids)) == ("ab", FinishReason.LENGTH, 5)


async def test_a_stop_string_over_several_tokens_ends_the_text_before_it(start: Callable[..., LocalEngine]) -> None:
    engine = start(ScriptedRunner("so ENd it is END of story"))

    deltas, done = await read(engine.submit(request(max_tokens=30, stop=("END",)), observer=RecordingObserver()))

    assert (done.text, done.finish_reason) == ("so ENd it is ", FinishReason.STOP)
    assert len(done.token_ids) == len("so ENd it is END")
    assert "".join(delta.text for delta in deltas) == done.text


async def test_timings_are_in_order(start: Callable[..., LocalEngine]) -> None:
    engine = start(ScriptedRunner(before_step=lambda plan: time.sleep(0.01)))

    _, done = await read(engine.submit(request(max_tokens=4), observer=RecordingObserver()))

    timings = done.timings
    assert timings.first_token_ms is not None
    assert 0 <= timings.queue_ms <= timings.first_token_ms - 9 <= timings.total_ms - 30


async def test_two_streams_advance_side_by_side(start: Callable[..., LocalEngine]) -> None:
    gate = Gate()
    engine = start(ScriptedRunner(before_step=gate))
    first = engine.submit(request("first"), observer=RecordingObserver())
    second = engine.submit(request("second"), observer=RecordingObserver())
    readers = aiter(first), aiter(second)

    for letter in "abcd":
        gate.step(2 if letter == "a" else 1)  # the second may have come one step later
        assert [await anext(reader) for reader in readers] == [Delta(letter, 1)] * 2
    gate.free()


async def test_a_long_prompt_is_read_in_chunks_beside_a_stream(start: Callable[..., LocalEngine]) -> None:
    gate = Gate()
    runner = ScriptedRunner(before_step=gate)
    engine = start(runner, max_running=2, step_tokens=8)
    short = engine.submit(request("short", prompt=[1], max_tokens=20), observer=RecordingObserver())
    assert gate.reached.acquire(timeout=10)
    gate.reached.release()
    long = engine.submit(request("long", prompt=range(1, 20), max_tokens=1), observer=RecordingObserver())
    gate.free()

    await read(short)
    await read(long)

    assert runner.plans[:4] == [{"short": 1}, *[{"short": 1, "long": 7}] * 2, {"short": 1, "long": 5}]


async def test_a_request_that_exceeds_the_context_window_is_refused(start: Callable[..., LocalEngine]) -> None:
    engine = start(ScriptedRunner(), context_window=10)

    with pytest.raises(ContextLengthExceeded) as caught:
        engine.submit(request(prompt=range(1, 7), max_tokens=5), observer=RecordingObserver())
    await read(engine.submit(request(prompt=range(1, 6), max_tokens=5), observer=RecordingObserver()))

    assert (caught.value.prompt_tokens, caught.value.max_tokens, caught.value.context_window) == (6, 5, 10)


@pytest.mark.parametrize("prompt", [[], [-1], [0x110000]])
def test_a_prompt_the_model_has_no_ids_for_is_refused(start: Callable[..., LocalEngine], prompt: list[int]) -> None:
    with pytest.raises(ValueError, match="token id"):
        start(ScriptedRunner()).submit(request(prompt=prompt), observer=RecordingObserver())


async def test_a_full_line_refuses_at_once_and_takes_more_when_it_has_moved(start: Callable[..., LocalEngine]) -> None:
    gate = Gate()
    engine = start(ScriptedRunner(before_step=gate), max_running=1, max_waiting=2)
    running = engine.submit(request("running"), observer=RecordingObserver())
    wait_until(lambda: engine.stats().running == 1)
    waiting = [engine.submit(request(f"waiting-{n}"), observer=RecordingObserver()) for n in range(2)]

    with pytest.raises(EngineFull) as caught:
        engine.submit(request("too much"), observer=RecordingObserver())
    stats = engine.stats()
    gate.free()
    await asyncio.gather(*map(read, [running, *waiting]))
    await read(engine.submit(request("later"), observer=RecordingObserver()))

    assert 1 <= caught.value.retry_after_s <= 60
    assert (stats.running, stats.waiting, stats.capacity) == (1, 2, 1)


def test_many_threads_submitting_at_once_never_exceed_the_line(start: Callable[..., LocalEngine]) -> None:
    gate = Gate()
    engine = start(ScriptedRunner(before_step=gate), max_running=1, max_waiting=5)
    engine.submit(request("running"), observer=RecordingObserver())
    wait_until(lambda: engine.stats().running == 1)
    outcomes: list[bool] = []

    def submit() -> None:
        try:
            engine.submit(request(), observer=RecordingObserver())
        except EngineFull:
            outcomes.append(False)
        else:
            outcomes.append(True)

    threads = [threading.Thread(target=submit) for _ in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    gate.free()

    assert outcomes.count(True) == 5
    assert len(outcomes) == 20


async def test_statistics_count_what_was_done(start: Callable[..., LocalEngine]) -> None:
    engine = start(ScriptedRunner(), step_tokens=8)

    await asyncio.gather(
        *(
            read(engine.submit(request(prompt=range(1, 12), max_tokens=4), observer=RecordingObserver()))
            for _ in range(3)
        )
    )

    stats = engine.stats()
    assert (stats.prefill_tokens, stats.decode_tokens, stats.requests, stats.cancelled) == (33, 12, 3, 0)
    assert (stats.waiting, stats.running) == (0, 0)


async def test_closing_a_stream_frees_its_slot_within_one_step(start: Callable[..., LocalEngine]) -> None:
    gate = Gate()
    runner = ScriptedRunner(before_step=gate)
    engine = start(runner)
    observer = RecordingObserver()
    leaver = engine.submit(request("leaver", max_tokens=100), observer=observer)
    stayer = engine.submit(request("stayer", max_tokens=20), observer=RecordingObserver())
    gate.step(3)
    assert gate.reached.acquire(timeout=10)  # the engine stands before a step that still has both
    leaver.close()
    gate.reached.release()
    before = len(runner.plans)
    gate.free()

    done = observer.wait()
    _, stayed = await read(stayer)

    assert done.finish_reason is FinishReason.CANCELLED
    assert all("leaver" not in plan for plan in runner.plans[before + 1 :])
    assert stayed.text == "abcdefghij" * 2
    assert runner.held == []
    assert engine.stats().cancelled == 1


async def test_a_waiting_sequence_can_be_cancelled(start: Callable[..., LocalEngine]) -> None:
    gate = Gate()
    runner = ScriptedRunner(before_step=gate)
    engine = start(runner, max_running=1)
    running = engine.submit(request("running"), observer=RecordingObserver())
    observer = RecordingObserver()
    waiting = engine.submit(request("waiting"), observer=observer)

    waiting.close()
    gate.step(2)
    done = observer.wait()
    gate.free()
    await read(running)

    assert (done.finish_reason, done.token_ids, done.timings.first_token_ms) == (FinishReason.CANCELLED, (), None)
    assert all("waiting" not in plan for plan in runner.plans)
    assert [item async for item in waiting] == [done]


async def test_a_cancelled_sequence_reports_what_its_reader_took(start: Callable[..., LocalEngine]) -> None:
    gate = Gate()
    engine = start(ScriptedRunner(before_step=gate))
    observer = RecordingObserver()
    stream = engine.submit(request(max_tokens=100), observer=observer)
    reader = aiter(stream)
    gate.step(5)
    for _ in range(2):
        await anext(reader)
    wait_until(lambda: engine.stats().decode_tokens == 5)

    stream.close()
    gate.free()
    done = observer.wait()

    assert done.delivered_tokens == 2
    assert 5 <= len(done.token_ids) <= 6


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
        if any(work.sequence.request.id == "culprit" and work.sequence.generated for work in plan):
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
        everyone_is_in.wait(10)
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
