"""Originals in a bucket under kill -9: what was acknowledged has its bytes, and at most one object is a stray."""

import functools
import http.server
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from fastapi.testclient import TestClient

from app.server.state import State
from tests.app.evaluation.application import application
from tests.bucket import KEYS, Bucket, empty_bucket
from tests.faults.forked import ForkedServer, KillPoint
from tests.faults.uploaded import client_of

pytestmark = pytest.mark.timeout(300)

MiB = 1 << 20
TEXT = "The keeper of the lighthouse counted forty ships."
NEWER = TEXT.replace("forty", "fifty")


@contextmanager
def over_a_bucket(data_dir: Path, *, settings: dict[str, str]) -> Iterator[State]:
    """The application over a bucket, in a process that has the keys in its environment."""
    os.environ.update(KEYS)
    with application(data_dir, **settings) as state:
        yield state


@pytest.fixture
def bucket() -> Bucket:
    return empty_bucket()


@pytest.fixture
def server(bucket: Bucket, tmp_path: Path) -> Iterator[ForkedServer]:
    """A server that is not started yet."""
    server = ForkedServer(tmp_path / "data", functools.partial(over_a_bucket, settings=bucket.settings))
    yield server
    server.close()


def sent(request: Callable[[], httpx.Response]) -> httpx.Response | None:
    """The answer to a request; None where the server died before."""
    try:
        return request()
    except httpx.TransportError:
        return None


PUT, DELETE = (f"app.documents.adapters.object_originals:ObjectOriginals.{name}" for name in ("put", "delete"))
UPLOADED = [
    KillPoint("app.db.originals:OriginalRepository.begin", "return"),
    KillPoint(PUT, "call"),
    KillPoint(PUT, "return"),
    KillPoint("app.db.originals:named", "return"),
    KillPoint("app.db.documents:DocumentRepository.create", "return"),
    KillPoint("app.documents.files:DocumentFiles.put", "return"),
]
REPLACED = [
    KillPoint(PUT, "return"),
    KillPoint("app.db.documents:DocumentRepository.add_version", "return"),
    KillPoint(DELETE, "call"),
    KillPoint(DELETE, "return"),
    KillPoint("app.db.originals:OriginalRepository.end", "return"),
]


def points(*all_of_them: KillPoint) -> list[object]:
    """Every second one in each run, all of them in an exhaustive one."""
    return [
        pytest.param(point, id=str(point), marks=[pytest.mark.exhaustive] if number % 2 else [])
        for number, point in enumerate(all_of_them)
    ]


@pytest.mark.parametrize("point", points(*UPLOADED))
def test_a1_a_retried_upload_is_one_document_with_its_bytes(
    server: ForkedServer, bucket: Bucket, point: KillPoint
) -> None:
    def upload() -> httpx.Response:
        return server.http.post(
            "/v1/documents", files={"file": ("a.txt", TEXT.encode())}, headers={"Idempotency-Key": "k"}
        )

    server.start(kill_at=point)
    assert sent(upload) is None
    assert server.died(seconds=20)
    assert len(bucket.held()) <= 1

    server.start()
    known = server.documents()
    assert len(bucket.held()) == len(known) <= 1, "the start has deleted what no document names"
    retried = upload()
    (document,) = server.settled()

    assert retried.status_code in {200, 202}
    assert document["id"] == retried.json()["id"]
    assert document["status"] == "indexed"
    assert server.http.get(f"/v1/documents/{document['id']}/file").text == TEXT
    assert list(bucket.held().values()) == [TEXT.encode()]


@pytest.mark.parametrize("point", points(*REPLACED))
def test_a1_a_document_that_is_replaced_has_the_bytes_of_its_live_version(
    server: ForkedServer, bucket: Bucket, point: KillPoint
) -> None:
    server.start()
    document = server.upload("a.txt", TEXT)["id"]
    server.settled()
    server.stop()
    server.start(kill_at=point)
    answer = sent(
        lambda: server.http.put(
            f"/v1/documents/{document}", files={"file": ("a.txt", NEWER.encode())}, data={"on_duplicate": "replace"}
        )
    )
    assert server.died(seconds=20)
    assert len(bucket.held()) <= 2

    server.start()
    (found,) = server.settled()
    text = server.http.get(f"/v1/documents/{document}/content").text.strip()

    assert found["status"] == "indexed"
    assert text == NEWER or (text == TEXT and answer is None)
    assert server.http.get(f"/v1/documents/{document}/file").text == text
    assert list(bucket.held().values()) == [text.encode()]


