"""app.answering.running.stepping: steps are taken in a thread of their own, whoever waits."""

import asyncio
import threading
from collections.abc import Generator

import pytest

from app.answering.running.stepping import Stepping


def steps(*, gate: threading.Event, error: Exception | None = None, early: bool = True) -> Generator[str, None, str]:
    if early:
        yield "early"
        yield "later"
    assert gate.wait(30)
    if error is not None:
        raise error
    return threading.current_thread().name


async def test_the_first_value_comes_before_the_result_which_another_thread_makes() -> None:
    gate = threading.Event()
    stepping = Stepping(steps(gate=gate))

    assert await stepping.early == "early"
    assert not stepping.result.done()
    gate.set()
    assert await stepping.result != threading.current_thread().name


async def test_where_nothing_comes_early_only_the_result_is_waited_for() -> None:
    gate = threading.Event()
    gate.set()
    stepping = Stepping(steps(gate=gate, early=False))

    await stepping.result

    assert not stepping.early.done()


async def test_what_a_step_raises_is_raised_where_the_result_is_waited_for() -> None:
    gate = threading.Event()
    stepping = Stepping(steps(gate=gate, error=LookupError("broken")))
    await stepping.early
    gate.set()

    with pytest.raises(LookupError, match="broken"):
        await stepping.result


async def test_steps_go_on_where_the_one_that_waited_has_left() -> None:
    gate = threading.Event()
    stepping = Stepping(steps(gate=gate))
    waiting = asyncio.create_task(asyncio.wait({stepping.result}))
    await asyncio.sleep(0)
    waiting.cancel()
    gate.set()

    assert await stepping.result
