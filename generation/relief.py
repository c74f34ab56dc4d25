"""Gives the cache's memory back while the machine runs short of it."""

import logging
import time
from collections.abc import Callable
from typing import Protocol

from generation.host_memory import HostMemory, read_host_memory, return_freed_memory

logger = logging.getLogger("footnote.generation")

LOOK_S = 1.0
"""Seconds between two looks at the memory."""
_CALM_S = 30.0


class Shedding(Protocol):
    """A cache that can give blocks back; see `step.Runner.shed`."""

    def shed(self, share: float) -> int:
        """Forget a share of the cached blocks, and return the bytes that were freed."""
        ...


class Relief:
    """Sheds half of the cached blocks at each look while memory is short. Not safe to use from several threads.

    `keeps` says whether new blocks may be cached: not while memory is short, nor for half a minute after.
    """

    def __init__(
        self,
        cache: Shedding,
        *,
        read: Callable[[], HostMemory] = read_host_memory,
        give_back: Callable[[], None] = return_freed_memory,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._cache = cache
        self._read = read
        self._give_back = give_back
        self._clock = clock
        self._looked = clock()
        self._short_at: float | None = None
        self.given_back = 0

    @property
    def keeps(self) -> bool:
        """Whether computed blocks may be cached."""
        return self._short_at is None

    def look(self) -> None:
        """Read the memory, at most once a second, and give back what it asks for."""
        now = self._clock()
        if now - self._looked < LOOK_S:
            return
        self._looked = now
        memory = self._read()
        if not memory.is_short:
            if self._short_at is not None and now - self._short_at >= _CALM_S:
                self._short_at = None
            return
        if self._short_at is None:
            logger.warning(
                "memory is short: %d of %d MiB are available; the prompt cache is given back",
                memory.available >> 20,
                memory.total >> 20,
            )
        self._short_at = now
        freed = self._cache.shed(0.5)
        if freed:
            self.given_back += freed
            self._give_back()
