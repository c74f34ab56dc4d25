"""Requests with an `Idempotency-Key`: which answers are stored and replayed, and which are not."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from types import SimpleNamespace
from typing import Any

import httpx
import pytest
import sqlalchemy as sa
from fastapi import FastAPI, Request, Response
from fastapi.responses import StreamingResponse
from fastapi.testclient import TestClient
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from app.access.authenticator import Caller
from app.api.errors import install_error_handlers, problem_of, problem_response
from app.api.gate.idempotency import Idempotency
from app.api.root_path import RootPath
from app.db.tables.documents import idempotent_request
from app.errors import AppError
from app.server.state import State
from app.types import Principal, Role

Handler = Callable[[Request], Awaitable[Response]]
ADA = Principal("default", "ada", "key_1", Role.MEMBER)


class Admitted:
    """What the gate does for the middleware under test: a principal, and problems for what it refuses."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        secret = Headers(scope=scope).get("authorization", "")
        scope.setdefault("state", {}).update(principal=ADA, caller=Caller(ADA, secret, by_cookie=False))
        try:
            await self._app(scope, receive, send)
        except AppError as error:
            status, body, headers = problem_of(error, "req_1")
            await problem_response(status, body, headers, path=scope["path"])(scope, receive, send)


@pytest.fixture
def serve(state: State) -> Callable[[Handler], httpx.AsyncClient]:
    def of(handler: Handler) -> httpx.AsyncClient:
        app = FastAPI()
        app.state.footnote = SimpleNamespace(idempotency=state.idempotency)
        app.add_api_route("/work", handler, methods=["POST", "GET"], response_model=None)
        install_error_handlers(app)
        app.add_middleware(Idempotency)
        app.add_middleware(Admitted)
        app.add_middleware(RootPath)
        return httpx.AsyncClient(
            transport=httpx.ASGITransport(app, raise_app_exceptions=False),
            base_url="http://test",
            headers={"Authorization": "Bearer fn_secret_of_a_client"},
        )

    return of


def keyed(key: str, **more: str) -> dict[str, str]:
    return {"Idempotency-Key": key, **more}


class Counting:
    """A handler that counts how often its work was done."""

    def __init__(self, *statuses: int, media_type: str = "application/json") -> None:
        self._statuses = list(statuses)
        self._media_type = media_type
        self.done = 0

    async def __call__(self, request: Request) -> Response:
        body = await request.body()
        self.done += 1
        status = self._statuses.pop(0) if self._statuses else 200
        return Response(b"%d:" % self.done + body, status, media_type=self._media_type)


async def test_the_same_request_is_done_once_and_its_answer_given_again(serve):
    work = Counting(202)
    async with serve(work) as client:
        first = await client.post("/work", content=b"x", headers=keyed("k"))
        again = await client.post("/work", content=b"x", headers=keyed('"k"'))

    assert (again.status_code, again.content, again.headers["content-type"]) == (202, b"1:x", "application/json")
    assert again.content == first.content
    assert "idempotent-replayed" not in first.headers
    assert again.headers["idempotent-replayed"] == "true"
    assert work.done == 1


async def test_another_payload_query_or_body_under_the_key_is_422(serve):
    async with serve(Counting()) as client:
        await client.post("/work", content=b"x", headers=keyed("k"))
        other_body = await client.post("/work", content=b"y", headers=keyed("k"))
        other_query = await client.post("/work?wait=1", content=b"x", headers=keyed("k"))

    for response in (other_body, other_query):
        assert response.status_code == 422
        assert response.json()["type"] == "urn:footnote:problem:idempotency-key-reused"


async def test_while_it_runs_the_same_request_is_409_and_says_when_to_come_back(serve):
    began, may_end = asyncio.Event(), asyncio.Event()

    async def slow(request: Request) -> Response:
        began.set()
        await may_end.wait()
        return Response(b"done")

    async with serve(slow) as client:
        first = asyncio.create_task(client.post("/work", content=b"x", headers=keyed("k")))
        await began.wait()
        meanwhile = await client.post("/work", content=b"x", headers=keyed("k"))
        may_end.set()
        finished = await first
        again = await client.post("/work", content=b"x", headers=keyed("k"))

    assert meanwhile.status_code == 409
    assert meanwhile.headers["retry-after"] == "1"
    assert (finished.content, again.content) == (b"done", b"done")


