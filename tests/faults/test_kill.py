"""kill -9 at bad moments: nothing acknowledged is lost, nothing is half visible, the books are closed."""

import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.server import Server

pytestmark = [pytest.mark.xdist_group("e2e"), pytest.mark.timeout(600)]

DOCUMENTS = 50


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    """A server that is not started yet."""
    server = Server(tmp_path / "data")
    yield server
    server.close()


def text_of(number: int) -> bytes:
    return "\n\n".join(
        f"Paragraph {part} of record {number}: the warden of lighthouse{number} counted {part + number} ships."
        for part in range(12)
    ).encode()


def rows(data_dir: Path, query: str) -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect(f"file:{data_dir / 'footnote.db'}?mode=ro", uri=True)) as connection:
        return connection.execute(query).fetchall()


def assert_no_document_is_half_visible(server: Server) -> None:
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


def assert_index_equals_sql(server: Server) -> None:
    """Once nothing is queued, SQL's chunks, SQL's vectors and the index agree."""
    live = rows(server.data_dir, "SELECT count(*) FROM chunk")[0][0]
    assert live == rows(server.data_dir, "SELECT count(*) FROM chunk_vector")[0][0]
    assert server.metric("footnote_index_vectors") == live


def test_killed_during_an_ingest_of_fifty_documents(server):
    server.start()
    acknowledged = [server.upload(f"record-{number}.txt", text_of(number), wait=0)["id"] for number in range(DOCUMENTS)]
    deadline = time.monotonic() + 60
    while rows(server.data_dir, "SELECT count(*) FROM job WHERE status = 'done'")[0][0] < 5:
        assert time.monotonic() < deadline
        time.sleep(0.02)
    server.kill()
    finished = rows(server.data_dir, "SELECT count(*) FROM job WHERE status = 'done'")[0][0]
    assert finished < DOCUMENTS, "the kill came too late to prove anything"

    server.start()
    assert_no_document_is_half_visible(server)
    outcomes = [server.settled(document, seconds=120)["status"] for document in acknowledged]
    assert outcomes == ["indexed"] * DOCUMENTS
    assert_no_document_is_half_visible(server)
    assert_index_equals_sql(server)
    hits = server.http.post(
        "/v1/search", json={"query": "warden of lighthouse37", "mode": "lexical", "top_k": 3}
    ).json()
    assert hits["data"][0]["document_id"] == acknowledged[37]
    assert rows(server.data_dir, "SELECT count(*) FROM usage_event WHERE status = 'reserved'") == [(0,)]
    server.stop()


def test_killed_during_a_stream(server):
    server.start()
    body = {"question": "Tell me about rivers.", "max_output_tokens": 400, "on_no_evidence": "answer", "stream": True}
    deltas = 0
    with server.http.stream("POST", "/v1/ask", json=body) as response:
        request_id = response.headers["x-request-id"]
        for line in response.iter_lines():
            deltas += line.startswith("event: delta")
            if deltas == 60:
                break
        server.kill()
    assert rows(
        server.data_dir, f"SELECT status FROM usage_event WHERE request_id = '{request_id}' AND operation = 'chat'"
    ) == [("reserved",)]

    server.start()
    ((status, output),) = rows(
        server.data_dir,
        f"SELECT status, output_tokens FROM usage_event WHERE request_id = '{request_id}' AND operation = 'chat'",
    )
    assert status == "recovered"
    assert 32 <= output <= 400, "at least the last checkpoint before the kill"
    assert rows(server.data_dir, "SELECT count(*) FROM usage_event WHERE status = 'reserved'") == [(0,)]
    server.stop()


def test_killed_again_and_again_an_upload_is_whole_or_absent(server):
    acknowledged: list[str] = []
    for attempt in range(2):  # a third would give the first document up: it might be what kills the server
        server.start()
        for number in range(3):
            acknowledged.append(server.upload(f"{attempt}-{number}.txt", text_of(100 * attempt + number), wait=0)["id"])
        server.kill()
    server.start()

    assert [server.settled(document)["status"] for document in acknowledged] == ["indexed"] * 6
    assert_no_document_is_half_visible(server)
    assert_index_equals_sql(server)
    server.stop()


def test_a_second_server_on_the_same_data_dir_refuses_to_start(server):
    server.start()
    second = Server(server.data_dir)
    with pytest.raises(AssertionError, match="Another Footnote process"):
        second.start()

    assert server.http.get("/readyz").status_code == 200
    assert server.stop() == 0
