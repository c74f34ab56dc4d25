"""Graceful shutdown: refuses new requests while the server stops, and ends running responses with an error.

Pure ASGI and the outermost middleware but one, so that every stream gets its closing event.
"""

import asyncio
import json

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.access.routes import speaks_anthropic, speaks_openai
from app.api.errors import anthropic_error, openai_error, problem_of, problem_response
from app.api.event_stream import sse
from app.api.root_path import route_path
from app.errors import ServerShutdown
from app.ids import new_id
from app.server.drain import Drain

_ALWAYS = frozenset({"/healthz", "/readyz", "/metrics"})
_TELLING_SECONDS = 2.0  # longest wait for a client that does not read


class DrainGate:
    """ASGI middleware that counts running requests and, once the server stops, refuses new ones with 503."""

    def __init__(self, app: ASGIApp, drain: Drain) -> None:
        self._app = app
        self._drain = drain

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request (ASGI 3)."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        reply = _Reply(scope, receive, send, self._drain)
        if self._drain.begun and route_path(scope) not in _ALWAYS:
            await reply.refuse()
            return
        try:
            with self._drain.request():
                await self._app(scope, receive, reply.send)
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if not self._drain.ended or task is None:
                raise
            task.uncancel()
            await reply.end()


class _Reply:
    """One response: the part already sent, and its ending when the server stops."""

    def __init__(self, scope: Scope, receive: Receive, send: Send, drain: Drain) -> None:
        self._scope = scope
        self._receive = receive
        self._send = send
        self._drain = drain
        self._started = False
        self._complete = False
        self._events = False

    async def send(self, message: Message) -> None:
        """Pass a message on; once the server stops, with `Connection: close`."""
        if message["type"] == "http.response.start":
            self._started = True
            self._events = Headers(raw=message["headers"]).get("content-type", "").startswith("text/event-stream")
            if self._drain.begun:
                MutableHeaders(scope=message)["Connection"] = "close"
        elif message["type"] == "http.response.body":
            self._complete = not message.get("more_body", False)
        await self._send(message)

    async def refuse(self) -> None:
        """Answer 503 without reading the request."""
        request_id = str(self._scope.setdefault("state", {}).setdefault("request_id", new_id("req")))
        status, body, headers = problem_of(ServerShutdown(), request_id)
        headers |= {"Connection": "close", "Retry-After": str(self._drain.retry_after_s), "X-Request-Id": request_id}
        response = problem_response(status, body, headers, path=route_path(self._scope))
        await response(self._scope, self._receive, self._send)

    async def end(self) -> None:
        """End the response: with 503 when nothing was sent yet, with an error event in an event stream.

        Any other response stays incomplete, which closes the connection, so that the client sees it was cut off.
        """
        async with asyncio.timeout(_TELLING_SECONDS):
            if not self._started:
                await self.refuse()
            elif self._events and not self._complete:
                _, body, _ = problem_of(ServerShutdown(), str(self._scope["state"]["request_id"]))
                path = route_path(self._scope)
                if speaks_openai(path):
                    event = sse(None, json.dumps({"error": openai_error(body)}))
                elif speaks_anthropic(path):
                    event = sse("error", json.dumps({**body, "type": "error", "error": anthropic_error(body)}))
                else:
                    event = sse("error", json.dumps(body))
                await self._send({"type": "http.response.body", "body": event, "more_body": False})
