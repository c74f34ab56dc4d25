"""tests.loop_watch notices what holds an event loop or the interpreter, and nothing else."""

import asyncio
import hashlib
import re
import threading
import time
from collections.abc import Callable
from contextlib import nullcontext

from tests.loop_watch import LoopWatch, Processor, Pulse, WorkElsewhere


def work(seconds: float) -> None:
    until = time.thread_time() + seconds
    while time.thread_time() < until:
        pass


def watched(
    coroutine, elsewhere: WorkElsewhere | None = None, slowness: Callable[[], float] | None = None
) -> LoopWatch:
    """The watch, once it has looked again after the work of `coroutine`, whose threads may live on until then."""

    async def run() -> LoopWatch:
        with LoopWatch(asyncio.get_running_loop(), elsewhere=elsewhere, slowness=slowness).watching() as watch:
            await asyncio.sleep(0.05)
            await coroutine()
            looked = watch.asked
            while watch.asked < looked + 2:
                await asyncio.sleep(0.01)
        return watch

    return asyncio.run(run())


def test_a_loop_that_sleeps_is_not_held():
    watch = watched(lambda: asyncio.sleep(0.3))

    assert watch.holds == []
    assert watch.asked > 5


def test_work_on_the_loop_is_a_hold_and_says_where():
    async def busy() -> None:
        work(0.3)

    (hold,) = watched(busy).holds

    assert hold.what == "the event loop"
    assert hold.seconds > 0.2
    assert "in work" in hold.where


def test_work_is_counted_as_what_a_processor_at_its_best_would_take():
    async def busy() -> None:
        work(0.3)

    assert watched(busy, slowness=lambda: 4.0).holds == []
    (hold,) = watched(busy, slowness=lambda: 2.0).holds
    assert 0.1 < hold.seconds < 0.3


def test_a_processor_is_never_faster_than_its_best():
    processor = Processor()

    assert all(processor.slowness() >= 1 for _ in range(20))


def test_short_work_is_none():
    async def busy() -> None:
        for _ in range(30):
            work(0.01)
            await asyncio.sleep(0)

    assert watched(busy).holds == []


def test_a_thread_that_keeps_the_interpreter_is_a_hold():
    matched, over = threading.Event(), threading.Event()

    def match() -> None:
        """The matcher does not let go of the interpreter; the thread lives on, as a server's workers do."""
        re.match(r"(a|aa)+$", "a" * 33 + "b")
        matched.set()
        over.wait(30)

    async def busy() -> None:
        threading.Thread(target=match, name="matcher").start()
        while not matched.is_set():
            await asyncio.sleep(0.01)

    try:
        assert any("matcher" in hold.what for hold in watched(busy).holds)
    finally:
        over.set()


def test_work_that_a_server_gives_to_another_process_is_no_hold():
    elsewhere = WorkElsewhere()

    def match_elsewhere() -> None:
        with elsewhere.doing():
            re.match(r"(a|aa)+$", "a" * 31 + "b")
        time.sleep(0.3)

    async def busy() -> None:
        thread = threading.Thread(target=match_elsewhere, name="matcher")
        thread.start()
        while thread.is_alive():
            await asyncio.sleep(0.01)

    assert watched(busy, elsewhere).holds == []


def test_threads_that_compute_hold_nothing():
    """They give the interpreter back every few milliseconds, and the watch comes to its turn."""

    async def busy() -> None:
        threads = [threading.Thread(target=work, args=(1,), name=f"computing-{number}") for number in range(3)]
        for thread in threads:
            thread.start()
        while any(thread.is_alive() for thread in threads):
            await asyncio.sleep(0.01)

    assert watched(busy).holds == []


def test_a_late_look_is_no_hold_where_another_thread_had_the_interpreter(monkeypatch):
    """A thread works that has let go of the interpreter, and the watch is late for a reason that nobody counts."""
    data, over = b"a" * 4_000_000, threading.Event()

    def not_counted() -> float:
        time.sleep(0.15)
        return 0.0

    def work_without_it() -> None:
        while not over.is_set():
            hashlib.sha256(data)

    async def busy() -> None:
        thread = threading.Thread(target=work_without_it, name="hashing")
        thread.start()
        await asyncio.sleep(1.5)
        over.set()

    monkeypatch.setattr("tests.loop_watch.waits_of_this_thread", lambda: nullcontext(not_counted))
    monkeypatch.setattr(Pulse, "longest_pause", lambda *_moments: 0.005)
    assert watched(busy).holds == []


def test_a_pulse_tells_how_long_no_other_thread_had_the_interpreter():
    with Pulse().beating() as pulse:
        began, worked = time.monotonic(), time.thread_time()
        re.match(r"(a|aa)+$", "a" * 31 + "b")
        worked = time.thread_time() - worked
        held = pulse.longest_pause(began, time.monotonic())
        until = time.monotonic() + 10
        while (free := pulse.longest_pause(time.monotonic() - 0.1, time.monotonic())) > 0.05:
            assert time.monotonic() < until, free
            time.sleep(0.1)

    assert held > 0.9 * worked


def test_time_that_the_host_of_the_machine_took_is_no_hold(monkeypatch):
    """As far as the watch can tell, all of it was stolen here."""
    monkeypatch.setattr("tests.loop_watch.waits_of_this_thread", lambda: nullcontext(time.monotonic))
    over = threading.Event()

    def match() -> None:
        re.match(r"(a|aa)+$", "a" * 31 + "b")
        over.wait(0.3)
        over.set()

    async def busy() -> None:
        threading.Thread(target=match, name="matcher").start()
        while not over.is_set():
            await asyncio.sleep(0.01)

    assert watched(busy).holds == []


def test_waiting_for_a_processor_is_no_hold():
    """Threads that let go of the interpreter keep both processors busy: the watch is late, but nothing is held."""
    data = b"a" * 4_000_000

    async def busy() -> None:
        threads = [
            threading.Thread(target=lambda: [hashlib.sha256(data) for _ in range(20)], name=f"hashing-{number}")
            for number in range(8)
        ]
        for thread in threads:
            thread.start()
        while any(thread.is_alive() for thread in threads):
            await asyncio.sleep(0.01)

    assert watched(busy).holds == []
