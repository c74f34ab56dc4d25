"""A client that talks to the application as a server would, message by message, and can leave between any two."""

import asyncio
import json
from collections.abc import MutableMapping
from dataclasses import dataclass
from typing import Any

from tests.server import ADMIN_KEY

Message = MutableMapping[str, Any]


@dataclass(slots=True)
class Reply:
    """What a client got: the bill where it read to the end."""

    status: int = 0
    request_id: str = ""
    usage: dict[str, Any] | None = None


class Client:
    """Of one ASGI application, as its administrator."""

    def __init__(self, app: Any) -> None:
        self._app = app

    async def ask(
        self,
        body: dict[str, Any],
        *,
        leave_in: float | None = None,
        leave_after: int | None = None,
        cancel_after: int | None = None,
    ) -> Reply:
        """Ask; leave in so many seconds or after so many deltas, or cancel after so many and read on."""
        reply, left, text = Reply(), asyncio.Event(), bytearray()
        if leave_in is not None:
            asyncio.get_running_loop().call_later(leave_in, left.set)
        request = iter([{"type": "http.request", "body": json.dumps(body).encode(), "more_body": False}])
        seen = 0

        async def receive() -> Message:
            for message in request:
                return message
            await left.wait()
            return {"type": "http.disconnect"}

        async def send(message: Message) -> None:
            nonlocal seen
            if message["type"] == "http.response.start":
                reply.status = message["status"]
                reply.request_id = dict(message["headers"]).get(b"x-request-id", b"").decode()
                return
            text.extend(message.get("body", b""))
            before, seen = seen, text.count(b"event: delta")
            if leave_after is not None and seen >= leave_after:
                left.set()
            if cancel_after is not None and before < cancel_after <= seen:
                await self._cancel(reply.request_id)

        await self._app(_scope("/v1/ask"), receive, send)
        reply.usage = _usage(bytes(text), stream=body["stream"]) if reply.status == 200 else None
        return reply

    async def get(self, path: str, query: str) -> dict[str, Any]:
        """A body of JSON."""
        text = bytearray()

        async def send(message: Message) -> None:
            text.extend(message.get("body", b""))

        await self._app({**_scope(path), "method": "GET", "query_string": query.encode()}, _nothing_more(), send)
        found: dict[str, Any] = json.loads(text)
        return found

    async def _cancel(self, request_id: str) -> None:
        async def send(message: Message) -> None:
            """404 where it has just ended: nothing to say."""

        await self._app(_scope(f"/v1/requests/{request_id}/cancel"), _nothing_more(), send)


def _scope(path: str) -> dict[str, Any]:
    headers = [(b"authorization", f"Bearer {ADMIN_KEY}".encode()), (b"content-type", b"application/json")]
    return {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.4"},
        "http_version": "1.1",
        "method": "POST",
        "scheme": "http",
        "path": path,
        "raw_path": path.encode(),
        "query_string": b"",
        "root_path": "",
        "headers": headers,
        "client": ("127.0.0.1", 1),
        "server": ("127.0.0.1", 80),
    }


def _nothing_more() -> Any:
    request = iter([{"type": "http.request", "body": b"", "more_body": False}])

    async def receive() -> Message:
        for message in request:
            return message
        await asyncio.Event().wait()
        raise AssertionError("nobody sets it")

    return receive


def _usage(text: bytes, *, stream: bool) -> dict[str, Any] | None:
    if not stream:
        whole: dict[str, Any] = json.loads(text)["usage"]
        return whole
    event = ""
    for line in text.decode().splitlines():
        if line.startswith("event: "):
            event = line.removeprefix("event: ")
        elif event == "usage" and line.startswith("data: "):
            bill: dict[str, Any] = json.loads(line.removeprefix("data: "))
            return bill
    return None
