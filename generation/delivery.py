"""The stream of a sequence: passes deltas from the engine's threads to any asyncio loop."""

import asyncio
import threading
from collections import deque
from collections.abc import AsyncIterator, Callable

from generation.types import Completion, Delta


class TokenStream:
    """A `ports.Stream`. The engine writes, one task reads, any thread may close; no side waits for another.

    The buffer is bounded by the sequence's `max_tokens`.
    """

    def __init__(self, *, on_close: Callable[[], None], on_drained: Callable[[], None]) -> None:
        """Make an empty stream.

        Args:
            on_close: Called once, at the first close.
            on_drained: Called by the reader when it has taken the last delta after `end`.
        """
        self._on_close = on_close
        self._on_drained = on_drained
        self._lock = threading.Lock()
        self._deltas: deque[Delta] = deque()
        self._taken_tokens = 0
        self._closed = False
        self._ended = False
        self._completion: Completion | None = None
        self._exhausted = False
        self._reader: tuple[asyncio.AbstractEventLoop, asyncio.Event] | None = None

    @property
    def closed(self) -> bool:
        """Whether the reader has closed the stream."""
        return self._closed

    @property
    def settled(self) -> bool:
        """Whether nothing more will be taken: the engine is done, and the reader took all or has gone."""
        with self._lock:
            return self._ended and (self._closed or not self._deltas)

    @property
    def taken_tokens(self) -> int:
        """Tokens covered by the deltas the reader has taken."""
        return self._taken_tokens

    def put(self, delta: Delta) -> None:
        """Offer a delta. After `close` it goes nowhere."""
        with self._lock:
            assert not self._ended, "a delta after the end"
            if not self._closed:
                self._deltas.append(delta)
            self._wake()

    def end(self) -> None:
        """The engine is done: no delta follows."""
        with self._lock:
            self._ended = True

    def seal(self, completion: Completion) -> None:
        """Hand over the completion, which the reader gets after the last delta."""
        with self._lock:
            assert self._ended, "a completion before the end"
            assert self._completion is None, "a second completion"
            self._completion = completion
            self._wake()

    def close(self) -> None:
        """See `ports.Stream.close`. Deltas not taken yet are dropped; the completion still comes."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
            self._deltas.clear()
        self._on_close()

    def __aiter__(self) -> AsyncIterator[Delta | Completion]:
        return self

    async def __anext__(self) -> Delta | Completion:
        while True:
            with self._lock:
                taken = self._take()
                drained = self._ended and not self._deltas
            if isinstance(taken, asyncio.Event):
                await taken.wait()
                continue
            if drained and isinstance(taken, Delta):
                self._on_drained()
            return taken

    def _take(self) -> Delta | Completion | asyncio.Event:
        """The next thing to yield, or an event that is set when there may be one."""
        if self._deltas:
            delta = self._deltas.popleft()
            self._taken_tokens += delta.tokens
            return delta
        if self._exhausted:
            raise StopAsyncIteration
        if self._completion is not None:
            self._exhausted = True
            return self._completion
        arrival = asyncio.Event()
        self._reader = (asyncio.get_running_loop(), arrival)
        return arrival

    def _wake(self) -> None:
        if self._reader is None:
            return
        (loop, arrival), self._reader = self._reader, None
        # A loop that has shut down has no reader left to wake. It may close between the check and the
        # call, hence the except.
        if not loop.is_closed():
            try:
                loop.call_soon_threadsafe(arrival.set)
            except RuntimeError:
                return
