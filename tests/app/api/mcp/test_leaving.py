"""Calls over /mcp that end early: a client that leaves, and a deadline."""

import json
import threading
from typing import Any

import pytest

pytest.importorskip("mcp", reason="the extra `mcp`")

from app.server.state import State
from tests.app.api.caller import Caller, slow_engine
from tests.app.api.unhurried import Service, served
from tests.generation.fakes import Gate, wait_until

HANDSHAKE = {"Accept": "application/json, text/event-stream"}
MODERN = {**HANDSHAKE, "MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": "ask"}
MODERN_META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
}


def asking(service: Service, *, modern: bool, streams: bool) -> Caller:
    meta: dict[str, Any] = {**(MODERN_META if modern else {}), **({"progressToken": "p"} if streams else {})}
    params = {"name": "ask", "arguments": {"question": "How did revenue do?"}, "_meta": meta}
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).encode()
    return Caller(service, path="/mcp", body=body, headers=MODERN if modern else HANDSHAKE)


@pytest.mark.parametrize("streams", [False, True], ids=["json", "stream"])
@pytest.mark.parametrize("modern", [False, True], ids=["handshake", "modern"])
def test_a_client_that_leaves_stops_its_answer(state: State, modern: bool, streams: bool) -> None:
    gate = Gate()
    engine = slow_engine(gate)
    with served(state, engine) as service:
        caller = asking(service, modern=modern, streams=streams)
        running = service.portal.start_task_soon(caller)
        wait_until(lambda: engine.stats().running == 1)
        caller.hang_up()
        running.result(10)
        gate.free()
        wait_until(lambda: service.row(caller.request_id).status == "client_abort")
        left = engine.stats().running

    assert left == 0
    assert b'"result"' not in caller.received


@pytest.mark.parametrize("streams", [False, True], ids=["json", "stream"])
def test_an_answer_that_is_not_ready_at_its_deadline_is_an_error_of_the_tool(state: State, streams: bool) -> None:
    pause = threading.Event()
    with served(state, slow_engine(lambda plan: pause.wait(0.02)), deadline_s=1.0) as service:
        caller = asking(service, modern=False, streams=streams)
        service.portal.start_task_soon(caller).result(20)

    assert caller.status == 200
    assert b'"isError":true' in caller.received
    assert b"urn:footnote:problem:deadline" in caller.received
