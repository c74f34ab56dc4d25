"""Polls the health of a generation server, at once after a failure."""

import asyncio
import logging
from contextlib import suppress
from typing import Protocol

from generation.backoff import Backoff

logger = logging.getLogger("footnote.generation")


class Checked(Protocol):
    """A server with a health check; see `remote_server.CompletionServer`."""

    async def check(self) -> str | None:
        """The server's error, None when it answers."""
        ...


class HealthWatch:
    """Polls a server's health: at fixed intervals while it answers, with growing pauses while it does not.

    `run` belongs to one event loop, as do `look` and `seen`; `reachable` may be read from any thread.
    """

    def __init__(self, server: Checked, *, interval_s: float) -> None:
        """Create a watch that has not polled yet, so `reachable` is False.

        Args:
            server: The server to poll.
            interval_s: Seconds between two polls of a server that answers; 1/8 of it after a first failure,
                doubled with each that follows, up to four times the interval.
        """
        self._server = server
        self._interval_s = interval_s
        self._backoff = Backoff(first_s=interval_s / 8, longest_s=interval_s * 4)
        self._reachable = False
        self._wanted = asyncio.Event()

    @property
    def reachable(self) -> bool:
        """Whether the server answered the last poll. False until the first answer."""
        return self._reachable

    def seen(self) -> None:
        """Record that the server has just answered another request."""
        self._reachable = True

    def look(self) -> None:
        """Poll at once, since a request failed."""
        self._wanted.set()

    async def run(self) -> None:
        """Watch until cancelled. Each change of the server's state is logged once."""
        failures, last = 0, ""
        while True:
            wrong = await self._ask()
            self._reachable = wrong is None
            failures = 0 if wrong is None else failures + 1
            if (wrong or "answers") != last:
                last = wrong or "answers"
                logger.log(logging.WARNING if wrong else logging.INFO, "the generation server %s", last)
            pause = self._backoff.after(failures) if failures else self._interval_s
            self._wanted.clear()
            with suppress(TimeoutError):
                await asyncio.wait_for(self._wanted.wait(), pause)

    async def _ask(self) -> str | None:
        try:
            return await self._server.check()
        except Exception:
            logger.exception("the generation server's health check failed")
            return "cannot be asked"
