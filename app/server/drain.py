"""Draining a server: new requests are refused, running ones may finish until a deadline, and the rest is cancelled."""

import asyncio
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

_ENDING_SECONDS = 5.0  # for cancelled requests to send their last event


class Drain:
    """Counts running requests and ends them. All methods but `begin` must be called on the event loop.

    Example:
        >>> drain = Drain(seconds=30)
        >>> drain.begin()
        >>> await drain.finish()
    """

    def __init__(self, *, seconds: float) -> None:
        """Requests may run for `seconds` after `begin`."""
        self._seconds = seconds
        self._begun = False
        self._ended = False
        self._running: set[asyncio.Task[object]] = set()

    @property
    def begun(self) -> bool:
        """Whether new requests are refused."""
        return self._begun

    @property
    def ended(self) -> bool:
        """Whether requests still running are being cancelled."""
        return self._ended

    @property
    def running(self) -> int:
        """Number of running requests."""
        return len(self._running)

    @property
    def retry_after_s(self) -> int:
        """Value of `Retry-After`: seconds until another process may serve at this address."""
        return max(1, round(self._seconds))

    def begin(self, *, at_once: bool = False) -> None:
        """Refuse new requests from now on; `at_once` also cancels running ones without a wait.

        May be called from any thread and from a signal handler.
        """
        if at_once:
            self._seconds = 0.0
        self._begun = True

    @contextmanager
    def request(self) -> Iterator[None]:
        """Count the block as a running request; its task is cancelled when the time is up."""
        task = asyncio.current_task()
        assert task is not None, "requests run in tasks"
        self._running.add(task)
        try:
            yield
        finally:
            self._running.discard(task)

    async def finish(self, *, before_end: Callable[[], None] = lambda: None) -> None:
        """Wait until no request runs or the time is up; then call `before_end`, cancel the rest and wait for them."""
        assert self._begun, "begin() comes first"
        await self._nothing_runs(seconds=self._seconds)
        self._ended = True
        if not self._running:
            return
        before_end()
        for task in list(self._running):
            task.cancel()
        await self._nothing_runs(seconds=_ENDING_SECONDS)

    async def _nothing_runs(self, *, seconds: float) -> None:
        """Return when no request runs, or after `seconds`; requests that begin meanwhile count too."""
        until = time.monotonic() + seconds
        while self._running and (left := until - time.monotonic()) > 0:
            await asyncio.wait(set(self._running), timeout=left)
