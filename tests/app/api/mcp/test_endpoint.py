"""The route /mcp: who may send what, limits of bodies, and bodies that are not of the protocol."""

import json
import random
from collections.abc import Iterator

import httpx
import pytest

pytest.importorskip("mcp", reason="the extra `mcp`")

from app.types import Role
from tests.app.api.openai.openai_server import Service
from tests.server import ADMIN_KEY

BOTH = {"Accept": "application/json, text/event-stream"}
LIST = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
MODERN = {"MCP-Protocol-Version": "2026-07-28"}


@pytest.fixture
def http(openai_service: Service) -> Iterator[httpx.Client]:
    """A client without a key."""
    with httpx.Client(base_url=openai_service.url, headers=BOTH, trust_env=False, timeout=30) as http:
        yield http


@pytest.fixture
def keyed(http: httpx.Client) -> httpx.Client:
    http.headers["Authorization"] = f"Bearer {ADMIN_KEY}"
    return http


def test_a_message_is_answered_as_json_without_a_session(keyed: httpx.Client) -> None:
    response = keyed.post("/mcp", json=LIST)

    assert response.headers["content-type"] == "application/json"
    assert response.json()["id"] == 1
    assert "mcp-session-id" not in response.headers
    assert response.headers["cache-control"] == "no-store"
    assert response.headers["x-request-id"].startswith("req_")


def test_a_notification_is_accepted(keyed: httpx.Client) -> None:
    response = keyed.post("/mcp", json={"jsonrpc": "2.0", "method": "notifications/initialized"})

    assert (response.status_code, response.content) == (202, b"")


@pytest.mark.parametrize("headers", [{}, {"Authorization": "Bearer fn_wrong"}, {"Authorization": "Basic eDp5"}])
def test_a_request_without_a_key_is_refused_before_its_body_is_read(
    http: httpx.Client, headers: dict[str, str]
) -> None:
    response = http.post("/mcp", content=b"{", headers=headers)

    assert response.status_code == 401
    assert response.headers["www-authenticate"].startswith("Bearer")


@pytest.mark.parametrize("origin", ["http://evil.example", "http://127.0.0.1:8000", "null", "http://[", "x" * 4000])
def test_a_page_in_a_browser_is_refused_whatever_its_origin(keyed: httpx.Client, origin: str) -> None:
    response = keyed.post("/mcp", json=LIST, headers={"Origin": origin})

    assert (response.status_code, response.headers["content-type"]) == (403, "application/problem+json")


@pytest.mark.parametrize("method", ["GET", "DELETE", "PUT"])
def test_streams_and_sessions_are_not_offered(openai_service: Service, http: httpx.Client, method: str) -> None:
    key = openai_service.key(Role.READER)
    response = http.request(method, "/mcp", headers={"Authorization": f"Bearer {key}"})

    assert (response.status_code, response.headers["allow"]) == (405, "POST")


def test_bodies_have_a_limit_in_bytes_and_in_values(keyed: httpx.Client) -> None:
    large = keyed.post("/mcp", json={**LIST, "params": {"x": "y" * (2 << 20)}})
    deep = keyed.post("/mcp", content=b'{"params":' + b"[" * 40_000, headers={"Content-Type": "application/json"})

    assert (large.status_code, deep.status_code) == (413, 413)
    assert large.headers["content-type"] == "application/problem+json"


def test_a_call_is_counted_against_the_limits_of_its_key(openai_service: Service, http: httpx.Client) -> None:
    secret = openai_service.key(Role.READER)
    headers = {"Authorization": f"Bearer {secret}"}
    key = next(
        each for each in openai_service.http.get("/v1/admin/keys").json()["data"] if secret[:6] in each["prefix"]
    )
    openai_service.http.put(f"/v1/admin/limits/keys/{key['id']}", json={"requests_per_minute": 1})
    call = {**LIST, "method": "tools/call", "params": {"name": "search", "arguments": {"query": "x"}}}
    first, second = (http.post("/mcp", json=call, headers=headers) for _ in range(2))
    listed = http.post("/mcp", json=LIST, headers=headers)

    assert first.json()["result"]["isError"] is False
    assert first.headers["x-ratelimit-remaining-requests"] == "0"
    refused = second.json()["result"]
    assert refused["isError"] is True
    assert refused["_meta"]["footnote/problem"]["type"] == "urn:footnote:problem:rate-limited"
    assert "Try again in" in refused["content"][0]["text"]
    assert "result" in listed.json(), "a list of tools has no limit"


def test_a_repeated_call_with_an_idempotency_key_runs_once(keyed: httpx.Client) -> None:
    call = {**LIST, "method": "tools/call", "params": {"name": "search", "arguments": {"query": "goats"}}}
    wrong = {**LIST, "method": "tools/call", "params": {"name": "search", "arguments": {}}}
    first, second = (keyed.post("/mcp", json=call, headers={"Idempotency-Key": "mcp-1"}) for _ in range(2))
    failed, again = (keyed.post("/mcp", json=wrong, headers={"Idempotency-Key": "mcp-2"}) for _ in range(2))

    assert second.headers["idempotent-replayed"] == "true"
    assert first.json() == second.json()
    assert failed.json()["result"]["isError"]
    assert "idempotent-replayed" not in again.headers, "a call that failed runs again"


def malformed(seed: int) -> bytes:
    """A body that is nearly one of the protocol, or nothing like it."""
    dice = random.Random(seed)
    odd: list[object] = [
        None,
        True,
        -1,
        2**70,
        1e308,
        "",
        "\ud800",
        "x" * 2000,
        [],
        {},
        [[]],
        {"": None},
        "tools/call",
        "ask",
    ]
    message = {
        "jsonrpc": dice.choice(["2.0", "1.0", *odd]),
        "id": dice.choice([1, "a", *odd]),
        "method": dice.choice(["tools/call", "tools/list", "initialize", "resources/read", "ping", "x", *odd]),
        "params": dice.choice(
            [
                {"name": dice.choice(["ask", "read_passage", *odd]), "arguments": dice.choice(odd)},
                {"uri": dice.choice(["footnote://documents/\ud800", "footnote://documents/%00", "file:///etc", *odd])},
                {"protocolVersion": dice.choice(["2025-06-18", *odd]), "capabilities": dice.choice(odd)},
                {"cursor": dice.choice(odd), "_meta": dice.choice([{"progressToken": dice.choice(odd)}, *odd])},
                *odd,
            ]
        ),
    }
    for name in [name for name in message if dice.random() < 0.15]:
        del message[name]
    whole: object = dice.choice([message, message, message, [message, message], dice.choice(odd)])
    body = json.dumps(whole, ensure_ascii=dice.random() < 0.5).encode("utf-8", "surrogatepass")
    if dice.random() < 0.3:
        at = dice.randrange(len(body))
        body = body[:at] + bytes([dice.randrange(256)]) + body[at + 1 :]
    return body[: dice.randrange(len(body) + 1)] if dice.random() < 0.2 else body


@pytest.mark.parametrize("version", [{}, MODERN, {"MCP-Protocol-Version": "1999-01-01"}], ids=["none", "modern", "odd"])
def test_malformed_bodies_are_never_our_fault(keyed: httpx.Client, version: dict[str, str]) -> None:
    statuses = set()
    for seed in range(500):
        response = keyed.post("/mcp", content=malformed(seed), headers={"Content-Type": "application/json", **version})
        assert response.status_code < 500, (seed, malformed(seed), response.text)
        assert "Traceback" not in response.text
        statuses.add(response.status_code)

    assert 400 in statuses
    assert keyed.post("/mcp", json=LIST).status_code == 200
