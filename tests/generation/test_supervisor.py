"""generation.supervisor replaces an engine that died, and its counts never go down."""

import asyncio
import gc
import itertools
import logging
import math
import threading
import time
import weakref
from collections.abc import Callable, Iterator, Sequence
from dataclasses import fields, replace
from inspect import signature

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from generation.errors import ContextLengthExceeded, EngineStopped, ModelUnavailable
from generation.ports import Engine, Observer, Stream
from generation.step import DeviceLost
from generation.supervisor import Backoff, SupervisedEngine
from generation.types import EngineStats, FinishReason, GenerationRequest, Histogram, ModelInfo
from tests.generation.fakes import Plan, RecordingObserver, ScriptedRunner, read, request, scripted_engine, wait_until

QUICK = Backoff(first_s=0.01, longest_s=0.05)
IDLE = EngineStats(
    waiting=0, running=0, capacity=8, prefill_tokens=0, decode_tokens=0, requests=0, cancelled=0, block_tokens=16
)


class FakeEngine:
    """An engine whose death and counts a test decides."""

    def __init__(self, counts: EngineStats = IDLE, *, window: int = 64) -> None:
        self.counts = counts
        self.dead = False
        self.closed = 0
        self.looks_at_the_dead = 0
        self.fails_to_close = False
        self.info = ModelInfo(model="fake", revision="0", context_window=window, device="cpu", dtype="float32")

    def submit(self, request: GenerationRequest, *, observer: Observer) -> Stream:
        raise ContextLengthExceeded(prompt_tokens=1, max_tokens=1, context_window=1)

    def cached_tokens(self, prompt: Sequence[int], *, salt: str) -> int:
        return 0

    def stats(self) -> EngineStats:
        return self.counts

    def alive(self) -> bool:
        self.looks_at_the_dead += self.dead and not self.closed
        return not self.dead and not self.closed

    def close(self) -> None:
        self.closed += 1
        if self.fails_to_close:
            raise RuntimeError("the device does not answer")


class Factory:
    """Makes the given engines in turn, the last one over and over; an exception in their place is raised."""

    def __init__(self, *made: Engine | BaseException) -> None:
        self._made = [*made]
        self.calls: list[float] = []

    def __call__(self) -> Engine:
        self.calls.append(time.monotonic())
        made = self._made.pop(0) if len(self._made) > 1 else self._made[0]
        if isinstance(made, BaseException):
            raise made
        return made


@pytest.fixture
def supervise() -> Iterator[Callable[..., SupervisedEngine]]:
    """Make supervised engines that are closed after the test."""
    supervised: list[SupervisedEngine] = []

    def start(factory: Callable[[], Engine], backoff: Backoff = QUICK) -> SupervisedEngine:
        supervised.append(SupervisedEngine(factory, backoff=backoff))
        return supervised[-1]

    yield start
    for engine in supervised:
        engine.close()


async def test_the_engines_thread_dies_and_within_seconds_another_one_serves(
    supervise: Callable[..., SupervisedEngine],
) -> None:
    """Over real engines: everyone in flight is told once, then the next engine answers."""
    everyone_is_in = threading.Event()

    def lose_the_device(plan: Plan) -> None:
        everyone_is_in.wait(10)
        raise DeviceLost

    runners = iter([ScriptedRunner(before_step=lose_the_device), ScriptedRunner()])
    engine = supervise(lambda: scripted_engine(next(runners), max_running=2), Backoff(first_s=2.0))
    observers = [RecordingObserver() for _ in range(4)]
    streams = [engine.submit(request(str(n)), observer=observer) for n, observer in enumerate(observers)]

    everyone_is_in.set()
    outcomes = await asyncio.gather(*map(read, streams))  # type: ignore[arg-type]  # a LocalEngine's streams

    assert not engine.alive(), "whoever was told can see it: nobody has to wait for a look"
    with pytest.raises(EngineStopped, match="restarting"):
        engine.submit(request(), observer=RecordingObserver())
    assert {done.finish_reason for _, done in outcomes} == {FinishReason.ERROR}
    assert [observer.wait() for observer in observers] == [done for _, done in outcomes]
    wait_until(engine.alive)
    _, done = await read(engine.submit(request(max_tokens=3), observer=RecordingObserver()))  # type: ignore[arg-type]
    assert (done.finish_reason, done.text) == (FinishReason.LENGTH, "abc")
    assert all(len(observer.completions) == 1 for observer in observers), "someone was told twice"
    stats = engine.stats()
    assert (stats.restarts, stats.requests, stats.decode_tokens, stats.running) == (1, 5, 3, 0)


