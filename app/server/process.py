"""Python's garbage collector, set for a server that has loaded what it stays with.

A collection of the oldest generation stops every thread: 70 ms with what a few hundred connections hold, half a
second with what was loaded. So what is loaded is taken out of its sight, and the oldest generation is looked at
rarely: requests leave cycles, and nearly all of them are gone with the young ones.
"""

import asyncio
import gc
import resource
import socket
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from app.settings import notify_socket

_YOUNG = 2_000  # objects that were made and not freed: a collection of them takes a few milliseconds
_MIDDLE = 5  # collections of the young
_OLD = 1_000  # of the middle


def leave_loaded_alone() -> None:
    """Collect from now on, but nothing that is there; the command line turns collecting off while it imports.

    What is there is not collected first: that would stop a server that already answers for a second.
    """
    gc.freeze()
    gc.set_threshold(_YOUNG, _MIDDLE, _OLD)
    gc.enable()


def forbid_core_dumps() -> None:
    """Have the kernel write none for this process and those it starts (setrlimit(2), RLIMIT_CORE)."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


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


def notify(state: str) -> None:
    """Send `READY=1`, `STOPPING=1` or another assignment to the manager's socket; nothing where there is none.

    A manager that does not listen is no reason to stop serving.
    """
    address = notify_socket()
    if not address.startswith(("/", "@")):
        return
    name = "\0" + address[1:] if address.startswith("@") else address  # the abstract namespace
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as channel:
            channel.connect(name)
            channel.sendall(state.encode())
    except OSError:
        return
