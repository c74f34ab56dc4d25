"""Uploads under bad conditions, named after their case: kills, duplicates, retries, names, framing, addresses."""

import gc
import io
import json
import socket
import sqlite3
import time
import zipfile
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, nullcontext, suppress
from itertools import pairwise
from pathlib import Path
from typing import Any

import httpx
import pytest
from fastapi.testclient import TestClient
from hypothesis import given
from hypothesis import strategies as st

from app.api.application import create_app
from app.documents.intake import display_name
from app.outbound.web_pages import WebPages
from app.server.bootstrap import build
from app.server.state import State
from app.settings import Settings
from app.types import Role
from tests.app.evaluation.application import application
from tests.app.outbound.test_web_pages import PUBLIC, Names, Wire, answer, redirect
from tests.app.server.stations import state_with
from tests.faults.forked import ForkedServer, KillPoint
from tests.server import ADMIN_KEY

pytestmark = pytest.mark.timeout(300)

TEXT = "\n\n".join(f"Paragraph {n}: the keeper of lighthouse{n} counted forty ships." for n in range(30))


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ForkedServer]:
    """A server that is not started yet."""
    server = ForkedServer(tmp_path / "data")
    yield server
    server.close()


@pytest.fixture
def state(tmp_path: Path) -> Iterator[State]:
    with application(tmp_path / "data") as state:
        yield state


@pytest.fixture
def bare_state(tmp_path: Path) -> Iterator[State]:
    settings = Settings(data_dir=tmp_path / "data", admin_key=ADMIN_KEY, _env_file=None)
    with build(settings, with_models=False) as state:
        yield state


def client_of(state: State) -> TestClient:
    app = create_app(lambda: nullcontext(state), version="0")
    return TestClient(app, headers={"Authorization": f"Bearer {ADMIN_KEY}"})


@pytest.fixture
def client(state: State) -> Iterator[TestClient]:
    with client_of(state) as client:
        yield client


def rows(data_dir: Path, query: str) -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect(f"file:{data_dir / 'footnote.db'}?mode=ro", uri=True)) as connection:
        return connection.execute(query).fetchall()


def originals(data_dir: Path) -> list[Path]:
    return [path for path in (data_dir / "files").rglob("*") if path.is_file()]


def keyed(server: ForkedServer, key: str, *, text: str = TEXT, name: str = "a.txt", **fields: str) -> httpx.Response:
    return server.http.post(
        "/v1/documents",
        files={"file": (name, text.encode())},
        data=fields,
        headers={"Idempotency-Key": key},
    )


# A1

KILL_POINTS = [
    KillPoint("app.documents.originals:FileStore.receive", "return"),
    KillPoint("app.db.idempotency:IdempotencyRepository.claim", "return"),
    KillPoint("app.documents.originals:FileStore.place", "call"),
    KillPoint("app.documents.originals:FileStore.place", "return"),
    KillPoint("app.db.documents:DocumentRepository.create", "return"),
    KillPoint("app.db.idempotency:IdempotencyRepository.keep", "call"),
    KillPoint("app.db.idempotency:IdempotencyRepository.keep", "return"),
]


@pytest.mark.parametrize("point", KILL_POINTS, ids=str)
def test_a1_killed_between_the_upload_and_its_answer_the_retry_gives_one_whole_document(server, point):
    server.start(kill_at=point)
    with pytest.raises(httpx.TransportError):
        keyed(server, "k")
    assert server.died(seconds=10)

    server.start()
    before = server.documents()
    assert len(before) <= 1
    retried = keyed(server, "k")
    assert retried.status_code in {200, 202}, retried.text
    (document,) = server.settled()
    assert document["id"] == retried.json()["id"]
    assert [one["id"] for one in before] in ([], [document["id"]])
    assert document["status"] == "indexed"
    assert server.http.get(f"/v1/documents/{document['id']}/content").text.strip() == TEXT
    assert [path.read_text() for path in originals(server.data_dir)] == [TEXT]
    assert keyed(server, "k").json() == retried.json(), "and from then on the answer is the same"


# B2, B3, B4


def spent(state: State) -> int:
    found = rows(state.settings.data_dir, "SELECT coalesce(sum(input_tokens), 0) FROM usage_event")
    return int(found[0][0])


def settled(client: TestClient, name: str, content: bytes, **headers: str) -> Any:
    return client.post("/v1/documents", files={"file": (name, content)}, data={"wait": "30"}, headers=headers or None)


