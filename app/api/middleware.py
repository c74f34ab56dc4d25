"""What happens before a route: a request id, the key, the role, the size of the body.

Pure ASGI, so that streams pass through untouched and a bad key is refused before its body is read.
"""

import time

import anyio
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import ClientDisconnect
from starlette.routing import Match
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.access.policy import allows, is_public, required_role
from app.api.errors import problem_of, problem_response
from app.api.event_stream import ClientGone
from app.api.request_body import bounded
from app.errors import Forbidden, TooLarge
from app.identifiers import new_id
from app.state import State

_JSON_LIMIT = 20 << 20  # bytes; multipart uploads have their own, larger limit
_DRAIN_SECONDS = 20.0
_UNSENT = 0
_CLIENT_CLOSED = 499  # nginx's name for a client that hung up before the answer


class RequestGate:
    """Names, authenticates, measures and bounds every HTTP request."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request (ASGI 3)."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        state: State = scope["app"].state.footnote
        request_id = new_id("req")
        scope.setdefault("state", {}).update(request_id=request_id, arrived=time.monotonic())
        started, status = time.perf_counter(), _UNSENT

        async def send_named(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                MutableHeaders(scope=message)["X-Request-Id"] = request_id
            await send(message)

        try:
            await _admit(scope, state)
            await self._app(scope, bounded(receive, limit=_limit(scope, state)), send_named)
        except (ClientGone, ClientDisconnect):
            status = _CLIENT_CLOSED
        except Exception as error:
            if status != _UNSENT:
                raise  # the status line is sent; the connection is all that can still be closed
            await _refuse(scope, receive, send_named, error, request_id)
        finally:
            route = _route(scope)
            state.metrics.requests.labels(scope["method"], route, str(status)).inc()
            state.metrics.latency.labels(scope["method"], route).observe(time.perf_counter() - started)


async def _admit(scope: Scope, state: State) -> None:
    headers = Headers(scope=scope)
    path, method = scope["path"], scope["method"]
    if not is_public(path):
        authorization = headers.get("authorization")
        principal = await anyio.to_thread.run_sync(state.authenticator.principal, authorization)
        scope["state"]["principal"] = principal
        role = required_role(method, path)
        if not allows(principal.role, role):
            raise Forbidden(f"This needs a key with the role '{role}'.")
    declared = headers.get("content-length", "")
    limit = _limit(scope, state)
    if declared.isdigit() and int(declared) > limit:
        raise TooLarge(f"The request body is larger than the limit of {limit >> 20} MiB.")


def _limit(scope: Scope, state: State) -> int:
    """Bytes a body may have: the file limit and a little framing for multipart, less for JSON."""
    multipart = Headers(scope=scope).get("content-type", "").startswith("multipart/form-data")
    return (state.settings.max_upload_mb << 20) + (1 << 20) if multipart else _JSON_LIMIT


async def _refuse(scope: Scope, receive: Receive, send: Send, error: Exception, request_id: str) -> None:
    status, body, headers = problem_of(error, request_id)
    if isinstance(error, TooLarge) and "expect" not in Headers(scope=scope):
        # A client that writes its whole body before it reads would see a reset, not our answer.
        with anyio.move_on_after(_DRAIN_SECONDS):
            await _drain(receive)
    response = problem_response(status, body, headers, path=scope["path"])
    await response(scope, receive, send)


def _route(scope: Scope) -> str:
    """The route's template, so that ids do not multiply the metric's series."""
    route = scope.get("route")
    if route is not None:
        return str(getattr(route, "path", "other"))
    for candidate in scope["app"].router.routes:
        match, _ = candidate.matches(scope)
        if match is Match.FULL:
            return str(getattr(candidate, "path", "other"))
    return "other"


async def _drain(receive: Receive) -> None:
    while True:
        message = await receive()
        if message["type"] == "http.disconnect" or not message.get("more_body", False):
            return
