"""Counts an ingestion's progress: files done, failed and in flight, and its speed."""

import time
from collections import Counter, deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

_WINDOW_S = 30.0  # the speed shown is that of the last half minute


class UploadResult(StrEnum):
    """The outcome of one file."""

    INDEXED = "indexed"
    UNCHANGED = "unchanged"
    FAILED = "failed"
    REMOVED = "removed"
    OVERTAKEN = "overtaken"  # changed again before it was indexed


@dataclass(slots=True)
class Tally:
    """The counts of one run. `files` and `bytes` are the total; `failures` maps names to reasons.

    `stages` counts the documents in flight by status; it is replaced, never changed, so that another
    thread may draw it.
    """

    clock: Callable[[], float] = time.monotonic
    files: int = 0
    bytes: int = 0
    done_bytes: int = 0
    skipped_bytes: int = 0
    pages: int = 0
    chunks: int = 0
    tokens: int = 0
    failures: dict[str, str] = field(default_factory=dict)
    outcomes: Counter[UploadResult] = field(default_factory=Counter)
    stages: Mapping[str, int] = field(default_factory=dict)
    _started: float | None = None
    _speed: deque[tuple[float, int]] = field(default_factory=deque)

    def expect(self, *, files: int, size: int) -> None:
        """Adds outstanding files, `size` bytes together."""
        if self._started is None:
            self._started = self.clock()
        self.files += files
        self.bytes += size

    def settle(self, outcome: UploadResult, name: str, *, size: int, reason: str | None = None) -> None:
        """Counts one outstanding file of `size` bytes as done."""
        self.outcomes[outcome] += 1
        self.done_bytes += size
        if outcome is UploadResult.UNCHANGED:
            self.skipped_bytes += size
        self.failures.pop(name, None)
        if outcome is UploadResult.FAILED:
            self.failures[name] = reason or "no reason was given"

    def embedded(self, *, pages: int, chunks: int, tokens: int) -> None:
        """Counts an indexed document: its pages, chunks and embedded tokens."""
        self.pages += pages
        self.chunks += chunks
        self.tokens += tokens
        self._speed.append((self.clock(), tokens))
        while self._speed[0][0] < self._speed[-1][0] - _WINDOW_S:
            self._speed.popleft()

    @property
    def done(self) -> int:
        """The number of finished files."""
        return self.outcomes.total() - self.outcomes[UploadResult.REMOVED]

    def tokens_per_s(self) -> float:
        """Embedded tokens per second over the last 30 seconds; 0 before the first document."""
        if self._started is None or not self._speed:
            return 0.0
        now = self.clock()
        span = min(now - self._started, _WINDOW_S)
        return sum(tokens for at, tokens in self._speed if at >= now - _WINDOW_S) / span if span > 0 else 0.0

    def remaining_s(self) -> float | None:
        """Estimated seconds left at the average pace; None before the first finished file.

        Progress is the mean of the shares of files and of bytes, so that neither many small files
        nor one large file distorts it. Files found unchanged cost no time.
        """
        files = self.files - self.outcomes[UploadResult.UNCHANGED]
        size = self.bytes - self.skipped_bytes
        done = self.done - self.outcomes[UploadResult.UNCHANGED]
        if self._started is None or not done or not files:
            return None
        share = done / files
        if size:
            share = (share + (self.done_bytes - self.skipped_bytes) / size) / 2
        return (self.clock() - self._started) * (1 - share) / share