def test_b2_the_same_bytes_under_another_name_cost_nothing_and_name_the_first(client, state):
    first = settled(client, "a.txt", TEXT.encode()).json()
    paid = spent(state)
    again = settled(client, "b.txt", TEXT.encode())

    assert first["status"] == "indexed"
    assert paid > 0
    assert (again.status_code, again.json()["id"], again.json()["duplicate_of"]) == (200, first["id"], first["id"])
    assert spent(state) == paid


def test_b2_another_tenant_has_a_copy_of_its_own_and_no_hint_of_the_first(client, state):
    first = settled(client, "a.txt", TEXT.encode())
    _, secret = state.access.keys.create(
        tenant_id="rival", user_id="u", name="n", role=Role.MEMBER, collections=None, expires_at=None
    )
    theirs = settled(client, "a.txt", TEXT.encode(), Authorization=f"Bearer {secret}")

    assert theirs.status_code == first.status_code == 202
    assert theirs.json()["duplicate_of"] is None
    assert theirs.json()["id"] != first.json()["id"]
    assert theirs.json()["counts"] == first.json()["counts"]


def test_b3_of_twenty_uploads_of_the_same_bytes_at_once_one_is_ingested(server):
    server.start()

    def upload(number: int) -> httpx.Response:
        sent: httpx.Response = server.http.post("/v1/documents", files={"file": (f"{number}.txt", TEXT.encode())})
        return sent

    with ThreadPoolExecutor(20) as pool:
        answers = list(pool.map(upload, range(20)))
    (document,) = server.settled()

    assert sorted(one.status_code for one in answers) == [200] * 19 + [202]
    assert {one.json()["id"] for one in answers} == {document["id"]}
    assert sum(one.json()["duplicate_of"] == document["id"] for one in answers) == 19
    assert rows(server.data_dir, "SELECT count(*) FROM job") == [(1,)]
    assert rows(server.data_dir, "SELECT count(*) FROM chunk_vector") == [(document["counts"]["chunks"],)]
    assert rows(server.data_dir, "SELECT count(*) FROM usage_event WHERE operation = 'embed_doc'") == [(1,)]
    assert len(originals(server.data_dir)) == 1


def test_b4_the_same_key_and_payload_at_once_and_after_a_restart_is_one_request(server):
    server.start()
    with ThreadPoolExecutor(8) as pool:
        at_once = list(pool.map(lambda _: keyed(server, "k"), range(8)))
    done = [one for one in at_once if one.status_code == 202]
    waiting = [one for one in at_once if one.status_code == 409]
    server.settled()
    server.stop()
    server.start()
    after = keyed(server, "k")

    assert len(done) + len(waiting) == 8
    assert sum("idempotent-replayed" not in one.headers for one in done) == 1
    assert {one.content for one in done} == {after.content}
    assert all(one.headers["retry-after"] == "1" for one in waiting)
    assert after.headers["idempotent-replayed"] == "true"
    assert keyed(server, "k", text="other words").status_code == 422
    assert keyed(server, "k", external_id="other").status_code == 422
    assert len(server.documents()) == 1


# D9

NAMES = [
    "../../x", "/etc/passwd", "..%2f..%2fx", "%2e%2e%2fx", "..\\..\\x", "C:\\Windows\\x", "a\0b.txt", "\u202egnp.exe",
    "x" * 4096, "CON", "nul.txt", "🙂.txt", ".", "..", "/", "\\", "", "\r\nSet-Cookie: a=b", "a\nb", '"; filename="b',
    "\ud800", "~/.ssh/id", "${HOME}", "<img src=x onerror=1>", "\u2066\u2069",
]  # fmt: skip


def test_d9_a_hostile_name_is_only_metadata(client, state):
    folder = state.settings.data_dir / "files"
    for number, name in enumerate(NAMES):
        before = set(originals(state.settings.data_dir))
        body = json.dumps({"text": f"Text {number}, under a bad name.", "filename": name})  # escaped, surrogates too
        response = client.post("/v1/documents", content=body, headers={"Content-Type": "application/json"})
        if name in {"", "\ud800"} or len(name) > 1024:
            assert response.status_code == 422, repr(name)
            continue
        document = response.json()

        assert response.status_code == 202, (name, document)
        assert_harmless(document["filename"])
        assert set(originals(state.settings.data_dir)) - before == {folder / document["id"] / "1"}, repr(name)
        file = client.get(f"/v1/documents/{document['id']}/file")
        assert file.headers["content-disposition"].startswith("attachment;"), repr(name)
        assert "set-cookie" not in file.headers
    assert {path.name for path in folder.iterdir() if path.is_dir()} - {"incoming"} == {
        item["id"] for item in client.get("/v1/documents", params={"limit": 500}).json()["data"]
    }


