"""Counts of durations by size, cheap enough to keep for every token."""

from bisect import bisect_left

from generation.types import Histogram

# Seconds, in the steps Prometheus users know; the last bucket is everything above.
_BOUNDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)


class Latencies:
    """A histogram that grows. The caller guards it."""

    def __init__(self) -> None:
        self._counts = [0] * (len(_BOUNDS) + 1)
        self._total_s = 0.0

    def add(self, seconds: float) -> None:
        """Count one duration."""
        self._counts[bisect_left(_BOUNDS, seconds)] += 1
        self._total_s += seconds

    def snapshot(self) -> Histogram:
        """What was counted so far; counts are not cumulative."""
        return Histogram((*_BOUNDS, float("inf")), tuple(self._counts), self._total_s)
