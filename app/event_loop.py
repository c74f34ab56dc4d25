"""How late the event loop is: what every other request waits for when something computes on it."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

_SECONDS = 0.25  # between two looks: cheap, and a stall of that length is seen for what it is


@asynccontextmanager
async def lag_watched(observe: Callable[[float], None], *, seconds: float = _SECONDS) -> AsyncIterator[None]:
    """Tell `observe` every so many `seconds` how many seconds later than asked the loop came back."""

    async def watch() -> None:
        while True:
            asked = time.perf_counter()
            await asyncio.sleep(seconds)
            observe(max(0.0, time.perf_counter() - asked - seconds))

    task = asyncio.create_task(watch())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait({task})
