"""Measures how a call's time grows with the length of its input."""

import signal
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import FrameType

_REPEATS = 3
_ATTEMPTS = 4


class TooLongError(Exception):
    """A call did not end within its time."""


def seconds(call: Callable[[], object], *, repeats: int = _REPEATS) -> float:
    """The least CPU time of this thread for a call, so that other work on the machine counts little."""
    best = float("inf")
    for _ in range(repeats):
        started = time.thread_time()
        call()
        best = min(best, time.thread_time() - started)
    return best


def assert_linear(call: Callable[[int], object], sizes: Sequence[int], *, slack: float = 2.0) -> None:
    """Assert that `call(size)` takes time in proportion to `size`, from the first size to the last.

    Quadratic time fails where the last size is more than `slack` times the first. A busy machine gets another try.
    """
    for attempt in range(1, _ATTEMPTS + 1):
        times = [seconds(lambda size=size: call(size)) for size in sizes]  # type: ignore[misc]
        if times[-1] <= slack * times[0] * sizes[-1] / sizes[0] + 0.001:
            return
        assert attempt < _ATTEMPTS, f"{sizes} took {[f'{1000 * taken:.2f} ms' for taken in times]}"


@contextmanager
def limited(cpu_s: float) -> Iterator[None]:
    """Interrupt the block by `TooLongError` after so much CPU time; `re` looks for signals while it matches."""

    def stop(_number: int, _frame: FrameType | None) -> None:
        raise TooLongError

    before = signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, cpu_s)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)
