"""HTTP/1.1 connections with an end: uvicorn leaves one open whose client sends half a request, or reads no response.

Uvicorn's keep-alive timer runs from the end of a response to the next byte. These limits hold where it does not run.
A request that is being answered has the limits of the request gate instead: the rate of its body
(`app.api.gate.request_body`), its deadline, and the write timeout. Event streams may last.
"""

import asyncio
from collections.abc import Iterable
from typing import Any

import uvicorn
from uvicorn.config import Config
from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle
from uvicorn.server import ServerState


class ConnectionConfig(uvicorn.Config):
    """Uvicorn's configuration with the limits of a `Connection`."""

    def __init__(self, app: Any, *, header_timeout_s: float, unread_timeout_s: float, **options: Any) -> None:
        """Take the limits.

        Args:
            app: The ASGI application.
            header_timeout_s: Seconds in which a connection must send a whole request header.
            unread_timeout_s: Seconds that a connection which is being closed may leave the rest of a response unread.
            options: Uvicorn's own.
        """
        # h11 refuses headers above 64 KiB; httptools accepts any size, before a key is checked
        super().__init__(app, http=Connection, **options)
        self.header_timeout_s = header_timeout_s
        self.unread_timeout_s = unread_timeout_s


class Connection(H11Protocol):
    """A connection that knows since when it waits for its client. `close_overdue` must be called now and then."""

    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        assert isinstance(config, ConnectionConfig), "the configuration has the limits"
        super().__init__(config, server_state, app_state, _loop)
        self._header_timeout_s = config.header_timeout_s
        self._unread_timeout_s = config.unread_timeout_s
        self._header_since: float | None = None  # None: a request is being answered, or uvicorn's own timer runs
        self._unread = 0
        self._unread_since: float | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn's
        """Wait for the first request's header."""
        super().connection_made(transport)
        self._header_since = self.loop.time()

    def data_received(self, data: bytes) -> None:
        """Pass data on. The time for a header runs from its first byte, whatever follows."""
        super().data_received(data)
        if self._answering():
            self._header_since = None
        elif self._header_since is None:
            self._header_since = self.loop.time()

    def close_if_overdue(self, now: float) -> None:
        """Close the connection if its header is late, and cut it off if it is closing and its client reads nothing.

        Args:
            now: Seconds of the event loop's clock.
        """
        if self.transport.is_closing():
            self._cut_off_unread(now)
        elif self._header_since is not None and now - self._header_since > self._header_timeout_s:
            if self.transport.get_write_buffer_size():  # the end of the response before
                self.transport.close()
            else:
                self.transport.abort()  # over TLS, `close` would wait for the client's goodbye

    def _answering(self) -> bool:
        cycle: RequestResponseCycle | None = self.cycle  # None before the first request, whatever uvicorn declares
        return cycle is not None and not cycle.response_complete

    def _cut_off_unread(self, now: float) -> None:
        """A closed transport still sends what it holds, for ever if nobody reads it."""
        unread = self.transport.get_write_buffer_size()
        if self._unread_since is None or unread != self._unread:
            self._unread, self._unread_since = unread, now
        elif now - self._unread_since > self._unread_timeout_s:
            self.transport.abort()


def close_overdue(connections: Iterable[asyncio.Protocol], now: float) -> None:
    """Close the connections whose clients are late; to be called about once a second.

    Args:
        connections: Those of uvicorn's server state.
        now: Seconds of the event loop's clock.
    """
    for connection in list(connections):
        if isinstance(connection, Connection):
            connection.close_if_overdue(now)
