"""Server-sent events: streams that end with a terminal event and stop when the client disconnects."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Coroutine, Mapping
from contextlib import aclosing
from typing import Any, TypeVar

import anyio
from fastapi import Request
from fastapi.responses import StreamingResponse
from fastapi.sse import format_sse_event
from pydantic import BaseModel
from starlette.types import Receive, Scope, Send

from app.api.errors import problem_of
from app.api.root_path import route_path
from app.api.schemas.shape import SCHEMA_REFERENCE

Result = TypeVar("Result")

HEARTBEAT_SECONDS = 10.0

_UNUSED = {
    "id": {"type": "string", "description": "No event has one: a stream cannot be resumed."},
    "retry": {"type": "integer", "minimum": 0, "description": "No event has one."},
}
"""The fields of server-sent events that no stream sends."""


class ClientGone(Exception):
    """The client disconnected before the response began."""


class EventStream(StreamingResponse):
    """A `text/event-stream` response that is cancelled as soon as the client disconnects.

    Starlette notices a disconnect only when `send` fails. While a request waits for its first token nothing is sent,
    so this response also listens for the disconnect.

    Example:
        >>> return EventStream(events(), on_close=release)
    """

    def __init__(
        self,
        events: AsyncGenerator[bytes, None],
        *,
        on_close: Callable[[], None] = lambda: None,
        heartbeat: float = HEARTBEAT_SECONDS,
    ) -> None:
        """Send `events`; `on_close` is called at the end, also when the client left before the first event."""
        self._on_close = on_close
        super().__init__(
            _with_heartbeats(events, heartbeat),
            media_type="text/event-stream",
            headers={"Cache-Control": "no-cache", "X-Accel-Buffering": "no"},
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG002 - ASGI's signature
        """Send until the events end or the client leaves."""
        try:
            await until_first(self.stream_response(send), self.listen_for_disconnect(receive))
        finally:
            self._on_close()


def event_stream(*names: str, bodies: Mapping[str, type[BaseModel]] | None = None) -> dict[str, Any]:
    """The OpenAPI description of a stream of events with these names (OpenAPI 3.2's `itemSchema`).

    `bodies` are the JSON in `data` of events that have a schema. `app.api.openapi` adds the schemas to the document.
    """
    data = {"type": "string", "description": "JSON, or `[DONE]` at the end of a stream in OpenAI's protocol."}
    properties: dict[str, Any] = {"data": data, **_UNUSED}
    if names:
        properties["event"] = {"type": "string", "enum": list(names), "description": "The kind of event."}
    required = sorted(properties.keys() - _UNUSED.keys())
    item: dict[str, Any] = {"type": "object", "required": required, "properties": properties}
    if bodies:
        item["allOf"] = [_with_body(name, body) for name, body in bodies.items()]
    return {"text/event-stream": {"itemSchema": item}}


def _with_body(event: str, body: type[BaseModel]) -> dict[str, Any]:
    """The condition that the `data` of this event is the body as JSON (JSON Schema 2020-12, section 8.5)."""
    content = {
        "contentMediaType": "application/json",
        "contentSchema": {"$ref": SCHEMA_REFERENCE.format(model=body.__name__)},
    }
    return {"if": {"properties": {"event": {"const": event}}}, "then": {"properties": {"data": content}}}


def sse(event: str | None, data: str) -> bytes:
    """One event as bytes (WHATWG HTML, section 9.2); `data` is sent unchanged."""
    return format_sse_event(event=event, data_str=data)


async def with_terminal_error(
    events: AsyncGenerator[bytes, None],
    request: Request,
    request_id: str,
    *,
    render: Callable[[dict[str, object]], bytes],
) -> AsyncGenerator[bytes, None]:
    """The `events`; when they fail midway, followed by an error event made by `render`.

    The request's state then has `failed`, by which its response is not stored under its idempotency key.
    """
    try:
        async with aclosing(events):
            async for event in events:
                yield event
    except Exception as error:  # noqa: BLE001 - the status line was sent; the problem goes into the stream
        _, body, _ = problem_of(error, request_id, path=route_path(request.scope))
        request.scope["state"]["failed"] = True
        yield render(body)


async def unless_disconnected(request: Request, work: Callable[[], Coroutine[Any, Any, Result]]) -> Result:
    """Await `work`, and cancel it when the client disconnects. The request's body must have been read.

    Work of a request with an idempotency key continues: the client can send the request again for the response.

    Raises:
        ClientGone: The client disconnected.
    """
    if "idempotency" in request.scope["state"]:
        return await work()

    async def listen() -> None:
        while (await request.receive())["type"] != "http.disconnect":
            pass

    result = await until_first(work(), listen())
    if result is None:
        raise ClientGone
    return result


async def until_first(work: Coroutine[Any, Any, Result], interruption: Coroutine[Any, Any, None]) -> Result | None:
    """The result of `work`, or None when `interruption` came first; the other one is cancelled and awaited."""
    task, listener = asyncio.ensure_future(work), asyncio.ensure_future(interruption)
    try:
        await asyncio.wait({task, listener}, return_when=asyncio.FIRST_COMPLETED)
        return task.result() if task.done() else None
    finally:
        for unfinished in (task, listener):
            unfinished.cancel()
        with anyio.CancelScope(shield=True):
            await asyncio.wait({task, listener})


async def _with_heartbeats(events: AsyncGenerator[bytes, None], seconds: float) -> AsyncGenerator[bytes, None]:
    """`events`, with a comment whenever none came for `seconds`, so that proxies keep the connection."""
    pending: asyncio.Task[bytes] | None = None
    try:
        while True:
            pending = asyncio.ensure_future(_next(events))
            while not (await asyncio.wait({pending}, timeout=seconds))[0]:
                yield b": still working\n\n"
            try:
                event = pending.result()
            except _Ended:
                return
            yield event
    finally:
        if pending is not None and not pending.done():
            pending.cancel()
            await _settled(pending)
        with anyio.CancelScope(shield=True):
            await events.aclose()


async def _next(events: AsyncGenerator[bytes, None]) -> bytes:
    try:
        return await anext(events)
    except StopAsyncIteration:
        raise _Ended from None


class _Ended(Exception):
    """The events ended; StopAsyncIteration itself cannot leave a task."""


async def _settled(task: "asyncio.Task[bytes]") -> None:
    """Wait for a cancelled task without being cancelled again."""
    with anyio.CancelScope(shield=True):
        await asyncio.wait({task})