def assert_harmless(name: str) -> None:
    assert 1 <= len(name) <= 255
    assert name.isprintable()
    assert not {"/", "\\"} & set(name)
    assert set(name) != {"."}


@given(st.text(st.characters(), max_size=600))
def test_d9_whatever_the_name_what_is_kept_is_one_printable_component(name):
    kept = display_name(name)

    assert_harmless(kept)
    assert display_name(kept) == kept


def test_d9_an_archive_cannot_write_outside_itself(client, state):
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("a.txt", "Harmless.")
        archive.writestr("../../../../evil.txt", "Not harmless.")
    response = client.post("/v1/documents", files={"file": ("all.zip", packed.getvalue())})

    assert response.status_code == 422
    assert client.get("/v1/documents").json()["data"] == []
    assert not list(state.settings.data_dir.parent.rglob("evil*"))
    assert originals(state.settings.data_dir) == []


# D11


def part(headers: bytes, body: bytes = b"x") -> bytes:
    return b"--b\r\n" + headers + b"\r\n\r\n" + body + b"\r\n"


FILE = b'Content-Disposition: form-data; name="file"; filename="a.txt"'
FIELD = b'Content-Disposition: form-data; name="wait"'
FRAMINGS: dict[str, Callable[[], bytes]] = {
    "100,000 fields": lambda: part(FIELD) * 100_000 + part(FILE) + b"--b--\r\n",
    "100,000 files": lambda: part(FILE) * 100_000 + b"--b--\r\n",
    "100,000 headers in a part": lambda: part(FILE + b"\r\nX-Y: z" * 100_000) + b"--b--\r\n",
    "a header of 8 MB in a part": lambda: part(FILE + b"\r\nX-Y: " + b"z" * (8 << 20)) + b"--b--\r\n",
    "a field of 8 MB": lambda: part(FIELD, b"z" * (8 << 20)) + part(FILE) + b"--b--\r\n",
    "no end": lambda: part(FILE)[:-2],
    "no file": lambda: part(FIELD) + b"--b--\r\n",
    "no name": lambda: part(b"Content-Disposition: form-data") + b"--b--\r\n",
    "nothing": lambda: b"",
    "only newlines": lambda: b"\r\n" * 100_000,
}


