"""Sliding windows in memory: how much of a limit each name used in the last minute, or another span of time.

Time is cut into buckets, and a window is the sum of its last buckets: the sliding window counter of N. Mahdi, "An
alternative approach to rate limiting" (Figma, 2017), with 600 buckets in a window instead of 60. A sliding window log
would keep an entry for every request; here a name needs at most 601 numbers, whatever the amounts are.
"""

import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable
from dataclasses import dataclass, field

WINDOW_S = 60
"""Length of the window of all rates, in seconds."""

_BUCKETS = 600  # in a window; amounts of one bucket leave the window together


@dataclass(frozen=True, slots=True, kw_only=True)
class RateLimitState:
    """The state of one limit for one caller, as the `RateLimit` headers and error bodies show it.

    `unit` is `requests`, `tokens` or `concurrent-requests`; the last has no window. `reset_s` is the number of seconds
    until the oldest amount leaves the window.
    """

    name: str
    unit: str
    limit: int
    remaining: int
    window_s: int | None
    reset_s: int


@dataclass(slots=True)
class WindowBucket:
    """The amount used in one bucket of time; `end` is in seconds of the clock."""

    end: float
    amount: int


@dataclass(slots=True)
class _Window:
    buckets: deque[WindowBucket] = field(default_factory=deque)
    used: int = 0

    def forget(self, until: float) -> None:
        while self.buckets and self.buckets[0].end <= until:
            self.used -= self.buckets.popleft().amount


class SlidingWindows:
    """The amounts that each name used within the last `window_s` seconds. Safe to use from any thread.

    Nothing is refused that a window exact to the bucket (1/600 of `window_s`) would accept, and a window never holds
    more than its limit. Names with an empty window are removed, and with `max_names` names the least recently used one.

    Example:
        >>> windows = SlidingWindows(60)
        >>> bucket = windows.take("key/k1", 900, limit=1000)  # reserve the most that a call can use
        >>> windows.take("key/k1", 200, limit=1000) is None   # refused: only 100 are left
        True
        >>> windows.correct("key/k1", bucket, -800)           # the call used 100: refund the rest
        >>> windows.used("key/k1")
        100
    """

    def __init__(
        self, window_s: float, *, max_names: int = 100_000, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """`clock` gives seconds and never goes back."""
        self._window_s = window_s
        self._bucket_s = window_s / _BUCKETS
        self._max_names = max_names
        self._clock = clock
        self._windows: OrderedDict[str, _Window] = OrderedDict()  # least recently used first
        self._lock = threading.Lock()

    def __len__(self) -> int:
        """How many names are remembered."""
        return len(self._windows)

    def take(self, name: str, amount: int = 1, *, limit: int) -> WindowBucket | None:
        """Add `amount` to the window of `name`, unless it would exceed `limit`.

        Returns:
            The bucket it was added to, for `correct`; None if nothing was added.
        """
        now = self._clock()
        with self._lock:
            window = self._current(name, now)
            if window is None:
                if amount > limit:
                    return None
                self._make_room(now)
                window = self._windows[name] = _Window()
            elif window.used + amount > limit:
                return None
            end = (now // self._bucket_s + 1) * self._bucket_s
            if not window.buckets or window.buckets[-1].end < end:
                window.buckets.append(WindowBucket(end, 0))
            window.buckets[-1].amount += amount
            window.used += amount
            return window.buckets[-1]

    def correct(self, name: str, bucket: WindowBucket, change: int) -> None:
        """Add `change`, negative for a refund, to an amount taken before; no effect once it has left the window."""
        with self._lock:
            window = self._windows.get(name)
            if window is not None and any(bucket is kept for kept in reversed(window.buckets)):
                bucket.amount += change
                window.used += change

    def used(self, name: str) -> int:
        """The amount in the window of `name`."""
        return self.state(name)[0]

    def state(self, name: str) -> tuple[int, float]:
        """The amount in the window of `name`, and the seconds until its oldest bucket leaves; (0, 0.0) if empty."""
        now = self._clock()
        with self._lock:
            window = self._current(name, now)
            if window is None:
                return 0, 0.0
            return window.used, window.buckets[0].end + self._window_s - now

    def seconds_until(self, name: str, amount: int = 1, *, limit: int) -> float:
        """Seconds until `amount` fits under `limit` if nothing else is taken; the whole window if it never fits."""
        now = self._clock()
        with self._lock:
            window = self._windows.get(name)
            used = 0 if window is None else window.used
            if used + amount <= limit:
                return 0.0
            for bucket in () if window is None else window.buckets:
                used -= bucket.amount
                if used + amount <= limit:
                    return max(0.0, bucket.end + self._window_s - now)
            return self._window_s

    def _current(self, name: str, now: float) -> _Window | None:
        """The window of `name` without what has left it, now the most recently used; None, and removed, if empty."""
        window = self._windows.get(name)
        if window is None:
            return None
        window.forget(now - self._window_s)
        if not window.buckets:
            del self._windows[name]
            return None
        self._windows.move_to_end(name)
        return window

    def _make_room(self, now: float) -> None:
        """Remove up to two of the least recently used names: expired ones, and one more where there are too many."""
        for _ in range(2):
            if not self._windows:
                return
            oldest = next(iter(self._windows))
            buckets = self._windows[oldest].buckets
            if len(self._windows) < self._max_names and buckets[-1].end > now - self._window_s:
                return
            del self._windows[oldest]