async def test_a_dead_engine_is_out_of_memory_before_the_next_one_is_made(
    supervise: Callable[..., SupervisedEngine], caplog: pytest.LogCaptureFixture
) -> None:
    def die(plan: Plan) -> None:
        raise DeviceLost

    dead: list[weakref.ref[Engine]] = []
    seen_at_restart: list[bool] = []

    def factory() -> Engine:
        seen_at_restart.extend(reference() is not None for reference in dead)
        made = scripted_engine(ScriptedRunner(before_step=die))
        dead.append(weakref.ref(made))
        return made

    caplog.set_level(logging.CRITICAL + 1, "footnote.generation")  # a captured traceback would hold the engine
    engine = supervise(factory, Backoff(first_s=0.3))
    gc.freeze()  # as the application does once everything is loaded
    try:
        await read(engine.submit(request(), observer=RecordingObserver()))  # type: ignore[arg-type]
        wait_until(lambda: engine.stats().restarts == 1)
    finally:
        gc.unfreeze()

    assert seen_at_restart == [False]


async def test_it_recovers_from_one_death_after_the_other(supervise: Callable[..., SupervisedEngine]) -> None:
    def die_at_the_third_token(plan: Plan) -> None:
        if any(len(work.sequence.generated) == 3 for work in plan):
            raise DeviceLost

    engine = supervise(lambda: scripted_engine(ScriptedRunner(before_step=die_at_the_third_token)))
    for death in range(3):
        wait_until(engine.alive)
        _, done = await read(engine.submit(request(), observer=RecordingObserver()))  # type: ignore[arg-type]
        assert (done.finish_reason, done.text) == (FinishReason.ERROR, "abc")
        wait_until(lambda: engine.stats().restarts == death + 1)  # noqa: B023 - waits here and now

    assert (engine.stats().requests, engine.stats().decode_tokens) == (3, 9)


def test_a_death_is_seen_at_once_and_acted_on_at_the_next_look(supervise: Callable[..., SupervisedEngine]) -> None:
    """Looks are a tenth of a second apart: counted, not timed, because a busy machine may delay any of them."""
    engines = [FakeEngine(window=window) for window in (64, 48, 40, 32)]
    engine = supervise(Factory(*engines))

    for dying in engines[:-1]:
        wait_until(engine.alive)
        dying.dead = True
        assert not engine.alive(), "whoever asks first is told"
        wait_until(lambda: dying.closed == 1)  # noqa: B023 - waits here and now
        assert dying.looks_at_the_dead == 2, "ours, and the one at which the supervisor closed it"

    wait_until(engine.alive)
    assert engine.info.context_window == 32
    assert signature(SupervisedEngine).parameters["watch_s"].default <= 0.1


def test_while_there_is_no_engine_its_model_is_still_known_and_its_blocks_are_gone(
    supervise: Callable[..., SupervisedEngine],
) -> None:
    dying = FakeEngine(replace(IDLE, waiting=3, running=2, requests=9, free_blocks=1, used_blocks=2, cached_blocks=4))
    engine = supervise(Factory(dying, RuntimeError("out of memory")))

    dying.dead = True
    wait_until(lambda: dying.closed == 1 and engine.stats().waiting == 0)

    assert engine.stats() == replace(IDLE, requests=9)
    assert engine.info == dying.info


def test_a_factory_that_fails_is_asked_again_with_growing_pauses(
    supervise: Callable[..., SupervisedEngine], caplog: pytest.LogCaptureFixture
) -> None:
    class Panic(BaseException):
        """What a native library raises when it panics."""

    dying = FakeEngine()
    factory = Factory(dying, RuntimeError("one"), Panic("two"), RuntimeError("three"), FakeEngine())
    engine = supervise(factory, Backoff(first_s=0.05, longest_s=0.1))

    dying.dead = True
    wait_until(engine.alive)

    pauses = [later - earlier for earlier, later in itertools.pairwise(factory.calls[1:])]
    assert len(pauses) == 3
    assert all(pause >= 0.1 for pause in pauses), "twice the first pause, up to the longest"
    assert [record.exc_text is not None and word in record.exc_text for word, record in _failures(caplog)] == [True] * 3
    assert engine.stats().restarts == 1


def _failures(caplog: pytest.LogCaptureFixture) -> list[tuple[str, logging.LogRecord]]:
    records = [record for record in caplog.records if record.getMessage() == "the engine could not be restarted"]
    return list(zip(("one", "two", "three"), records, strict=True))


