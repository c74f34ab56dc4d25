"""The engine's counters, and latency histograms that are cheap enough for every token."""

import threading
import time
from bisect import bisect_left

from generation.step import BlockCounts
from generation.types import Completion, EngineStats, FinishReason, Histogram

# Seconds, in the steps usual for Prometheus; the last bucket is everything above.
_BOUNDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)


class Latencies:
    """A mutable histogram of durations. Not safe to use from several threads without a lock."""

    def __init__(self) -> None:
        self._counts = [0] * (len(_BOUNDS) + 1)
        self._total_s = 0.0

    def add(self, seconds: float) -> None:
        """Count one duration."""
        self._counts[bisect_left(_BOUNDS, seconds)] += 1
        self._total_s += seconds

    def snapshot(self) -> Histogram:
        """The histogram so far; counts are not cumulative."""
        return Histogram((*_BOUNDS, float("inf")), tuple(self._counts), self._total_s)


class Counters:
    """Totals since the engine started, and the sequences that wait and run now."""

    def __init__(self, *, capacity: int) -> None:
        self._lock = threading.Lock()
        self._capacity = capacity
        self._waiting = 0
        self._waiting_tokens = 0
        self._running = 0
        self._requests = 0
        self._cancelled = 0
        self._prefill_tokens = 0
        self._decode_tokens = 0
        self._cached_tokens = 0
        self._recomputed_tokens = 0
        self._unread_tokens = 0
        self._drafted_tokens = 0
        self._accepted_tokens = 0
        self._first_token = Latencies()
        self._inter_token = Latencies()
        self._service_s = 1.0  # moving average of a sequence's seconds from admission to end

    @property
    def waiting(self) -> int:
        """Sequences accepted and not running yet."""
        return self._waiting

    @property
    def waiting_tokens(self) -> int:
        """Tokens of their prompts."""
        return self._waiting_tokens

    @property
    def service_s(self) -> float:
        """How long a sequence takes from admission to end, lately."""
        return self._service_s

    def accepted(self, *, prompt_tokens: int) -> None:
        """A sequence came."""
        with self._lock:
            self._requests += 1
            self._waiting += 1
            self._waiting_tokens += prompt_tokens

    def admitted(self, *, prompt_tokens: int, cached_tokens: int) -> None:
        """It runs now; `cached_tokens` of its prompt were found."""
        with self._lock:
            self._waiting -= 1
            self._waiting_tokens -= prompt_tokens
            self._running += 1
            self._cached_tokens += cached_tokens

    def ended(self, *, prompt_tokens: int, admitted_at: float | None) -> None:
        """It ended; `admitted_at` is None when it never ran."""
        with self._lock:
            if admitted_at is None:
                self._waiting -= 1
                self._waiting_tokens -= prompt_tokens
            else:
                self._running -= 1
                self._service_s += 0.1 * (time.monotonic() - admitted_at - self._service_s)

    def finished(self, completion: Completion, *, recomputed_tokens: int = 0, unread_tokens: int = 0) -> None:
        """Count a finished sequence, its recomputed tokens, and its prompt tokens never computed."""
        with self._lock:
            self._cancelled += completion.finish_reason is FinishReason.CANCELLED
            self._recomputed_tokens += recomputed_tokens
            self._unread_tokens += unread_tokens

    def stepped(self, *, prefill_tokens: int, decode_tokens: int, drafted: int, accepted: int) -> None:
        """A step was computed."""
        with self._lock:
            self._prefill_tokens += prefill_tokens
            self._decode_tokens += decode_tokens
            self._drafted_tokens += drafted
            self._accepted_tokens += accepted

    def token(self, *, since_submission: float | None, since_last: float | None) -> None:
        """Record the seconds to a sequence's first token, or since its last tokens."""
        with self._lock:
            if since_submission is not None:
                self._first_token.add(since_submission)
            if since_last is not None:
                self._inter_token.add(since_last)

    def stopped(self) -> None:
        """Set the numbers of waiting and running sequences to 0."""
        with self._lock:
            self._waiting = self._waiting_tokens = self._running = 0

    def snapshot(self, blocks: BlockCounts, *, preemptions: int) -> EngineStats:
        """Everything at once."""
        with self._lock:
            return EngineStats(
                waiting=self._waiting,
                waiting_tokens=self._waiting_tokens,
                running=self._running,
                capacity=self._capacity,
                prefill_tokens=self._prefill_tokens,
                decode_tokens=self._decode_tokens,
                requests=self._requests,
                cancelled=self._cancelled,
                cached_tokens=self._cached_tokens,
                recomputed_tokens=self._recomputed_tokens,
                unread_tokens=self._unread_tokens,
                drafted_tokens=self._drafted_tokens,
                accepted_tokens=self._accepted_tokens,
                preemptions=preemptions,
                free_blocks=blocks.free,
                used_blocks=blocks.used,
                cached_blocks=blocks.cached,
                block_tokens=blocks.block_tokens,
                block_bytes=blocks.block_bytes,
                first_token_s=self._first_token.snapshot(),
                inter_token_s=self._inter_token.snapshot(),
            )
