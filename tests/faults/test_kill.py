"""kill -9 while ingesting and streaming: acknowledged data survives and open calls are settled."""

import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.faults.forked import ForkedServer
from tests.server import Server

pytestmark = pytest.mark.timeout(600)

DOCUMENTS = 50
SHORT = 5  # documents; those after them take longer to read than to upload
UNREAD = 2  # long documents are acknowledged and not read when the kill comes


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    """A server that is not started yet."""
    server = Server(tmp_path / "data")
    yield server
    server.close()


def text_of(number: int, *, paragraphs: int = 12) -> bytes:
    return "\n\n".join(
        f"Paragraph {part} of record {number}: the warden of lighthouse{number} counted {part + number} ships."
        for part in range(paragraphs)
    ).encode()


def rows(data_dir: Path, query: str) -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect(f"file:{data_dir / 'footnote.db'}?mode=ro", uri=True)) as connection:
        return connection.execute(query).fetchall()


def assert_no_document_is_half_visible(server: Server | ForkedServer) -> None:
    """Each document's chunks are all there or not at all, and slice its text, while ingestion may go on."""
    for listed in server.http.get("/v1/documents", params={"limit": 500}).json()["data"]:
        before = server.http.get(f"/v1/documents/{listed['id']}").json()
        chunks = server.http.get(f"/v1/documents/{listed['id']}/chunks", params={"limit": 500}).json()["data"]
        content = server.http.get(f"/v1/documents/{listed['id']}/content")
        if server.http.get(f"/v1/documents/{listed['id']}").json()["live_version"] != before["live_version"]:
            continue  # it became visible between the questions
        assert (content.status_code == 200) == (before["live_version"] is not None)
        assert len(chunks) == before["counts"]["chunks"]
        assert bool(chunks) == (before["live_version"] is not None)
        assert all(chunk["text"] == content.text[chunk["start_char"] : chunk["end_char"]] for chunk in chunks)


def assert_index_equals_sql(server: Server | ForkedServer) -> None:
    """Once nothing is queued, SQL's chunks, SQL's vectors and what a search of everything finds agree."""
    live = rows(server.data_dir, "SELECT count(*) FROM chunk")[0][0]
    assert live == rows(server.data_dir, "SELECT count(*) FROM chunk_vector")[0][0]
    found = server.http.post("/v1/search", json={"query": "ships", "mode": "dense", "top_k": 100}).json()
    assert len(found["data"]) == min(live, 100)


def test_a_server_killed_while_ingesting_and_streaming_loses_nothing_acknowledged(server):
    """The real models, whose start takes long: one kill finds both under way."""
    server.start()
    body = {
        "question": "Which rivers are there?",
        "max_output_tokens": 6000,
        "on_no_evidence": "answer",
        "stream": True,
    }
    endless = {"type": "array", "items": {"type": "string", "minLength": 20}, "minItems": 1000}
    acknowledged: list[str] = []
    uploading = threading.Thread(target=_upload_all, args=(server, acknowledged))
    deltas = 0
    with server.http.stream("POST", "/v1/ask", json={**body, "format": "json", "json_schema": endless}) as response:
        request_id = response.headers["x-request-id"]
        for line in response.iter_lines():
            deltas += line.startswith("event: delta")
            if deltas == 60 and not uploading.ident:
                uploading.start()
            if deltas > 60 and SHORT <= _finished(server) <= len(acknowledged) - UNREAD:
                server.kill()  # while the stream is read: to leave the loop is to hang up
                break
        else:
            pytest.fail("the answer was over before documents were being read")
    uploading.join()
    assert _finished(server) < len(acknowledged), "the kill came too late to prove anything"
    of_the_answer = f"FROM usage_event WHERE request_id = '{request_id}' AND operation = 'chat'"
    assert rows(server.data_dir, f"SELECT status {of_the_answer}") == [("reserved",)]

    server.start()
    ((status, output),) = rows(server.data_dir, f"SELECT status, output_tokens {of_the_answer}")
    assert status == "recovered"
    assert 32 <= output <= 6000, "at least the last checkpoint before the kill"
    assert_no_document_is_half_visible(server)
    outcomes = [server.settled(document, seconds=120)["status"] for document in acknowledged]
    assert outcomes == ["indexed"] * len(acknowledged)
    assert_no_document_is_half_visible(server)
    assert_index_equals_sql(server)
    hits = server.http.post("/v1/search", json={"query": "warden of lighthouse3", "mode": "lexical", "top_k": 3}).json()
    assert hits["data"][0]["document_id"] == acknowledged[3]
    assert rows(server.data_dir, "SELECT count(*) FROM usage_event WHERE status = 'reserved'") == [(0,)]
    server.stop()


def test_killed_again_and_again_an_upload_is_whole_or_absent(tmp_path):
    server = ForkedServer(tmp_path / "data")
    acknowledged: list[str] = []
    try:
        for attempt in range(2):  # a third would give the first document up: it might be what kills the server
            server.start()
            for number in range(3):
                acknowledged.append(server.upload(f"{attempt}-{number}.txt", text_of(number).decode())["id"])
            server.kill()
        server.start()

        found = {document["id"]: document["status"] for document in server.settled()}
        assert found == dict.fromkeys(acknowledged, "indexed")
        assert_no_document_is_half_visible(server)
        assert_index_equals_sql(server)
        server.stop()
    finally:
        server.close()


def _finished(server: Server) -> int:
    """Documents that were read."""
    count: int = rows(server.data_dir, "SELECT count(*) FROM job WHERE status = 'done'")[0][0]
    return count


def _upload_all(server: Server, acknowledged: list[str]) -> None:
    """Until all are uploaded, or the server is killed."""
    with httpx.Client(base_url=server.url, headers=server.http.headers, trust_env=False, timeout=60) as client:
        for number in range(DOCUMENTS):
            text = text_of(number, paragraphs=12 if number < SHORT else 400)
            try:
                response = client.post("/v1/documents", files={"file": (f"record-{number}.txt", text)})
            except httpx.TransportError:
                return
            acknowledged.append(response.json()["id"])