def test_a_long_health_shortens_the_first_pause_of_a_series_only(supervise: Callable[..., SupervisedEngine]) -> None:
    dying, failure = FakeEngine(), RuntimeError("out of memory")
    factory = Factory(dying, failure, failure, failure, FakeEngine())
    engine = supervise(factory, Backoff(first_s=0.05, longest_s=0.2, healthy_s=0.1))
    time.sleep(0.15)

    dying.dead = True
    wait_until(engine.alive)

    pauses = [later - earlier for earlier, later in itertools.pairwise(factory.calls[1:])]
    assert all(pause >= wanted for pause, wanted in zip(pauses, (0.1, 0.2, 0.2), strict=True))


def test_a_death_between_the_look_and_the_submission_is_a_restart_too(
    supervise: Callable[..., SupervisedEngine],
) -> None:
    class Dying(FakeEngine):
        def submit(self, request: GenerationRequest, *, observer: Observer) -> Stream:
            raise EngineStopped("The generation engine is not running.")

    engine = supervise(Factory(Dying()))

    with pytest.raises(EngineStopped, match="restarting"):
        engine.submit(request(), observer=RecordingObserver())


def test_a_dead_engine_that_cannot_be_closed_is_replaced_all_the_same(
    supervise: Callable[..., SupervisedEngine], caplog: pytest.LogCaptureFixture
) -> None:
    dying = FakeEngine()
    dying.fails_to_close = True
    engine = supervise(Factory(dying, FakeEngine()))

    dying.dead = True
    wait_until(engine.alive)

    assert "the dead engine could not be closed" in caplog.text


def test_the_first_engines_failure_is_the_callers() -> None:
    with pytest.raises(ModelUnavailable):
        SupervisedEngine(Factory(ModelUnavailable("The model is not here.")))


def test_what_the_engine_refuses_is_refused_in_its_own_words(supervise: Callable[..., SupervisedEngine]) -> None:
    engine = supervise(Factory(FakeEngine()))

    with pytest.raises(ContextLengthExceeded):
        engine.submit(request(), observer=RecordingObserver())


@pytest.mark.parametrize("moment", ["serving", "between two attempts"])
def test_closing_ends_the_engine_and_no_other_comes(supervise: Callable[..., SupervisedEngine], moment: str) -> None:
    first = FakeEngine()
    factory = Factory(first, FakeEngine())
    engine = supervise(factory, Backoff(first_s=60.0, longest_s=60.0))
    if moment != "serving":
        first.dead = True
        wait_until(lambda: first.closed == 1)

    began = time.monotonic()
    engine.close()
    engine.close()

    assert time.monotonic() - began < 30, "it waited for the restart"
    assert first.closed >= 1
    assert not engine.alive()
    wait_until(lambda: "footnote-supervisor" not in {thread.name for thread in threading.enumerate()})
    assert len(factory.calls) == 1
    with pytest.raises(EngineStopped, match="not running"):
        engine.submit(request(), observer=RecordingObserver())


def test_an_engine_that_comes_out_of_a_hanging_factory_after_the_close_is_closed_as_it_comes() -> None:
    first, late = FakeEngine(), FakeEngine()
    engines, inside, go_on = iter([first, late]), threading.Event(), threading.Event()

    def factory() -> Engine:
        made = next(engines)
        if made is late:
            inside.set()
            go_on.wait(10)
        return made

    engine = SupervisedEngine(factory, backoff=QUICK)
    first.dead = True
    assert inside.wait(10)
    closer = threading.Thread(target=engine.close)
    closer.start()
    wait_until(lambda: not engine.alive())
    assert late.closed == 0

    go_on.set()
    closer.join(10)

    assert late.closed == 1, "close waits for an engine that is about to come"
    assert not engine.alive()
    assert engine.stats().restarts == 0


def test_closing_gives_up_on_a_factory_that_hangs(caplog: pytest.LogCaptureFixture) -> None:
    first, inside, go_on = FakeEngine(), threading.Event(), threading.Event()
    made: list[Engine] = []

    def factory() -> Engine:
        if made:
            inside.set()
            go_on.wait(30)
            return FakeEngine()
        made.append(first)
        return first

    engine = SupervisedEngine(factory, backoff=QUICK, patience_s=0.1)
    first.dead = True
    assert inside.wait(10)
    began = time.monotonic()

    engine.close()

    assert time.monotonic() - began < 5
    assert "being restarted" in caplog.text
    go_on.set()


def test_watching_costs_next_to_no_processor_time(supervise: Callable[..., SupervisedEngine]) -> None:
    engine = supervise(Factory(FakeEngine()))
    before = time.process_time()

    time.sleep(0.5)

    assert time.process_time() - before < 0.1
    assert engine.alive()


