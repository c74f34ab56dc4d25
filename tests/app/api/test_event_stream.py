"""app.api.event_stream: a stream ends with a terminal event, and ends everything when its reader leaves."""

import asyncio
from collections.abc import AsyncGenerator
from dataclasses import replace
from typing import Any, ClassVar

import pytest
from fastapi import FastAPI, Request

from app.api.event_stream import ClientGone, EventStream, sse, unless_disconnected, with_terminal_error
from app.api.gate.request_gate import RequestGate
from app.api.root_path import RootPath

SCOPE: dict[str, Any] = {"type": "http", "asgi": {"spec_version": "2.4"}}


class Connection:
    """The server's side of one connection: what was sent, and when the client hangs up."""

    def __init__(self) -> None:
        self.sent: list[bytes] = []
        self.gone = asyncio.Event()

    async def send(self, message: Any) -> None:
        if message["type"] == "http.response.body":
            self.sent.append(message.get("body", b""))

    async def receive(self) -> dict[str, str]:
        await self.gone.wait()
        return {"type": "http.disconnect"}


class Source:
    """Events, then silence until cancelled; remembers that it was closed."""

    def __init__(self, *events: bytes, ends: bool) -> None:
        self._events, self._ends = events, ends
        self.closed = False

    async def __call__(self) -> AsyncGenerator[bytes, None]:
        try:
            for event in self._events:
                yield event
            if not self._ends:
                await asyncio.Event().wait()
        finally:
            self.closed = True


async def test_events_are_sent_in_order_and_everything_is_closed():
    source, connection, closed = Source(b"a", b"b", ends=True), Connection(), []
    await EventStream(source(), on_close=lambda: closed.append(1))(SCOPE, connection.receive, connection.send)

    assert b"".join(connection.sent) == b"ab"
    assert source.closed
    assert closed == [1]


async def test_a_reader_who_leaves_during_silence_ends_the_source():
    source, connection, closed = Source(b"a", ends=False), Connection(), []
    response = EventStream(source(), on_close=lambda: closed.append(1))
    serving = asyncio.ensure_future(response(SCOPE, connection.receive, connection.send))
    while not connection.sent:
        await asyncio.sleep(0)
    connection.gone.set()
    await asyncio.wait_for(serving, timeout=5)

    assert source.closed
    assert closed == [1]


async def test_a_reader_who_is_gone_before_the_first_event_is_noticed_too():
    source, connection, closed = Source(ends=False), Connection(), []
    connection.gone.set()
    response = EventStream(source(), on_close=lambda: closed.append(1))
    await asyncio.wait_for(response(SCOPE, connection.receive, connection.send), timeout=5)

    assert closed == [1]


async def test_silence_is_broken_by_comments():
    source, connection = Source(ends=False), Connection()
    response = EventStream(source(), on_close=lambda: None, heartbeat=0.01)
    serving = asyncio.ensure_future(response(SCOPE, connection.receive, connection.send))
    while len(connection.sent) < 3:
        await asyncio.sleep(0.01)
    connection.gone.set()
    await serving

    assert set(connection.sent) <= {b": still working\n\n", b""}


async def test_a_failure_midway_becomes_the_last_event():
    async def failing() -> AsyncGenerator[bytes, None]:
        yield b"a"
        raise RuntimeError("secret")

    request = Request({"type": "http", "state": {"route_path": "/v1/ask"}})
    events = with_terminal_error(failing(), request, "req_1", render=lambda body: sse("error", str(body["status"])))

    assert [event async for event in events] == [b"a", sse("error", "500")]
    assert request.scope["state"]["failed"] is True


async def test_work_is_cancelled_when_its_client_hangs_up():
    connection, cancelled = Connection(), []

    class Request:
        scope: ClassVar[dict[str, Any]] = {"state": {}}
        receive = staticmethod(connection.receive)

    async def work() -> int:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.append(1)
            raise
        return 1

    asyncio.get_running_loop().call_later(0.05, connection.gone.set)
    with pytest.raises(ClientGone):
        await unless_disconnected(Request(), work)  # type: ignore[arg-type]

    assert cancelled == [1]


async def test_work_that_is_done_or_fails_is_passed_on():
    class Request:
        scope: ClassVar[dict[str, Any]] = {"state": {}}
        receive = staticmethod(Connection().receive)

    async def fails() -> int:
        raise ValueError("as it is")

    async def done() -> int:
        return 7

    assert await unless_disconnected(Request(), done) == 7  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="as it is"):
        await unless_disconnected(Request(), fails)  # type: ignore[arg-type]


async def test_c13_work_under_an_idempotency_key_goes_on_when_its_client_hangs_up():
    connection = Connection()
    connection.gone.set()

    class Request:
        scope: ClassVar[dict[str, Any]] = {"state": {"idempotency": object()}}
        receive = staticmethod(connection.receive)

    async def work() -> int:
        await asyncio.sleep(0.02)
        return 7

    assert await unless_disconnected(Request(), work) == 7  # type: ignore[arg-type]


async def test_c2_a_reader_who_takes_nothing_is_given_up_and_its_source_closed_without_being_read_ahead(state):
    """A server blocks `send` while its buffer is full; what that reader does not take is not generated into memory."""
    made: list[int] = []

    async def events() -> AsyncGenerator[bytes, None]:
        for number in range(1000):
            made.append(number)
            yield b"x" * 1000

    taken: list[bytes] = []
    closed: list[int] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        await EventStream(events(), on_close=lambda: closed.append(1))(scope, receive, send)

    async def send(message: Any) -> None:
        taken.append(message.get("body", b""))
        if len(taken) > 4:  # above the high-water mark, and nobody drains it
            await asyncio.Event().wait()

    patient = replace(state, settings=state.settings.model_copy(update={"write_timeout_s": 0.05}))
    scope = {
        **SCOPE,
        "method": "GET",
        "path": "/healthz",
        "headers": [],
        "query_string": b"",
        "client": ("192.0.2.1", 1),
        "app": FastAPI(),
    }
    scope["app"].state.footnote = patient
    await asyncio.wait_for(RootPath(RequestGate(app))(scope, Connection().receive, send), timeout=5)

    assert closed == [1]
    assert len(made) <= 6, "a bounded buffer"
