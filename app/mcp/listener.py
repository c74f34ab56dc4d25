"""The MCP server over streamable HTTP, on the loopback interface, for programs of this machine.

Pages in a browser reach that interface too, by a name of theirs that leads here (DNS rebinding) or from another origin.
A request for another host is refused, as is any request with an origin: only pages send one.
"""

import os
import secrets
import signal
import socket
from types import FrameType
from typing import Any

import uvicorn
from mcp.server.mcpserver import MCPServer
from mcp.server.transport_security import TransportSecuritySettings
from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from app.errors import SetupError

_ADDRESS = "127.0.0.1"
_HOSTS = (_ADDRESS, "localhost")  # on any port: one may be forwarded to ours
_CLOSING_SECONDS = 3  # for connections: a client's stream of messages has no end of its own


def listen(port: int) -> socket.socket:
    """Binds a socket to the loopback interface; port 0 lets the system choose.

    Raises:
        SetupError: The port cannot be had.
    """
    try:
        return socket.create_server((_ADDRESS, port))
    except OSError as error:
        raise SetupError(f"Cannot listen on {_ADDRESS}:{port}: {os.strerror(error.errno or 0)}.") from None


def address_of(listener: socket.socket) -> str:
    """The URL that clients connect to."""
    return f"http://{_ADDRESS}:{listener.getsockname()[1]}/mcp"


async def serve(server: MCPServer[Any], listener: socket.socket, *, key: str | None = None) -> None:
    """Serves until a signal arrives.

    Args:
        server: The server that answers.
        listener: Where; closed at the end.
        key: The bearer token that clients must send; None requires none.
    """
    security = TransportSecuritySettings(allowed_hosts=[*_HOSTS, *(f"{host}:*" for host in _HOSTS)], allowed_origins=[])
    app: ASGIApp = server.streamable_http_app(transport_security=security)
    config = uvicorn.Config(
        app if key is None else _Keyed(app, key),
        http="h11",
        ws="none",
        lifespan="on",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_graceful_shutdown=_CLOSING_SECONDS,
    )
    await _Listening(config).serve(sockets=[listener])


class _Keyed:
    """ASGI middleware that requires the key as a bearer token."""

    def __init__(self, app: ASGIApp, key: str) -> None:
        self._app = app
        self._key = key.encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            scheme, _, given = Headers(scope=scope).get("authorization", "").partition(" ")
            if scheme.casefold() != "bearer" or not secrets.compare_digest(given.strip().encode("latin-1"), self._key):
                refusal = PlainTextResponse(
                    "This server wants a key: Authorization: Bearer KEY.\n", 401, {"WWW-Authenticate": "Bearer"}
                )
                await refusal(scope, receive, send)
                return
        await self._app(scope, receive, send)


class _Listening(uvicorn.Server):
    """A uvicorn server that returns at the first signal, so that resources close; a second signal ends the process."""

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:  # noqa: ARG002 - uvicorn's signature
        """Handles a signal."""
        if self.should_exit:
            signal.signal(sig, signal.SIG_DFL)
            os.kill(os.getpid(), sig)
        self.should_exit = True
