"""A thread that calls a function at intervals: retries of settlements, delivery of alerts, reconciliation."""

import threading
from collections.abc import Callable
from datetime import datetime, timedelta

from app.telemetry.logs import logger

_STOP_SECONDS = 10.0


class PeriodicThread:
    """Calls `work` at intervals in a daemon thread until it is stopped. The first call comes after one interval.

    An exception of `work` is logged, and `work` is called again after the next interval.

    Example:
        >>> retry = PeriodicThread(settle, name="settlements", interval=5.0, failed="settlement.failed")
        >>> retry.start()
        >>> retry.stop()
    """

    def __init__(
        self,
        work: Callable[[], object],
        *,
        name: str,
        interval: float | Callable[[], float],
        failed: str,
        once_more: bool = False,
        stop_seconds: float = _STOP_SECONDS,
    ) -> None:
        """Nothing runs before `start`.

        Args:
            work: Called in the thread; it should look at `stopping` where one call may take long.
            name: The thread's, after `footnote-`.
            interval: Seconds from the end of one call to the next, or a function that computes them each time.
            failed: Name of the log event for an exception of `work`.
            once_more: Whether `stop` calls `work` a last time.
            stop_seconds: Longest wait of `stop` for a call under way.
        """
        self._work = work
        self._interval = interval
        self._failed = failed
        self._once_more = once_more
        self._stop_seconds = stop_seconds
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"footnote-{name}", daemon=True)

    @property
    def stopping(self) -> bool:
        """Whether `stop` was called."""
        return self._stop.is_set()

    def start(self) -> None:
        """Begin with an interval. To be called once."""
        self._thread.start()

    def stop(self) -> None:
        """Call `work` no more, but for the last time of `once_more`, and wait for a call under way."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join(timeout=self._stop_seconds)
        if self._once_more:
            self._call()

    def _run(self) -> None:
        while not self._stop.wait(self._interval() if callable(self._interval) else self._interval):
            self._call()

    def _call(self) -> None:
        try:
            self._work()
        except Exception as error:  # noqa: BLE001 - the thread must outlive any single failure; it is logged
            logger().error(self._failed, error=type(error).__name__, exc_info=error)


def seconds_until(hour: int, now: datetime) -> float:
    """Seconds from `now` to the next full `hour` in its time zone: above 0, at most about a day."""
    next_time = now.replace(hour=hour, minute=0, second=0, microsecond=0)
    if next_time <= now:
        next_time += timedelta(days=1)
    return (next_time - now).total_seconds()
