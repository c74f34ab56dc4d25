"""Watches the event loop of a server in another process, and tells the test what held it."""

import asyncio
import json
from collections.abc import Awaitable, Callable, MutableMapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from tests.loop_watch import LOOP, Hold, LoopWatch

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Message, Receive, Send], Awaitable[None]]


class WatchedApplication:
    """An ASGI middleware that watches the event loop from the end of the application's start until its end.

    Each hold of the loop becomes a line of `file` at once, so that it outlives a kill. Holds of the interpreter by
    other threads are left out: these servers read documents in threads, where `footnote serve` has a process.
    """

    def __init__(self, app: Application, file: Path) -> None:
        self._application = app
        self._file = file

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """See the ASGI specification."""
        if scope["type"] != "lifespan":
            await self._application(scope, receive, send)
            return
        with ExitStack() as watching:

            async def started(message: Message) -> None:
                if message["type"] == "lifespan.startup.complete":
                    watching.enter_context(LoopWatch(asyncio.get_running_loop(), on_hold=self._note).watching())
                await send(message)

            await self._application(scope, receive, started)

    def _note(self, hold: Hold) -> None:
        if hold.what == LOOP:
            with self._file.open("a", encoding="utf-8") as file:
                file.write(json.dumps(str(hold)) + "\n")


def holds_in(file: Path) -> list[str]:
    """What held the loop of the servers that wrote to `file`."""
    if not file.exists():
        return []
    # A kill may cut the last line.
    return [
        json.loads(line) for line in file.read_text(encoding="utf-8").splitlines(keepends=True) if line.endswith("\n")
    ]
