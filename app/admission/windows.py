"""Moving windows of amounts, in memory: the storage behind the package `limits`.

That package's own memory storage keeps an object for every unit of an amount, a list for every name it ever
saw, and a timer thread. Here an amount is one number, and names are forgotten: when nothing of theirs is in a window
any more, and the one that was used the longest time ago when there are too many.
"""

import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable
from dataclasses import dataclass, field

from limits.storage import Storage
from limits.storage.base import MovingWindowSupport

_GRAINS = 600
"""A window is cut into so many grains; what was taken in one grain leaves the window together, at its end."""


@dataclass(slots=True)
class Entry:
    """What was taken in one grain of a window; `at` is the grain's end, in seconds of the clock."""

    at: float
    amount: int


@dataclass(slots=True)
class _Window:
    entries: deque[Entry] = field(default_factory=deque)
    total: int = 0

    def prune(self, before: float) -> None:
        while self.entries and self.entries[0].at <= before:
            self.total -= self.entries.popleft().amount


class Windows(Storage, MovingWindowSupport):
    """Of at most `most` names. Every method may be called from any thread; `clock` gives seconds, and never goes back.

    Moving windows only: the counters of other strategies are not implemented.
    """

    STORAGE_SCHEME = None

    def __init__(self, *, most: int = 100_000, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._most = most
        self._clock = clock
        self._windows: OrderedDict[str, _Window] = OrderedDict()  # used last comes last
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._windows)

    def enter(self, key: str, limit: int, expiry: float, amount: int = 1) -> Entry | None:
        """Take `amount` of `limit` if so much is left of it; None, and nothing is taken, if not."""
        now = self._clock()
        with self._lock:
            window = self._window(key, now, expiry)
            if window.total + amount > limit:
                if not window.entries:
                    del self._windows[key]
                return None
            grain = expiry / _GRAINS
            at = (now // grain + 1) * grain
            last = window.entries[-1] if window.entries else None
            if last is None or last.at < at:
                last = Entry(at, 0)
                window.entries.append(last)
            last.amount += amount
            window.total += amount
            return last

    def correct(self, key: str, entry: Entry, amount: int) -> None:
        """Add `amount`, which may be negative, to what was taken with `entry`, if it is in the window still."""
        with self._lock:
            window = self._windows.get(key)
            if window is not None and any(entry is kept for kept in reversed(window.entries)):
                entry.amount += amount
                window.total += amount

    def seconds_until(self, key: str, limit: int, expiry: float, amount: int = 1) -> float:
        """Seconds until `amount` of `limit` will be left if nothing else is taken; the whole window where never."""
        now = self._clock()
        with self._lock:
            window = self._windows.get(key)
            total = 0 if window is None else window.total
            for entry in () if window is None else window.entries:
                if total + amount <= limit:
                    break
                total -= entry.amount
                if total + amount <= limit:
                    return max(0.0, entry.at + expiry - now)
            return 0.0 if total + amount <= limit else expiry

    def acquire_entry(self, key: str, limit: int, expiry: int, amount: int = 1) -> bool:
        """See `limits.storage.MovingWindowSupport`."""
        return self.enter(key, limit, expiry, amount) is not None

    def get_moving_window(self, key: str, limit: int, expiry: int) -> tuple[float, int]:  # noqa: ARG002 - limits' own
        """The second at which the oldest entry was made, and what was taken since."""
        now = self._clock()
        with self._lock:
            if key not in self._windows:
                return now, 0
            window = self._window(key, now, expiry)
            if not window.entries:
                del self._windows[key]
                return now, 0
            return window.entries[0].at, window.total

    def _window(self, key: str, now: float, expiry: float) -> _Window:
        window = self._windows.get(key)
        if window is None:
            self._make_room(now - expiry)
            window = self._windows[key] = _Window()
        else:
            self._windows.move_to_end(key)
            window.prune(now - expiry)
        return window

    def _make_room(self, before: float) -> None:
        """Forget names whose entries have all left their windows, two at a time, and the oldest where it is crowded."""
        for _ in range(2):
            if not self._windows:
                return
            oldest = next(iter(self._windows))
            entries = self._windows[oldest].entries
            if len(self._windows) < self._most and entries and entries[-1].at > before:
                return
            del self._windows[oldest]

    # What `limits` asks of every storage.

    @property
    def base_exceptions(self) -> type[Exception]:
        """None that is foreseen."""
        return ValueError

    def incr(self, key: str, expiry: int, amount: int = 1) -> int:
        """Not for moving windows."""
        raise NotImplementedError

    def get(self, key: str) -> int:
        """What was taken by a name, also of what has left its window and was not looked at since."""
        window = self._windows.get(key)
        return 0 if window is None else window.total

    def get_expiry(self, key: str) -> float:
        """Not for moving windows."""
        raise NotImplementedError

    def check(self) -> bool:
        """Memory is there."""
        return True

    def reset(self) -> int:
        """Forget everything; how many names there were."""
        with self._lock:
            names = len(self._windows)
            self._windows.clear()
            return names

    def clear(self, key: str) -> None:
        """Forget one name."""
        with self._lock:
            self._windows.pop(key, None)
