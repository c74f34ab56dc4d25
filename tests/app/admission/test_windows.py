"""app.admission.windows: what is taken of a moving window, and how little is remembered of it."""

from hypothesis import given
from hypothesis import strategies as st

from app.admission.windows import Windows

MINUTE = 60
GRAIN = MINUTE / 600


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


steps = st.lists(st.tuples(st.floats(0, 40), st.integers(1, 6)), max_size=60)


@given(steps=steps, limit=st.integers(1, 12))
def test_no_window_ever_takes_more_than_its_limit_and_refuses_nothing_for_longer_than_a_grain(steps, limit):
    clock = Clock()
    taken: list[tuple[float, int]] = []
    windows = Windows(clock=clock)
    for pause, amount in steps:
        clock.now += pause
        strictly = sum(n for at, n in taken if at > clock.now - MINUTE)
        loosely = sum(n for at, n in taken if at > clock.now - MINUTE - GRAIN)
        if windows.acquire_entry("k", limit, MINUTE, amount):
            assert strictly + amount <= limit
            taken.append((clock.now, amount))
        else:
            assert loosely + amount > limit


@given(steps=steps, limit=st.integers(6, 12))
def test_who_waits_as_long_as_it_is_told_gets_in(steps, limit):
    clock = Clock()
    windows = Windows(clock=clock)
    for pause, amount in steps:
        clock.now += pause
        if not windows.acquire_entry("k", limit, MINUTE, amount):
            clock.now += windows.seconds_until("k", limit, MINUTE, amount) + 1e-6
            assert windows.acquire_entry("k", limit, MINUTE, amount)


def test_more_than_the_limit_alone_never_fits():
    windows = Windows(clock=Clock())

    assert not windows.acquire_entry("k", 5, MINUTE, 6)
    assert windows.seconds_until("k", 5, MINUTE, 6) == MINUTE
    assert len(windows) == 0


def test_what_was_not_used_is_free_again_while_its_window_lasts():
    clock = Clock()
    windows = Windows(clock=clock)
    entry = windows.enter("k", 10, MINUTE, 10)
    assert entry is not None
    windows.correct("k", entry, -7)

    assert windows.acquire_entry("k", 10, MINUTE, 7)
    assert not windows.acquire_entry("k", 10, MINUTE, 1)
    clock.now += MINUTE + GRAIN
    assert windows.acquire_entry("k", 10, MINUTE, 2)
    windows.correct("k", entry, -3)  # long gone
    assert windows.get_moving_window("k", 10, MINUTE)[1] == 2


def test_names_that_took_nothing_lately_are_forgotten_and_there_are_never_too_many():
    clock = Clock()
    windows = Windows(most=100, clock=clock)
    for number in range(1000):
        windows.acquire_entry(f"guess {number}", 5, MINUTE)
        assert len(windows) <= 100
    clock.now += MINUTE + GRAIN
    for number in range(100):
        windows.acquire_entry(f"later {number % 3}", 500, MINUTE)
    for number in range(60):
        windows.acquire_entry(f"new {number}", 500, MINUTE)

    assert len(windows) == 63, "whoever came in before is gone"


def test_a_busy_window_is_remembered_in_few_entries():
    clock = Clock()
    windows = Windows(clock=clock)
    for _ in range(30_000):
        clock.now += MINUTE / 20_000
        windows.acquire_entry("k", 10**9, MINUTE, 100)

    assert len(windows._windows["k"].entries) <= 602
    assert abs(windows.get_moving_window("k", 10**9, MINUTE)[1] - 2_000_000) <= 5000
