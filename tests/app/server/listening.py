"""An application without models behind Footnote's own HTTP server, on a loopback port."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from typing import Any

from app.api.application import create_app
from app.server.drain import Drain
from app.server.http_server import Server, configuration
from app.server.state import State

_START_SECONDS = 30


@dataclass(frozen=True, slots=True)
class Listening:
    """A running server and its port."""

    port: int
    server: Server

    @property
    def connections(self) -> int:
        """The number of open connections."""
        return len(self.server.server_state.connections)


@contextmanager
def listening(state: State, *, send_buffer: int | None = None, **settings: Any) -> Iterator[Listening]:
    """Serves `state` with other settings until the block ends.

    Args:
        state: The application.
        send_buffer: Bytes of a response that the kernel holds for a connection, about.
        settings: Those that differ.
    """
    changed = replace(state, settings=state.settings.model_copy(update=settings))
    app, drain, ready = create_app(lambda: nullcontext(changed), version="0"), Drain(seconds=0), threading.Event()
    config = configuration(app, changed.settings)
    server = Server(config, drain, state=lambda: state, listening=ready.set)
    with socket.create_server(("127.0.0.1", 0), backlog=512) as listener:
        if send_buffer is not None:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, send_buffer)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, name="listening")
        thread.start()
        try:
            assert ready.wait(_START_SECONDS), "the server does not listen"
            yield Listening(int(listener.getsockname()[1]), server)
        finally:
            drain.begin(at_once=True)
            thread.join(_START_SECONDS)
    assert not thread.is_alive(), "the server did not end"
