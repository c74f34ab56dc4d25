"""The route of the Model Context Protocol, over streamable HTTP.

The package that speaks the protocol takes seconds and 25 MB to import, so the first request imports it, not the start.
"""

import threading
from collections.abc import Awaitable, Callable

import anyio
from fastapi import APIRouter, Request
from fastapi.responses import Response
from starlette.types import Message, Receive, Scope, Send

from app.api.event_stream import ClientGone, unless_disconnected
from app.api.protected_resource import PATH
from app.errors import CrossSiteRequest, SetupError

router = APIRouter(tags=["mcp"])

_Serve = Callable[[Request, bytes, Send], Awaitable[None]]
_importing = threading.Lock()


@router.post(PATH, include_in_schema=False)
async def mcp(request: Request) -> Response:
    """One JSON-RPC message of the protocol: the answer is its response, as JSON or as a stream of events.

    Raises:
        CrossSiteRequest: A page in a browser sent it.
        SetupError: The package `mcp` is not installed.
    """
    _require_no_page(request)
    body = await request.body()
    serve = await anyio.to_thread.run_sync(_imported)
    return _Exchange(request, body, serve)


class _Exchange(Response):
    """The response to one message. A client that leaves cancels what it asked for."""

    def __init__(self, request: Request, body: bytes, serve: _Serve) -> None:
        self._request = request
        self._message = body
        self._serve = serve
        super().__init__()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG002 - ASGI's signature
        """Send it.

        Raises:
            ClientGone: The client left before its end.
        """
        complete = False

        async def noting(message: Message) -> None:
            nonlocal complete
            if message["type"] == "http.response.start":
                message["status"] = int(message["status"])  # the package sends members of an enumeration
            await send(message)
            complete = complete or (message["type"] == "http.response.body" and not message.get("more_body", False))

        async def whole() -> bool:
            await self._serve(self._request, self._message, noting)
            return True

        try:
            await unless_disconnected(self._request, whole)
        except ClientGone:
            if not complete:  # uvicorn calls the end of a response a disconnect, too
                raise


def _require_no_page(request: Request) -> None:
    """Refuse pages of other sites: a browser's pages reach this server by any name that leads to it (DNS rebinding).

    Only browsers send an origin, and no page of ours speaks the protocol.

    Raises:
        CrossSiteRequest: The request has an origin.
    """
    if "origin" in request.headers:
        raise CrossSiteRequest("This request comes from a page in a browser; none of ours speaks this protocol.")


def _imported() -> _Serve:
    with _importing:
        try:
            from app.api.mcp.server import quiet, serve
        except ModuleNotFoundError as error:
            if error.name is not None and error.name.partition(".")[0] not in {"mcp", "mcp_types"}:
                raise
            raise SetupError("This server does not speak MCP: install footnote-rag[mcp].") from None
        quiet()
        return serve
