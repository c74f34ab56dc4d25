"""Uploads under bad conditions, named after their case: kills, duplicates, retries, names, framing, addresses."""

import sqlite3
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
import pytest
from fastapi.testclient import TestClient

from app.server.state import State
from app.types import Role
from tests.faults.forked import ForkedServer, KillPoint
from tests.faults.uploaded import client, originals, server, state

pytestmark = pytest.mark.timeout(300)

__all__ = ["client", "server", "state"]


TEXT = "\n\n".join(f"Paragraph {n}: the keeper of lighthouse{n} counted forty ships." for n in range(30))


def rows(data_dir: Path, query: str) -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect(f"file:{data_dir / 'footnote.db'}?mode=ro", uri=True)) as connection:
        return connection.execute(query).fetchall()


def keyed(server: ForkedServer, key: str, *, text: str = TEXT, name: str = "a.txt", **fields: str) -> httpx.Response:
    return server.http.post(
        "/v1/documents",
        files={"file": (name, text.encode())},
        data=fields,
        headers={"Idempotency-Key": key},
    )


KILL_POINTS = [
    KillPoint("app.documents.spool:Spool.receive", "return"),
    KillPoint("app.db.idempotency:IdempotencyRepository.claim", "return"),
    KillPoint("app.db.documents:DocumentRepository.known", "return"),
    KillPoint("app.db.originals:OriginalRepository.begin", "return"),
    KillPoint("app.documents.adapters.folder_originals:FolderOriginals.put", "call"),
    KillPoint("app.documents.adapters.folder_originals:FolderOriginals.put", "return"),
    KillPoint("app.db.originals:named", "return"),
    KillPoint("app.db.documents:DocumentRepository.create", "return"),
    KillPoint("app.documents.files:DocumentFiles.put", "return"),
    KillPoint("app.db.idempotency:IdempotencyRepository.keep", "call"),
    KillPoint("app.db.idempotency:IdempotencyRepository.keep", "return"),
]


def strays(data_dir: Path) -> set[str]:
    """The originals that no document names."""
    named = {name for (name,) in rows(data_dir, "SELECT object FROM document_version")}
    return {str(path.relative_to(data_dir / "files")) for path in originals(data_dir) if not spooled(path)} - named


def spooled(path: Path) -> bool:
    return "incoming" in path.parts


REPLACED = [
    KillPoint("app.db.originals:OriginalRepository.begin", "return"),
    KillPoint("app.documents.adapters.folder_originals:FolderOriginals.put", "call"),
    KillPoint("app.documents.adapters.folder_originals:FolderOriginals.put", "return"),
    KillPoint("app.db.documents:DocumentRepository.add_version", "return"),
    KillPoint("app.db.jobs:JobRepository.commit_all", "return"),
    KillPoint("app.documents.adapters.folder_originals:FolderOriginals.delete", "call"),
    KillPoint("app.documents.adapters.folder_originals:FolderOriginals.delete", "return"),
    KillPoint("app.db.originals:OriginalRepository.end", "call"),
    KillPoint("app.db.originals:OriginalRepository.end", "return"),
]


@pytest.mark.parametrize("point", REPLACED, ids=str)
def test_a1_killed_while_a_document_is_replaced_its_live_version_has_its_bytes(server, point):
    server.start()
    document = server.upload("a.txt", TEXT)["id"]
    server.settled()
    server.stop()
    server.start(kill_at=point)
    newer = TEXT.replace("keeper", "warden")
    try:
        response = server.http.put(
            f"/v1/documents/{document}", files={"file": ("a.txt", newer.encode())}, data={"on_duplicate": "replace"}
        )
        acknowledged = response.status_code == 202
    except httpx.TransportError:
        acknowledged = False
    assert server.died(seconds=20)
    assert len(strays(server.data_dir)) <= 1

    server.start()
    (found,) = server.settled()
    text = server.http.get(f"/v1/documents/{document}/content").text.strip()

    assert text == newer or (text == TEXT and not acknowledged)
    assert server.http.get(f"/v1/documents/{document}/file").text == text
    assert [path.read_text() for path in originals(server.data_dir)] == [text]
    assert rows(server.data_dir, "SELECT count(*) FROM upload") == [(0,)]
    assert found["status"] == "indexed"


@pytest.mark.parametrize("point", KILL_POINTS, ids=str)
def test_a1_killed_between_the_upload_and_its_answer_the_retry_gives_one_whole_document(server, point):
    server.start(kill_at=point)
    with pytest.raises(httpx.TransportError):
        keyed(server, "k")
    assert server.died(seconds=10)
    assert len(strays(server.data_dir)) <= 1

    server.start()
    before = server.documents()
    assert len(before) <= 1
    assert strays(server.data_dir) == set(), "the start has removed it"
    retried = keyed(server, "k")
    assert retried.status_code in {200, 202}, retried.text
    (document,) = server.settled()
    assert document["id"] == retried.json()["id"]
    assert [one["id"] for one in before] in ([], [document["id"]])
    assert document["status"] == "indexed"
    assert server.http.get(f"/v1/documents/{document['id']}/content").text.strip() == TEXT
    assert [path.read_text() for path in originals(server.data_dir)] == [TEXT]
    assert keyed(server, "k").json() == retried.json(), "and from then on the answer is the same"


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
