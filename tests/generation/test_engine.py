"""generation.engine serves several sequences side by side, refuses early and lets go at once."""

import asyncio
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence

import pytest

from generation.engine import LocalEngine
from generation.errors import ContextLengthExceeded, EngineFull
from generation.streaming import IncrementalDecoder
from generation.types import Delta, FinishReason
from tests.generation.fakes import (
    EOS,
    Gate,
    Plan,
    RecordingObserver,
    ScriptedRunner,
    letters,
    read,
    request,
    wait_until,
)


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


async def test_a_line_of_long_prompts_is_full_before_it_is_long(start: Callable[..., LocalEngine]) -> None:
    gate = Gate()
    engine = start(ScriptedRunner(before_step=gate), max_running=1, max_waiting_tokens=10)
    running = engine.submit(request("running"), observer=RecordingObserver())
    wait_until(lambda: engine.stats().running == 1)
    alone = engine.submit(request("alone", prompt=range(12)), observer=RecordingObserver())

    with pytest.raises(EngineFull):
        engine.submit(request("behind", prompt=[1]), observer=RecordingObserver())
    waiting = engine.stats().waiting_tokens
    alone.close()
    gate.step()  # the loop looks who left between two steps
    wait_until(lambda: engine.stats().waiting == 0)
    fits = [engine.submit(request(f"{n}", prompt=range(n)), observer=RecordingObserver()) for n in (4, 6)]
    with pytest.raises(EngineFull):
        engine.submit(request("one more", prompt=[1]), observer=RecordingObserver())
    gate.free()
    await asyncio.gather(*map(read, [running, *fits]))

    assert waiting == 12, "one that waits alone may be longer than the line"
    assert engine.stats().waiting_tokens == 0


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


@pytest.mark.parametrize("overlaps", [False, True])
async def test_where_a_device_computes_text_is_streamed_while_the_next_step_runs(
    overlaps: bool, start: Callable[..., LocalEngine]
) -> None:
    shown: list[int] = []
    runner = ScriptedRunner(
        letters(6),
        before_step=lambda plan: shown.append(len("".join(plan[0].sequence.text))),
        overlaps=overlaps,
    )

    _, done = await read(start(runner).submit(request(max_tokens=6), observer=RecordingObserver()))

    assert done.text == letters(6)
    assert shown == ([0, 0, 1, 2, 3, 4] if overlaps else [0, 1, 2, 3, 4, 5])


@pytest.mark.parametrize("overlaps", [False, True])
async def test_a_stop_string_ends_a_sequence_before_its_next_step(
    overlaps: bool, start: Callable[..., LocalEngine]
) -> None:
    runner = ScriptedRunner(letters(9), overlaps=overlaps)
    asked = request(max_tokens=9, stop=("cd",))

    _, done = await read(start(runner).submit(asked, observer=RecordingObserver()))

    assert (done.text, len(done.token_ids), len(runner.plans)) == ("ab", 4, 4)


async def test_a_text_that_cannot_be_decoded_behind_its_step_ends_its_own_sequence_alone(
    start: Callable[..., LocalEngine],
) -> None:
    def broken(ids: Sequence[int]) -> str:
        raise ValueError("no such piece")

    def break_one(plan: Plan) -> None:
        for work in plan:
            if work.sequence.request.id == "bad" and len(work.sequence.generated) == 2:
                work.sequence.decoder = IncrementalDecoder(broken)

    engine = start(ScriptedRunner(letters(6), before_step=break_one, overlaps=True))
    streams = [engine.submit(request(name, max_tokens=6), observer=RecordingObserver()) for name in ("bad", "good")]

    (_, bad), (_, good) = await asyncio.gather(*map(read, streams))

    assert bad.error is not None
    assert good.text == letters(6)
