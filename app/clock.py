"""Time: a Unix time that never goes back whatever happens to the machine's clock, and pauses before another try."""

import threading
import time
from collections.abc import Callable

_MOST_DOUBLINGS = 64  # far beyond any longest pause, and no overflow


class SteadyClock:
    """The Unix time of one process, in seconds. Safe to use from any thread.

    It is the machine's clock. After that was put back, this clock goes on at half its speed until the machine's has
    caught up: nothing happens before what came first, and what waits for a time waits at most twice as long.

    Example:
        >>> clock = SteadyClock()
        >>> began = clock()
        >>> clock() >= began
        True
    """

    def __init__(
        self, *, machine: Callable[[], float] = time.time, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        """`machine` gives Unix seconds and may jump; `monotonic` gives seconds that no setting of a clock changes."""
        self._machine = machine
        self._monotonic = monotonic
        self._lock = threading.Lock()
        self._led = machine()  # the last time that came from the machine's clock, and when that was
        self._led_at = monotonic()

    def __call__(self) -> float:
        """Unix seconds: at least those of every call before."""
        with self._lock:
            now, ticks = self._machine(), self._monotonic()
            least = self._led + (ticks - self._led_at) / 2
            if now < least:
                return least
            self._led, self._led_at = now, ticks
            return now


def pause_after(failures: int, *, first_s: float, longest_s: float) -> float:
    """Seconds to wait after the `failures`th failure in a row: `first_s`, doubled with each further one.

    >>> [pause_after(failures, first_s=2.0, longest_s=10.0) for failures in (1, 2, 3, 4)]
    [2.0, 4.0, 8.0, 10.0]

    Args:
        failures: Tries that failed so far, at least 1.
        first_s: The first pause.
        longest_s: No pause is longer.
    """
    assert failures >= 1, "a try has failed"
    return min(first_s * 2.0 ** min(failures - 1, _MOST_DOUBLINGS), longest_s)
