"""The HTTP server: uvicorn, as Footnote runs it, and what signals do to it."""

import asyncio
import os
import signal
import socket
from collections.abc import Callable
from types import FrameType

import uvicorn
from fastapi import FastAPI

from app.server.drain import Drain
from app.server.process import notify
from app.server.state import State
from app.settings import ServerSettings

_CLOSING_SECONDS = 3  # for connections, once nothing runs on them any more


class Server(uvicorn.Server):
    """Stops on SIGTERM and SIGINT as `Drain` says; a second signal ends the process as a crash would."""

    def __init__(
        self,
        config: uvicorn.Config,
        drain: Drain,
        *,
        state: Callable[[], State],
        listening: Callable[[], None] = lambda: None,
    ) -> None:
        """Serve `config`.

        Args:
            config: The application, and how it is reached.
            drain: Told of the first signal; whoever begins it otherwise stops the server as well.
            state: The application's, asked for when it stops.
            listening: Called when requests are answered.
        """
        super().__init__(config)
        self._drain = drain
        self._state = state
        self._listening = listening
        self._drained: asyncio.Task[None] | None = None

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:  # noqa: ARG002 - uvicorn's signature
        """A signal came; uvicorn's own answer to it, which cuts streams, is left out."""
        if self._drain.begun:
            signal.signal(sig, signal.SIG_DFL)
            os.kill(os.getpid(), sig)
        self._drain.begin()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Answer requests, and say so."""
        await super().startup(sockets)
        self._listening()

    async def on_tick(self, counter: int) -> bool:
        """Look, every tenth of a second, whether it is time to stop."""
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
        """Begin nothing more in the background; the step under way is ended."""
        serving = self._state().serving
        if serving.embedder_swap is not None:
            serving.embedder_swap.close()
        serving.stop_worker()

    def _end_answers(self) -> None:
        """What is cancelled from here on is not the clients' doing."""
        models = self._state().serving.models
        if models is not None:
            models.answerer.running.server_stops()


def configuration(app: FastAPI, settings: ServerSettings) -> uvicorn.Config:
    """How uvicorn is to serve: whom it believes, how long it waits, what it says of itself."""
    return uvicorn.Config(
        app,
        http="h11",  # refuses headers above 64 KiB; httptools would take them without end, before any key is checked
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
