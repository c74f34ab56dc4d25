"""app.admission.sliding_windows: amounts taken, refunded and refused, and bounded memory."""

import tracemalloc

from hypothesis import given
from hypothesis import strategies as st

from app.admission.sliding_windows import SlidingWindows

MINUTE = 60
BUCKET = MINUTE / 600


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


steps = st.lists(st.tuples(st.floats(0, 40), st.integers(1, 6)), max_size=60)


@given(steps=steps, limit=st.integers(1, 12))
def test_no_window_ever_takes_more_than_its_limit_and_refuses_nothing_for_longer_than_a_bucket(steps, limit):
    clock = Clock()
    taken: list[tuple[float, int]] = []
    windows = SlidingWindows(MINUTE, clock=clock)
    for pause, amount in steps:
        clock.now += pause
        strictly = sum(n for at, n in taken if at > clock.now - MINUTE)
        loosely = sum(n for at, n in taken if at > clock.now - MINUTE - BUCKET)
        if windows.take("k", amount, limit=limit):
            assert strictly + amount <= limit
            taken.append((clock.now, amount))
        else:
            assert loosely + amount > limit


@given(steps=steps, limit=st.integers(6, 12))
def test_an_amount_fits_after_the_seconds_it_was_told_to_wait(steps, limit):
    clock = Clock()
    windows = SlidingWindows(MINUTE, clock=clock)
    for pause, amount in steps:
        clock.now += pause
        if not windows.take("k", amount, limit=limit):
            clock.now += windows.seconds_until("k", amount, limit=limit) + 1e-6
            assert windows.take("k", amount, limit=limit)


def test_more_than_the_limit_never_fits_and_is_not_remembered():
    windows = SlidingWindows(MINUTE, clock=Clock())

    assert not windows.take("k", 6, limit=5)
    assert windows.seconds_until("k", 6, limit=5) == MINUTE
    assert len(windows) == 0


def test_a_refund_is_free_again_and_without_effect_once_its_bucket_has_left():
    clock = Clock()
    windows = SlidingWindows(MINUTE, clock=clock)
    bucket = windows.take("k", 10, limit=10)
    assert bucket is not None
    windows.correct("k", bucket, -7)

    assert windows.take("k", 7, limit=10)
    assert not windows.take("k", 1, limit=10)
    clock.now += MINUTE + BUCKET
    assert windows.take("k", 2, limit=10)
    windows.correct("k", bucket, -3)  # its bucket has left the window
    assert windows.used("k") == 2


def test_expired_names_are_removed_and_there_are_never_more_than_the_maximum():
    clock = Clock()
    windows = SlidingWindows(MINUTE, max_names=100, clock=clock)
    for number in range(1000):
        windows.take(f"guess {number}", limit=5)
        assert len(windows) <= 100
    clock.now += MINUTE + BUCKET
    for number in range(100):
        windows.take(f"later {number % 3}", limit=500)
    for number in range(60):
        windows.take(f"new {number}", limit=500)

    assert len(windows) == 63, "the expired names are gone"


def test_a_busy_window_needs_little_memory():
    clock = Clock()
    windows = SlidingWindows(MINUTE, clock=clock)
    tracemalloc.start()
    try:
        for _ in range(30_000):
            clock.now += MINUTE / 20_000
            windows.take("k", 100, limit=10**9)
        kept, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert kept < 200_000, "601 buckets, not one for each of 20,000 amounts"
    assert abs(windows.used("k") - 2_000_000) <= 5000


def test_the_state_is_the_used_amount_and_the_seconds_until_the_oldest_leaves():
    clock = Clock()
    windows = SlidingWindows(MINUTE, clock=clock)
    assert windows.state("k") == (0, 0.0)
    windows.take("k", 3, limit=5)
    clock.now += 20
    windows.take("k", 2, limit=5)

    used, reset_s = windows.state("k")

    assert used == 5
    assert 40 <= reset_s <= 40 + BUCKET + 1e-6
