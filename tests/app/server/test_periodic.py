"""app.server.periodic: work is called at intervals, outlives failures, and ends."""

import threading
from datetime import UTC, datetime

import pytest

from app.server.periodic import PeriodicThread, seconds_until


def test_work_that_fails_is_called_again() -> None:
    calls = threading.Semaphore(0)

    def fail() -> None:
        calls.release()
        raise OSError("the disk is away")

    periodic = PeriodicThread(fail, name="test", interval=0.001, failed="test.failed")
    periodic.start()
    try:
        for _ in range(3):
            assert calls.acquire(timeout=20)
    finally:
        periodic.stop()


def test_an_interval_may_be_computed_before_each_call() -> None:
    calls, asked = threading.Semaphore(0), list[int]()

    def interval() -> float:
        asked.append(1)
        return 0.001 if len(asked) < 3 else 3600.0

    periodic = PeriodicThread(calls.release, name="test", interval=interval, failed="test.failed")
    periodic.start()
    for _ in range(2):
        assert calls.acquire(timeout=20)
    periodic.stop()

    assert not calls.acquire(blocking=False)


def test_nothing_is_called_before_the_first_interval_and_once_more_at_the_end_where_asked() -> None:
    calls: list[str] = []
    silent = PeriodicThread(lambda: calls.append("silent"), name="a", interval=3600, failed="test.failed")
    last = PeriodicThread(lambda: calls.append("last"), name="b", interval=3600, failed="test.failed", once_more=True)
    for periodic in (silent, last):
        periodic.start()
        periodic.stop()

    assert calls == ["last"]


def test_a_failure_of_the_last_call_is_no_failure_of_stop() -> None:
    def fail() -> None:
        raise RuntimeError("the database is on fire")

    PeriodicThread(fail, name="test", interval=3600, failed="test.failed", once_more=True).stop()


def test_a_call_under_way_sees_that_it_should_stop_and_is_waited_for() -> None:
    began, seen = threading.Event(), list[bool]()

    def wait_for_stop() -> None:
        began.set()
        while not periodic.stopping:
            threading.Event().wait(0.001)
        seen.append(True)

    periodic = PeriodicThread(wait_for_stop, name="test", interval=0.001, failed="test.failed")
    periodic.start()
    assert began.wait(timeout=20)
    periodic.stop()

    assert seen == [True]


@pytest.mark.parametrize(
    ("now", "seconds"),
    [
        (datetime(2030, 1, 1, 2, 59, 30, tzinfo=UTC), 30.0),
        (datetime(2030, 1, 1, 3, 0, 0, tzinfo=UTC), 86_400.0),
        (datetime(2030, 12, 31, 3, 30, 0, tzinfo=UTC), 23.5 * 3600),
        (datetime(2030, 1, 1, 0, 0, 0, tzinfo=UTC), 3 * 3600.0),
    ],
)
def test_seconds_until_an_hour_counts_to_its_next_occurrence_in_utc(now, seconds):
    assert seconds_until(3, now) == seconds
