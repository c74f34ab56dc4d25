"""The HTTP server: uvicorn with Footnote's configuration and its own handling of signals."""

import asyncio
import os
import signal
import socket
import threading
from collections.abc import Callable
from types import FrameType

import uvicorn
from fastapi import FastAPI

from app.server.connection import ConnectionConfig, close_overdue
from app.server.drain import Drain
from app.server.process import notify
from app.server.state import State
from app.settings import Settings

_TICKS_BETWEEN_CLOSINGS = 5
_CLOSING_SECONDS = 3  # for connections to close, once no request runs on them
_LAST_SECONDS = 10.0  # for threads that are still busy, once everything is closed


class Server(uvicorn.Server):
    """A uvicorn server that drains on SIGTERM and SIGINT; a second signal kills the process at once."""

    def __init__(
        self,
        config: uvicorn.Config,
        drain: Drain,
        *,
        state: Callable[[], State],
        listening: Callable[[], None] = lambda: None,
    ) -> None:
        """Take collaborators.

        Args:
            config: The application, and how it is reached.
            drain: Begun by the first signal; the server also stops when it is begun by other code.
            state: Returns the application's state; called when the server stops.
            listening: Called once the server accepts requests.
        """
        super().__init__(config)
        self._drain = drain
        self._state = state
        self._listening = listening
        self._drained: asyncio.Task[None] | None = None
        self._signalled = False

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:  # noqa: ARG002 - uvicorn's signature
        """Begin the drain, in place of uvicorn's own handler, which would cut streams."""
        if self._drain.begun:
            signal.signal(sig, signal.SIG_DFL)
            os.kill(os.getpid(), sig)
        self._signalled = True
        self._drain.begin()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Accept requests, then call `listening`."""
        await super().startup(sockets)
        self._listening()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Close everything; after a signal the process then ends within 10 s, though a thread may still be busy.

        Python waits without limit for the threads of executors. What such a thread has reserved is settled at the next
        start.
        """
        await super().shutdown(sockets)
        if self._signalled:
            last = threading.Timer(_LAST_SECONDS, os._exit, (0,))
            last.daemon = True
            last.start()

    async def on_tick(self, counter: int) -> bool:
        """Check whether the drain was begun, and close late connections; uvicorn calls this every 0.1 s."""
        if counter % _TICKS_BETWEEN_CLOSINGS == 0:
            close_overdue(self.server_state.connections, asyncio.get_running_loop().time())
        if self._drain.begun and self._drained is None:
            self._drained = asyncio.create_task(self._drain_and_exit())
        return await super().on_tick(counter)

    async def _drain_and_exit(self) -> None:
        try:
            notify("STOPPING=1")
            stopped = asyncio.create_task(asyncio.to_thread(self._stop_ingestion))
            await self._drain.finish(before_end=self._end_answers)
            await stopped
        finally:
            self.should_exit = True

    def _stop_ingestion(self) -> None:
        """Stop the embedder swap and the ingestion worker after their current step."""
        serving = self._state().serving
        if serving.embedder_swap is not None:
            serving.embedder_swap.close()
        serving.stop_worker()

    def _end_answers(self) -> None:
        """Record answers cancelled from now on as aborted by the server, not by the client."""
        models = self._state().serving.models
        if models is not None:
            models.answerer.running.server_stops()


def configuration(app: FastAPI, settings: Settings) -> ConnectionConfig:
    """Uvicorn's configuration: trusted proxies, timeouts, TLS, and no headers or logs of its own."""
    return ConnectionConfig(
        app,
        header_timeout_s=settings.header_timeout_s,
        unread_timeout_s=settings.write_timeout_s,
        host=settings.host,
        port=settings.port,
        ws="none",
        lifespan="on",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=True,
        forwarded_allow_ips=settings.forwarded_allow_ips,
        timeout_keep_alive=settings.keep_alive_s,
        timeout_graceful_shutdown=_CLOSING_SECONDS,
        ssl_certfile=settings.tls_cert,
        ssl_keyfile=settings.tls_key,
    )