BLOCKS = {"free_blocks", "used_blocks", "cached_blocks", "block_tokens"}
PRESENT = {"waiting", "waiting_tokens", "running", "capacity"} | BLOCKS
LATENCIES = {"first_token_s", "inter_token_s"}
TOTALS = {field.name for field in fields(EngineStats)} - PRESENT - LATENCIES
totals = st.fixed_dictionaries({name: st.integers(0, 10**6) for name in sorted(TOTALS)})
histograms = st.none() | st.builds(
    Histogram,
    bounds=st.just((0.1, 1.0, math.inf)),
    counts=st.tuples(*[st.integers(0, 1000)] * 3),
    total_s=st.floats(0, 1000),
)


@settings(deadline=None, max_examples=10)
@given(lives=st.lists(st.tuples(totals, histograms, histograms), min_size=2, max_size=3))
def test_every_total_is_the_sum_over_all_engines_at_every_moment(
    lives: list[tuple[dict[str, int], Histogram | None, Histogram | None]],
) -> None:
    engines = [
        FakeEngine(replace(IDLE, **counted, first_token_s=first, inter_token_s=inter))
        for counted, first, inter in lives
    ]
    engine = SupervisedEngine(Factory(*engines), backoff=Backoff(first_s=0.001), watch_s=0.001)
    try:
        for number, inner in enumerate(engines[:-1]):
            inner.dead = True
            wait_until(lambda: engine.stats().restarts >= _restarts(lives, number) + number + 1)  # noqa: B023
        wait_until(engine.alive)

        seen = engine.stats()
        for name in lives[0][0]:
            own = len(lives) - 1 if name == "restarts" else 0
            assert getattr(seen, name) == sum(counted[name] for counted, _, _ in lives) + own
        for seen_one, each in (
            (seen.first_token_s, [life[1] for life in lives]),
            (seen.inter_token_s, [life[2] for life in lives]),
        ):
            given_ones = [one for one in each if one is not None]
            assert (seen_one is None) == (not given_ones)
            if seen_one is not None:
                assert seen_one.counts == tuple(map(sum, zip(*(one.counts for one in given_ones), strict=True)))
                assert seen_one.total_s == pytest.approx(sum(one.total_s for one in given_ones))
    finally:
        engine.close()


def _restarts(lives: list[tuple[dict[str, int], Histogram | None, Histogram | None]], number: int) -> int:
    return sum(counted["restarts"] for counted, _, _ in lives[: number + 2])


def test_a_count_added_to_the_stats_is_a_total_until_someone_says_it_is_not() -> None:
    assert {
        "prefill_tokens",
        "decode_tokens",
        "requests",
        "cancelled",
        "cached_tokens",
        "drafted_tokens",
        "accepted_tokens",
        "preemptions",
        "recomputed_tokens",
        "restarts",
        "unread_tokens",
    } == TOTALS


def test_totals_never_go_down_while_engines_come_and_go(supervise: Callable[..., SupervisedEngine]) -> None:
    """Read all the time from another thread, with engines that count up and die."""
    engines: list[FakeEngine] = []

    def factory() -> Engine:
        engines.append(FakeEngine())
        return engines[-1]

    engine = supervise(factory, Backoff(first_s=0.001, longest_s=0.002))
    seen: list[tuple[int, int]] = []
    stop = threading.Event()

    def watch() -> None:
        while not stop.is_set():
            stats = engine.stats()
            seen.append((stats.requests, stats.restarts))

    watcher = threading.Thread(target=watch)
    watcher.start()
    for death in range(4):
        current = engines[-1]
        for requests in range(1, 20):
            current.counts = replace(current.counts, requests=requests)
            time.sleep(0.001)
        current.dead = True
        wait_until(lambda: engine.stats().restarts == death + 1)  # noqa: B023
    stop.set()
    watcher.join()

    requests_seen, restarts_seen = zip(*seen, strict=True)
    assert list(requests_seen) == sorted(requests_seen)
    assert list(restarts_seen) == sorted(restarts_seen)
    assert engine.stats().requests == 4 * 19


def test_pauses_double_up_to_the_longest_and_start_over_after_good_health() -> None:
    backoff = Backoff()
    pauses: list[float] = []
    pause: float | None = None
    for _ in range(8):
        pause = backoff.after(pause, served_s=0.0)
        pauses.append(pause)

    assert pauses == [0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 30.0, 30.0]
    assert backoff.after(30.0, served_s=59.9) == 30.0
    assert backoff.after(30.0, served_s=60.0) == 0.5


@pytest.mark.parametrize("first_s", [0.0, -1.0, 31.0, math.nan])
def test_a_pause_that_is_none_or_above_the_longest_is_refused(first_s: float) -> None:
    with pytest.raises(ValueError, match="first_s"):
        Backoff(first_s=first_s)