# Starlette leaves the file of an unfinished part to the garbage collector
@pytest.mark.filterwarnings("ignore:Exception ignored in.*SpooledTemporaryFile:pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("framing", FRAMINGS)
def test_d11_abused_multipart_is_a_client_error_that_leaves_nothing(client, state, framing):
    response = client.post(
        "/v1/documents", content=FRAMINGS[framing](), headers={"Content-Type": "multipart/form-data; boundary=b"}
    )

    assert response.status_code in {400, 413, 422}, response.text
    assert response.headers["content-type"] == "application/problem+json"
    assert originals(state.settings.data_dir) == []
    assert client.post("/v1/documents", json={"text": "x", "filename": "a.txt"}).status_code == 202


@pytest.fixture
def loaded_left_alone() -> Iterator[None]:
    """As app.server.process sets it: a collection sees what the request makes, not what earlier tests left."""
    gc.freeze()
    yield
    gc.unfreeze()


# The time of the loop's own thread, not of the clock: a busy machine makes nobody else's request longer
@pytest.mark.usefixtures("loaded_left_alone")
@pytest.mark.filterwarnings("ignore:Exception ignored in.*SpooledTemporaryFile:pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("framing", FRAMINGS)
async def test_d11_no_piece_of_an_abused_multipart_holds_up_the_event_loop(client, framing):
    body, stamps = FRAMINGS[framing](), [time.thread_time()]

    async def pieces() -> AsyncIterator[bytes]:
        for at in range(0, len(body), 1 << 16):  # as uvicorn reads them from its socket
            stamps.append(time.thread_time())
            yield body[at : at + (1 << 16)]

    transport = httpx.ASGITransport(client.app)
    async with httpx.AsyncClient(transport=transport, base_url="http://test", headers=dict(client.headers)) as direct:
        response = await direct.post(
            "/v1/documents", content=pieces(), headers={"Content-Type": "multipart/form-data; boundary=b"}
        )
    stamps.append(time.thread_time())

    assert response.status_code in {400, 413, 422}, response.text
    assert max(later - earlier for earlier, later in pairwise(stamps)) <= 0.1, "seconds between two pieces"


@pytest.mark.parametrize("boundary", ["", "; boundary=", "; boundary=" + "b" * 10_000, '; boundary="\u00e9"', "; b=c"])
def test_d11_a_multipart_without_a_usable_boundary_is_a_client_error(client, boundary):
    response = client.post(
        "/v1/documents",
        content=part(FILE) + b"--b--\r\n",
        headers={"Content-Type": f"multipart/form-data{boundary}".encode("latin-1")},
    )

    assert response.status_code in {400, 422}, response.text
    assert response.headers["content-type"] == "application/problem+json"


HEAD = [
    b"POST /v1/documents HTTP/1.1",
    b"Host: test",
    b"Authorization: Bearer " + ADMIN_KEY.encode(),
    b"Content-Type: multipart/form-data; boundary=b",
]
LINES = {
    "a negative length": [b"Content-Length: -5"],
    "a length that is no number": [b"Content-Length: many"],
    "two lengths": [b"Content-Length: 5", b"Content-Length: 7"],
    "a header of 1 MB": [b"X-Y: " + b"z" * (1 << 20)],
    "100,000 headers": [b"X-Y: z"] * 100_000,
}


def test_d11_abused_http_framing_is_a_client_error_and_the_server_goes_on(server):
    server.start()
    url = server.http.base_url
    for what, lines in LINES.items():
        reply = b""
        with socket.create_connection((url.host, url.port or 80), timeout=30) as connection:
            with suppress(ConnectionError):  # it may hang up on us while we are still writing
                connection.sendall(b"\r\n".join([*HEAD, *lines, b"", b""]))
            with suppress(ConnectionError):
                while piece := connection.recv(1 << 16):
                    reply += piece
        status = int(reply.split(b" ", 2)[1]) if reply else None
        assert status in {400, 413, 431, None}, (what, reply[:200])
        assert server.http.get("/healthz").status_code == 200, what
    assert server.documents() == []


def test_d11_a_client_that_hangs_up_in_the_middle_of_its_upload_is_no_failure_of_ours(server):
    server.start()
    url = server.http.base_url
    with socket.create_connection((url.host, url.port or 80), timeout=30) as connection:
        connection.sendall(b"\r\n".join([*HEAD, b"Content-Length: 100000", b"", part(FILE)]))
    deadline = time.monotonic() + 30
    while 'status="499"' not in (metrics := server.http.get("/metrics").text):
        assert time.monotonic() < deadline, metrics
        time.sleep(0.05)

    assert server.documents() == []
    assert originals(server.data_dir) == []
    assert "request.failed" not in server.log()


# D12

INTERNAL: dict[str, list[list[str]]] = {
    "localhost": [["127.0.0.1"]],
    "metadata.google.internal": [["169.254.169.254"]],
    "mixed.example": [[PUBLIC, "10.0.0.1"]],
    "inner6.example": [["fd00::1"]],
    "mapped.example": [["::ffff:10.0.0.1"]],
    "nothing.example": [[]],
}
ADDRESSES = [
    "http://127.0.0.1/", "https://127.0.0.1/", "http://127.1/", "http://2130706433/", "http://0x7f000001/",
    "http://0x7f.1/", "http://0177.0.0.1/", "http://017700000001/", "http://127。0。0。1/", "http://0/", "http://0.0.0.0/",
    "http://[::1]/", "http://[::]/", "http://[::ffff:127.0.0.1]/", "http://[::ffff:7f00:1]/", "http://[::127.0.0.1]/",
    "http://[64:ff9b::7f00:1]/", "http://[2002:7f00:1::]/", "http://[fe80::1]/", "http://[fe80::1%25lo]/",
    "http://[fd00::1]/", "http://10.0.0.1/", "http://172.16.0.1/", "http://192.168.0.1/", "http://100.64.0.1/",
    "http://169.254.169.254/latest/meta-data/", "http://[::ffff:169.254.169.254]/", "http://224.0.0.1/",
    "http://255.255.255.255/", "http://localhost/", "http://LOCALHOST./", "http://metadata.google.internal/",
    "http://mixed.example/", "http://inner6.example/", "http://mapped.example/", "http://nothing.example/",
    "http://public.example:22/", "http://public.example:8080/", "http://public.example:0/", "http://public.example:65536/",
    "file:///etc/passwd", "gopher://public.example/", "ftp://public.example/", "dict://public.example/", "unix:///x",
    "javascript:alert(1)", "data:text/plain,x", "//public.example/", "/etc/passwd", "public.example", "http:///", "http://",
    "http://user@public.example/", "http://public.example@127.0.0.1/", "http://127.0.0.1@public.example/",
    "http://public.example\\@127.0.0.1/", "http://@public.example/", "http://public.example\r\nHost: x/", "http://[::1",
    "http://public.example/\0", " http://127.0.0.1/", "http://1.1.1.1.:99999/", "http://" + "a" * 2100 + ".example/",
]  # fmt: skip


def fetching(state: State, names: Names, wire: Wire, **settings: Any) -> TestClient:
    pages = WebPages(resolve=names, backend=wire)
    return client_of(state_with(state, web_pages=pages, settings=state.settings.model_copy(update=settings)))


def test_d12_an_address_that_is_not_public_is_never_connected_to(bare_state):
    wire = Wire()
    kinds = {
        "urn:footnote:problem:url-not-allowed",
        "urn:footnote:problem:url-not-fetched",  # a name that does not resolve
        "urn:footnote:problem:invalid-request",  # the schema's word, for one that is too long
    }
    with fetching(bare_state, Names({**INTERNAL, "public.example": [[PUBLIC]]}), wire) as client:
        for address in ADDRESSES:
            response = client.post("/v1/documents", json={"url": address})

            assert response.status_code == 422, (address, response.text)
            assert response.json()["type"] in kinds, address
            assert wire.connected == [], address


@pytest.mark.parametrize(
    "target",
    ["http://127.0.0.1/", "http://2130706433/", "http://localhost/x", "//localhost/", "http://[::1]/", "file:///etc/passwd",
     "gopher://public.example/", "http://public.example:22/", "http://a@public.example/", "https://rebinding.example/"],
)  # fmt: skip
def test_d12_a_redirect_to_the_inside_is_not_followed(bare_state, target):
    names = Names({**INTERNAL, "public.example": [[PUBLIC]], "rebinding.example": [["10.0.0.1"]]})
    wire = Wire(redirect(target), answer(b"a secret"))
    with fetching(bare_state, names, wire) as client:
        response = client.post("/v1/documents", json={"url": "http://public.example/"})

    assert response.status_code == 422, response.text
    assert response.json()["type"] == "urn:footnote:problem:url-not-allowed"
    assert wire.connected == [(PUBLIC, 80)]
    assert originals(bare_state.settings.data_dir) == []


def test_d12_a_name_that_answers_differently_next_time_is_asked_once_and_its_answer_connected_to(bare_state):
    names = Names({"rebinding.example": [[PUBLIC], ["127.0.0.1"]]})
    wire = Wire(answer(b"Words."))
    with fetching(bare_state, names, wire) as client:
        response = client.post("/v1/documents", json={"url": "http://rebinding.example/a.txt"})

    assert response.status_code == 202
    assert names.asked == ["rebinding.example"]
    assert wire.connected == [(PUBLIC, 80)]


@pytest.mark.parametrize("framing", ["Content-Length: 10000000000", "Transfer-Encoding: chunked"])
def test_d12_a_body_without_end_is_read_no_further_than_the_cap(bare_state, framing):
    read = 0

    def endless() -> Iterator[bytes]:
        nonlocal read
        yield f"HTTP/1.1 200 OK\r\n{framing}\r\n\r\n".encode()
        chunk = b"x" * (1 << 16)
        while True:
            read += 1
            yield b"10000\r\n" + chunk + b"\r\n" if "chunked" in framing else chunk

    with fetching(bare_state, Names({"public.example": [[PUBLIC]]}), Wire(endless()), max_upload_mb=1) as client:
        response = client.post("/v1/documents", json={"url": "http://public.example/"})

    assert response.status_code == 413
    assert read <= 32, "of 64 KiB each, for a cap of 1 MiB"
    assert originals(bare_state.settings.data_dir) == []


def test_d12_it_is_off_unless_an_administrator_turns_it_on(bare_state):
    assert bare_state.settings.web_pages is False
    assert bare_state.web_pages is None