@pytest.mark.parametrize("status", [400, 404, 409, 422, 429, 500, 503])
async def test_a_failed_request_is_run_again_under_the_same_key(serve, status):
    work = Counting(status, 200)
    async with serve(work) as client:
        first = await client.post("/work", content=b"x", headers=keyed("k"))
        second = await client.post("/work", content=b"changed", headers=keyed("k"))

    assert (first.status_code, second.status_code) == (status, 200)
    assert second.content == b"2:changed"


async def test_a_bug_on_the_way_frees_the_key(serve):
    async def broken(request: Request) -> Response:
        raise RuntimeError("a bug")

    async with serve(broken) as client:
        for _ in range(2):
            assert (await client.post("/work", content=b"x", headers=keyed("k"))).status_code == 500


async def test_other_keys_other_callers_and_no_key_are_other_requests(serve):
    work = Counting()
    async with serve(work) as client:
        await client.post("/work", content=b"x", headers=keyed("k"))
        await client.post("/work", content=b"x", headers=keyed("l"))
        await client.post("/work", content=b"x", headers=keyed("k", Authorization="Bearer fn_somebody_else"))
        await client.post("/work", content=b"x")
        await client.get("/work", headers=keyed("k"))

    assert work.done == 5


@pytest.mark.parametrize("key", ["", '""', " ", "k" * 256, "k\u00e9", '"'])
async def test_a_header_that_is_no_key_is_400(serve, key):
    work = Counting()
    async with serve(work) as client:
        response = await client.post("/work", headers={"Idempotency-Key": key.encode("utf-8")})

    assert response.status_code == (200 if key == '"' else 400)
    assert work.done == (1 if key == '"' else 0)


def stream_of(*pieces: bytes, fails: bool = False) -> Handler:
    async def told(request: Request) -> AsyncIterator[bytes]:
        for piece in pieces:
            if fails:
                request.scope["state"]["failed"] = True
            yield piece

    async def handler(request: Request) -> Response:
        await request.body()
        handler.done += 1  # type: ignore[attr-defined]
        return StreamingResponse(told(request), media_type="text/event-stream")

    handler.done = 0  # type: ignore[attr-defined]
    return handler


async def test_a_stream_that_ended_well_is_given_again_byte_for_byte(serve):
    work: Any = stream_of(b"event: delta\ndata: {}\n\n", b"event: done\ndata: {}\n\n")
    async with serve(work) as client:
        first = await client.post("/work", content=b"x", headers=keyed("k"))
        again = await client.post("/work", content=b"x", headers=keyed("k"))

    assert again.content == first.content == b"event: delta\ndata: {}\n\nevent: done\ndata: {}\n\n"
    assert again.headers["content-type"].startswith("text/event-stream")
    assert work.done == 1


async def test_a_stream_that_failed_midway_is_done_again(serve):
    work: Any = stream_of(b"event: delta\ndata: {}\n\n", b"event: error\ndata: {}\n\n", fails=True)
    async with serve(work) as client:
        for _ in range(2):
            await client.post("/work", content=b"x", headers=keyed("k"))

    assert work.done == 2


async def test_an_answer_too_large_to_keep_is_done_again(serve):
    work: Any = stream_of(*[b"\0" * (1 << 20)] * 9)
    async with serve(work) as client:
        for _ in range(2):
            assert len((await client.post("/work", content=b"x", headers=keyed("k"))).content) == 9 << 20

    assert work.done == 2


async def test_a_reader_who_leaves_a_stream_frees_the_key(state):
    """The route stops without an end, as it does when the client hangs up."""

    async def cut(scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"event: delta\n", "more_body": True})

    app = SimpleNamespace(state=SimpleNamespace(footnote=SimpleNamespace(idempotency=state.idempotency)))
    scope = {
        "type": "http",
        "method": "POST",
        "path": "/v1/ask",
        "query_string": b"",
        "headers": [(b"idempotency-key", b"k"), (b"authorization", b"Bearer fn_x")],
        "app": app,
        "state": {"principal": ADA, "caller": Caller(ADA, "fn_x", by_cookie=False)},
    }
    sent: list[Any] = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b"{}", "more_body": False}

    async def send(message: Any) -> None:
        sent.append(message)

    for _ in range(2):
        await RootPath(Idempotency(cut))(scope, receive, send)

    assert [message["type"] for message in sent].count("http.response.start") == 2


