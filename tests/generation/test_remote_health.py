"""generation.remote_health polls a remote server, and checks again at once when in doubt."""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from generation.remote_health import HealthWatch


class Patient:
    """A server that says what a test tells it to, and counts how often it was asked."""

    def __init__(self, wrong: str | Exception | None = None) -> None:
        self.wrong = wrong
        self.asked = 0

    async def check(self) -> str | None:
        self.asked += 1
        if isinstance(self.wrong, Exception):
            raise self.wrong
        return self.wrong


@asynccontextmanager
async def watched(patient: Patient, *, interval_s: float = 3600.0) -> AsyncIterator[HealthWatch]:
    watch = HealthWatch(patient, interval_s=interval_s)
    running = asyncio.create_task(watch.run())
    yield watch
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


async def until_asked(patient: Patient, count: int) -> None:
    async with asyncio.timeout(10):
        while patient.asked < count:
            await asyncio.sleep(0)
        await asyncio.sleep(0)  # the answer is taken a turn later


async def test_it_is_not_reachable_before_the_first_answer() -> None:
    patient = Patient()

    assert not HealthWatch(patient, interval_s=1.0).reachable
    async with watched(patient) as watch:
        await until_asked(patient, 1)
        assert watch.reachable


async def test_a_doubtful_server_is_checked_at_once_without_waiting_for_the_interval() -> None:
    patient = Patient()
    async with watched(patient) as watch:
        await until_asked(patient, 1)
        patient.wrong = "cannot be reached"
        watch.look()
        await until_asked(patient, 2)

        gone = watch.reachable
        watch.seen()
        assert (gone, watch.reachable) == (False, True), "it just answered something else"
    assert patient.asked == 2


async def test_a_server_that_fails_is_asked_again_without_being_told_to(caplog: pytest.LogCaptureFixture) -> None:
    patient = Patient("answers with status 500")
    async with watched(patient, interval_s=0.01) as watch:
        await until_asked(patient, 8)
        patient.wrong = None
        await until_asked(patient, patient.asked + 1)
        with caplog.at_level(logging.INFO, "footnote.generation"):
            await until_asked(patient, patient.asked + 1)
        assert watch.reachable

    assert caplog.messages.count("the generation server answers with status 500") == 1


async def test_a_check_that_breaks_is_a_server_that_cannot_be_asked(caplog: pytest.LogCaptureFixture) -> None:
    patient = Patient(RuntimeError("secret detail"))
    async with watched(patient) as watch:
        await until_asked(patient, 1)
        patient.wrong = None
        watch.look()
        await until_asked(patient, 2)
        assert watch.reachable

    assert "the generation server cannot be asked" in caplog.messages
