"""Closing a supervised engine, also while its factory hangs."""

import threading
import time
from collections.abc import Callable

import pytest

from generation.backoff import Backoff
from generation.errors import EngineStopped
from generation.ports import Engine
from generation.supervisor import SupervisedEngine
from tests.generation.fakes import RecordingObserver, request, wait_until
from tests.generation.supervised import QUICK, Factory, FakeEngine, free_nothing, supervise

__all__ = ["supervise"]


def test_a_dead_engine_that_cannot_be_closed_is_replaced_all_the_same(
    supervise: Callable[..., SupervisedEngine], caplog: pytest.LogCaptureFixture
) -> None:
    dying = FakeEngine()
    dying.fails_to_close = True
    engine = supervise(Factory(dying, FakeEngine()))

    dying.dead = True
    wait_until(engine.alive)

    assert "the dead engine could not be closed" in caplog.text


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
            go_on.wait(30)
        return made

    engine = SupervisedEngine(factory, backoff=QUICK, free=free_nothing)
    first.dead = True
    assert inside.wait(30)
    closer = threading.Thread(target=engine.close)
    closer.start()
    wait_until(lambda: not engine.alive())
    assert late.closed == 0

    go_on.set()
    closer.join(30)

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

    engine = SupervisedEngine(factory, backoff=QUICK, patience_s=0.1, free=free_nothing)
    first.dead = True
    assert inside.wait(30)
    began = time.monotonic()

    engine.close()

    assert time.monotonic() - began < 5
    assert "being restarted" in caplog.text
    go_on.set()