def test_a_collection_post_repeated_under_one_key_creates_one_collection(client: TestClient):
    first = client.post("/v1/collections", json={"name": "once"}, headers=keyed("k"))
    again = client.post("/v1/collections", json={"name": "once"}, headers=keyed("k"))
    without = client.post("/v1/collections", json={"name": "once"})

    assert again.json() == first.json()
    assert again.status_code == first.status_code == 201
    assert again.headers["x-request-id"] != first.headers["x-request-id"]
    assert without.status_code == 409


def test_an_upload_is_known_by_its_fields_and_file_whatever_its_boundary(client: TestClient):
    def send(text: bytes, *, boundary: str, year: str = "2025") -> Any:
        body = (
            (
                f'--{boundary}\r\nContent-Disposition: form-data; name="metadata"\r\n\r\n{{"year": {year}}}\r\n'
                f'--{boundary}\r\nContent-Disposition: form-data; name="file"; filename="a.txt"\r\n\r\n'
            ).encode()
            + text
            + f"\r\n--{boundary}--\r\n".encode()
        )
        headers = keyed("k", **{"Content-Type": f"multipart/form-data; boundary={boundary}"})
        return client.post("/v1/documents", content=body, headers=headers)

    first = send(b"Words.", boundary="one")
    again = send(b"Words.", boundary="two")

    assert first.status_code == again.status_code == 202  # without the key it were a duplicate, 200
    assert again.json() == first.json()
    assert send(b"Other words.", boundary="three").status_code == 422
    assert send(b"Words.", boundary="four", year="2026").status_code == 422
    assert len(client.get("/v1/documents").json()["data"]) == 1


def test_a_refused_upload_leaves_nothing_and_may_be_mended_under_its_key(client: TestClient, state: State):
    refused = client.post("/v1/documents", files={"file": ("a.txt", b"")}, headers=keyed("k"))
    mended = client.post("/v1/documents", files={"file": ("a.txt", b"Words.")}, headers=keyed("k"))

    assert (refused.status_code, mended.status_code) == (422, 202)
    assert list((state.settings.data_dir / "files" / "incoming").iterdir()) == []


def test_a_replayed_upload_leaves_no_file_behind(client: TestClient, state: State):
    for _ in range(2):
        client.post("/v1/documents", files={"file": ("a.txt", b"Words.")}, headers=keyed("k"))

    assert list((state.settings.data_dir / "files" / "incoming").iterdir()) == []


def test_the_secret_of_a_new_key_is_kept_nowhere(client: TestClient, state: State):
    made = client.post("/v1/admin/keys", json={"name": "once"}, headers=keyed("k"))
    again = client.post("/v1/admin/keys", json={"name": "once"}, headers=keyed("k"))

    assert made.status_code == 201
    assert again.status_code == 409
    assert again.json()["type"] == "urn:footnote:problem:answer-not-kept"
    stored = b"".join(path.read_bytes() for path in state.settings.data_dir.glob("footnote.db*"))
    assert made.json()["secret"].encode() not in stored


def test_the_same_idempotency_key_of_another_tenant_is_a_separate_request(client: TestClient, state: State):
    _, secret = state.access.keys.create(
        tenant_id="rival", user_id="u", name="n", role=Role.ADMIN, collections=None, expires_at=None
    )
    mine = client.post("/v1/collections", json={"name": "mine"}, headers=keyed("k"))
    theirs = client.post(
        "/v1/collections", json={"name": "other"}, headers=keyed("k", Authorization=f"Bearer {secret}")
    )

    assert theirs.status_code == 201
    assert theirs.json()["id"] != mine.json()["id"]


def test_neither_the_key_nor_the_payload_is_stored(client: TestClient, state: State):
    client.post("/v1/tokens/count", json={"text": "pineapple"}, headers=keyed("telltale-key"))
    client.post("/v1/collections", json={"name": "named"}, headers=keyed("telltale-key"))

    with state.database.read() as connection:
        rows = connection.execute(sa.select(idempotent_request)).all()
    assert rows
    assert "telltale-key" not in str(rows)
    assert "pineapple" not in str(rows)


def test_every_post_describes_the_header(client: TestClient):
    paths = client.get("/openapi.json").json()["paths"]
    posts = [operations["post"] for operations in paths.values() if "post" in operations]

    assert posts
    for operation in posts:
        if operation["security"]:  # signing in is a new session each time, and its secret is not kept
            assert "Idempotency-Key" in [parameter["name"] for parameter in operation["parameters"]]
