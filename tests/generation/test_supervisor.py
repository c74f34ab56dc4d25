"""generation.supervisor replaces an engine that died, and its counts never go down."""

import asyncio
import gc
import itertools
import logging
import threading
import time
import weakref
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from inspect import signature

import pytest

from generation.backoff import Backoff
from generation.errors import ContextLengthExceeded, EngineStopped, ModelUnavailable
from generation.ports import Engine, Observer, Stream
from generation.step import DeviceLost
from generation.supervisor import SupervisedEngine, collect_all
from generation.types import FinishReason, GenerationRequest
from tests.generation.fakes import Plan, RecordingObserver, ScriptedRunner, read, request, scripted_engine, wait_until
from tests.generation.supervised import IDLE, Factory, FakeEngine, supervise

__all__ = ["supervise"]


async def test_the_engines_thread_dies_and_within_seconds_another_one_serves(
    supervise: Callable[..., SupervisedEngine],
) -> None:
    """Over real engines: everyone in flight is told once, then the next engine answers."""
    everyone_is_in = threading.Event()

    def lose_the_device(plan: Plan) -> None:
        everyone_is_in.wait(30)
        raise DeviceLost

    runners = iter([ScriptedRunner(before_step=lose_the_device), ScriptedRunner()])
    engine = supervise(lambda: scripted_engine(next(runners), max_running=2), Backoff(first_s=2.0, longest_s=30.0))
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
    engine = supervise(factory, Backoff(first_s=0.3, longest_s=30.0), collect_all)
    gc.freeze()  # as the application does once everything is loaded
    try:
        await read(engine.submit(request(), observer=RecordingObserver()))  # type: ignore[arg-type]
        wait_until(lambda: engine.stats().restarts == 1)
    finally:
        gc.unfreeze()

    assert seen_at_restart == [False]
    assert signature(SupervisedEngine).parameters["free"].default is collect_all


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


def test_after_long_good_health_only_the_first_restart_pause_is_short(
    supervise: Callable[..., SupervisedEngine],
) -> None:
    dying, failure = FakeEngine(), RuntimeError("out of memory")
    factory = Factory(dying, failure, failure, failure, FakeEngine())
    engine = supervise(factory, Backoff(first_s=0.05, longest_s=0.2), healthy_s=0.1)
    time.sleep(0.15)

    dying.dead = True
    wait_until(engine.alive)

    pauses = [later - earlier for earlier, later in itertools.pairwise(factory.calls[1:])]
    assert all(pause >= wanted for pause, wanted in zip(pauses, (0.1, 0.2, 0.2), strict=True))


@pytest.mark.parametrize(("healthy_s", "counted"), [(0.0, [1, 1, 1]), (3600.0, [1, 2, 3])])
def test_failures_are_counted_anew_after_good_health(
    supervise: Callable[..., SupervisedEngine], healthy_s: float, counted: list[int]
) -> None:
    failures: list[int] = []

    class Noted(Backoff):
        def after(self, count: int, *, least_s: float = 0.0) -> float:
            failures.append(count)
            return 0.0

    def restarted(times: int) -> bool:
        return engine.stats().restarts == times

    engines = [FakeEngine() for _ in range(4)]
    engine = supervise(Factory(*engines), Noted(first_s=1.0, longest_s=1.0), healthy_s=healthy_s)
    for restarts, dying in enumerate(engines[:3], start=1):
        dying.dead = True
        wait_until(partial(restarted, restarts))

    assert failures == counted


def test_a_death_between_the_look_and_the_submission_is_a_restart_too(
    supervise: Callable[..., SupervisedEngine],
) -> None:
    class Dying(FakeEngine):
        def submit(self, request: GenerationRequest, *, observer: Observer) -> Stream:
            raise EngineStopped("The generation engine is not running.")

    engine = supervise(Factory(Dying()))

    with pytest.raises(EngineStopped, match="restarting"):
        engine.submit(request(), observer=RecordingObserver())


def test_a_failure_to_create_the_first_engine_is_raised_to_the_caller() -> None:
    with pytest.raises(ModelUnavailable):
        SupervisedEngine(Factory(ModelUnavailable("The model is not here.")))


def test_the_supervisor_passes_on_the_engines_own_exception(supervise: Callable[..., SupervisedEngine]) -> None:
    engine = supervise(Factory(FakeEngine()))

    with pytest.raises(ContextLengthExceeded):
        engine.submit(request(), observer=RecordingObserver())
