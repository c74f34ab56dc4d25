"""FAULTS.md D9 and D11: hostile file names and archives, abused multipart bodies and HTTP framing."""

import gc
import io
import json
import socket
import time
import zipfile
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import suppress
from itertools import pairwise

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.documents.intake import display_name
from app.documents.ports import is_object_name
from tests.faults.uploaded import client, originals, server, state
from tests.originals import path_of
from tests.server import ADMIN_KEY

pytestmark = pytest.mark.timeout(300)

__all__ = ["client", "server", "state"]


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
        (stored,) = set(originals(state.settings.data_dir)) - before
        assert stored == path_of(state.corpus.files, document["id"], 1), repr(name)
        assert stored.parent == folder, repr(name)
        assert is_object_name(stored.name), repr(name)
        file = client.get(f"/v1/documents/{document['id']}/file")
        assert file.headers["content-disposition"].startswith("attachment;"), repr(name)
        assert "set-cookie" not in file.headers
    documents = client.get("/v1/documents", params={"limit": 500}).json()["data"]
    assert len(originals(state.settings.data_dir)) == len(documents)


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
