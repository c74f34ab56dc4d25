"""The end of a service: nothing new is taken, what runs may finish for a while, and what then still runs is ended."""

import asyncio
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

_ENDING_SECONDS = 5.0  # to tell the readers of what is ended


class Drain:
    """Knows which requests run. Everything but `begin` belongs to the event loop."""

    def __init__(self, *, seconds: float) -> None:
        """Let requests run for `seconds` after `begin`."""
        self._seconds = seconds
        self._begun = False
        self._ended = False
        self._running: set[asyncio.Task[object]] = set()

    @property
    def begun(self) -> bool:
        """Whether nothing new is taken any more."""
        return self._begun

    @property
    def ended(self) -> bool:
        """Whether what still runs is being ended."""
        return self._ended

    @property
    def running(self) -> int:
        """Requests under way."""
        return len(self._running)

    @property
    def retry_after_s(self) -> int:
        """Seconds after which another process may serve here."""
        return max(1, round(self._seconds))

    def begin(self, *, at_once: bool = False) -> None:
        """Take nothing new from here on; `at_once` lets nothing finish either. From any thread, or a signal handler."""
        if at_once:
            self._seconds = 0.0
        self._begun = True

    @contextmanager
    def request(self) -> Iterator[None]:
        """While the block runs in this task, it is a request that is cancelled when the time is up."""
        task = asyncio.current_task()
        assert task is not None, "requests run in tasks"
        self._running.add(task)
        try:
            yield
        finally:
            self._running.discard(task)

    async def finish(self, *, before_end: Callable[[], None] = lambda: None) -> None:
        """Wait until nothing runs or the time is up; then call `before_end` and cancel what still runs, and wait."""
        assert self._begun, "what ends has begun to end"
        await self._nothing_runs(seconds=self._seconds)
        self._ended = True
        if not self._running:
            return
        before_end()
        for task in list(self._running):
            task.cancel()
        await self._nothing_runs(seconds=_ENDING_SECONDS)

    async def _nothing_runs(self, *, seconds: float) -> None:
        """Return when nothing runs, or after so many seconds; what comes in meanwhile counts."""
        until = time.monotonic() + seconds
        while self._running and (left := until - time.monotonic()) > 0:
            await asyncio.wait(set(self._running), timeout=left)
