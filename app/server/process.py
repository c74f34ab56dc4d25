"""The server's process: core dumps, garbage collection, event-loop lag, and messages to the service manager.

In the order of a process's life: core dumps are forbidden before any secret is in memory, the garbage collector is
tuned once the models are loaded, the event loop's lag is measured while it serves, and a service manager such as
systemd is notified when it is ready and when it stops.
"""

import asyncio
import ctypes
import gc
import resource
import socket
import sys
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from app.settings import notify_socket

_PR_SET_DUMPABLE = 4
_YOUNG = 2_000  # objects allocated and not freed: a collection of them takes a few milliseconds
_MIDDLE = 5  # collections of the youngest generation
_OLD = 1_000  # collections of the middle generation
_LAG_SECONDS = 0.25  # between two measurements: cheap, and a stall of that length is seen in full


def forbid_core_dumps() -> None:
    """Forbid core dumps of this process and its children (setrlimit(2), RLIMIT_CORE): they would contain secrets.

    On Linux other processes of the same user cannot read its memory or environment any more (PR_SET_DUMPABLE);
    a debugger or profiler needs root then.
    """
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if sys.platform.startswith("linux"):
        ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)


def freeze_loaded_objects() -> None:
    """Exclude all present objects from garbage collection, and collect the oldest generation rarely.

    A collection of the oldest generation stops every thread: 70 ms for the objects of a few hundred connections, half
    a second for the loaded libraries and models. Requests leave cycles, but nearly all are freed with the young
    generations. Nothing is collected first: that would stop a server that already serves requests for a second. The
    command line turns collection off while it imports; here it is turned on.
    """
    gc.freeze()
    gc.set_threshold(_YOUNG, _MIDDLE, _OLD)
    gc.enable()


@asynccontextmanager
async def lag_measured(observe: Callable[[float], None], *, seconds: float = _LAG_SECONDS) -> AsyncIterator[None]:
    """Measure the event loop's lag every `seconds` inside the block.

    Args:
        observe: Receives how many seconds later than requested the loop resumed the measuring task.
        seconds: Between two measurements.
    """

    async def measure() -> None:
        while True:
            began = time.perf_counter()
            await asyncio.sleep(seconds)
            observe(max(0.0, time.perf_counter() - began - seconds))

    task = asyncio.create_task(measure())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait({task})


def notify(state: str) -> None:
    """Send `READY=1`, `STOPPING=1` or another assignment to the service manager's socket (sd_notify(3)).

    No effect without a socket or a listener on it, since the server works without a service manager.
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