@contextmanager
def between(bucket: Bucket, decide: Callable[[str, str], int | None]) -> Iterator[str]:
    """The address of a server before the bucket's.

    It passes a request on, unless `decide`, given its method and target, says with what status it answers by itself.
    """

    class Forwarding(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def forward(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            status = decide(self.command, self.path)
            if status is not None:
                self.send_response(status)
                self.send_header("Content-Length", "0")
                self.end_headers()
                return
            headers = {name: value for name, value in self.headers.items() if name.lower() != "host"}
            answer = httpx.request(
                self.command, bucket.endpoint + self.path, headers=headers, content=body, trust_env=False, timeout=60
            )
            self.send_response(answer.status_code)
            for name, value in answer.headers.items():
                if name.lower() not in {"connection", "date", "server", "transfer-encoding", "content-length"}:
                    self.send_header(name, value)
            self.send_header("Content-Length", answer.headers.get("Content-Length", "0"))
            self.end_headers()
            self.wfile.write(answer.content)

        do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = forward  # noqa: N815

        def log_message(self, *_: object) -> None:
            pass

        def handle(self) -> None:
            try:
                super().handle()
            except OSError:
                self.close_connection = True  # the server that was killed hears nothing any more

    forwarding = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Forwarding)
    thread = threading.Thread(target=forwarding.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{forwarding.server_port}"
    finally:
        forwarding.shutdown()
        thread.join()
        forwarding.server_close()


def test_a1_a_large_upload_killed_between_its_parts_leaves_no_object_and_is_sent_again(
    bucket: Bucket, tmp_path: Path
) -> None:
    content, parts = TEXT.encode() * (20 * MiB // len(TEXT)), list[str]()

    def kill_at_the_second(_: str, target: str) -> None:
        if "partNumber=" in target:
            parts.append(target)
            if len(parts) == 2:
                os.kill(killed.pid, signal.SIGKILL)

    with between(bucket, kill_at_the_second) as endpoint:
        settings = {**bucket.settings, "originals_endpoint": endpoint}
        killed = ForkedServer(tmp_path / "data", functools.partial(over_a_bucket, settings=settings))
        try:
            killed.start()
            request = functools.partial(
                killed.http.post, "/v1/files", files={"file": ("a.txt", content)}, data={"purpose": "assistants"}
            )
            assert sent(request) is None
            assert killed.died(seconds=20)
            assert bucket.held() == {}

            killed.start()
            file = killed.http.post(
                "/v1/files", files={"file": ("a.txt", content)}, data={"purpose": "assistants"}
            ).json()
            assert killed.http.get(f"/v1/files/{file['id']}/content").content == content
        finally:
            killed.close()

    assert len(parts) > 2
    assert list(bucket.held().values()) == [content]


def test_a15_a_bucket_that_fails_refuses_uploads_and_what_was_taken_is_read_later(
    bucket: Bucket, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    failing: set[str] = set()
    for name, value in KEYS.items():
        monkeypatch.setenv(name, value)
    with between(bucket, lambda method, _: 503 if method in failing else None) as endpoint:
        settings = {**bucket.settings, "originals_endpoint": endpoint}
        with application(tmp_path / "data", **settings) as state, client_of(state) as client:
            failing.add("GET")
            taken = client.post("/v1/documents", files={"file": ("a.txt", TEXT.encode())})
            file = client.get(f"/v1/documents/{taken.json()['id']}/file")
            failing.add("PUT")
            refused = client.post("/v1/documents", files={"file": ("b.txt", NEWER.encode())})
            failing.clear()
            document = settled(client)
            again = client.post("/v1/documents", files={"file": ("b.txt", NEWER.encode())}, data={"wait": "30"})

            assert (taken.status_code, document["status"]) == (202, "indexed")
            assert client.get(f"/v1/documents/{document['id']}/file").text == TEXT
            assert again.json()["status"] == "indexed"
            failing.update({"GET", "HEAD", "PUT"})
            asked = client.post("/v1/ask", json={"question": "How many ships did the keeper count?"})
            assert asked.json()["citations"], "questions need no original"
    for answer in (file, refused):
        assert answer.status_code == 503
        assert answer.json()["type"].endswith("store-unavailable")
        assert "Retry-After" in answer.headers
    assert len(bucket.held()) == 2


def settled(client: TestClient) -> Any:
    """The only document, once it is read or has failed."""
    while True:
        (document,) = client.get("/v1/documents").json()["data"]
        if document["status"] in {"indexed", "failed"}:
            return document
        time.sleep(0.1)
