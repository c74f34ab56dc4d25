"""Threads for calls to other servers: few, shared fairly, and apart from those that serve all other requests."""

from collections import Counter
from collections.abc import Callable
from typing import TypeVar

import anyio

from app.errors import ServerFull

Result = TypeVar("Result")

_RETRY_AFTER_S = 5  # a fast server has answered by then


class OutboundThreads:
    """Runs blocking calls to other servers. A call that finds no free thread is refused: it would wait for a stranger.

    One party, a tenant or a client's address, gets at most half of the threads. Use it on the event loop alone.

    Example:
        >>> threads = OutboundThreads(8)
        >>> page = await threads.run(lambda: fetch(url), party="acme")
    """

    def __init__(self, threads: int) -> None:
        """`threads` run at once, and none is started yet."""
        assert threads > 0, "at least one call can run"
        self._free = threads
        self._share = max(1, threads // 2)
        self._used: Counter[str] = Counter()
        self._threads = anyio.CapacityLimiter(threads)

    async def run(self, call: Callable[[], Result], *, party: str) -> Result:
        """The result of `call`, which runs in a thread; what it raises is passed on.

        Raises:
            ServerFull: All threads, or the share of this party, are in use. `call` was not run.
        """
        if not self._free or self._used[party] >= self._share:
            raise ServerFull(
                "Too many requests wait for other servers; try again in a few seconds.", retry_after_s=_RETRY_AFTER_S
            )
        self._free -= 1
        self._used[party] += 1
        try:
            return await anyio.to_thread.run_sync(call, limiter=self._threads)
        finally:
            self._free += 1
            self._used[party] -= 1
            if not self._used[party]:
                del self._used[party]
