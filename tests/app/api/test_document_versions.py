"""Versions of a document, changes of its metadata, and deletions by filter."""

import json

import pytest
import sqlalchemy as sa
from fastapi.testclient import TestClient

from app.documents.intake import Intake
from app.documents.passwords import Passwords
from app.server.state import State
from app.types import Role
from retrieval.ports import Keys
from tests.app.api.uploading import documents, send, with_state, zip_of
from tests.app.db.samples import EMBEDDER, extraction_of, generation_of, vectors_of
from tests.originals import held


class DeletedKeys:
    """Stands in for the indexes: writes down what was deleted, inside the transaction and after it."""

    def __init__(self) -> None:
        self.removed: list[int] = []
        self.forgotten: list[int] = []

    def remove_in(self, connection: sa.Connection, keys: Keys) -> None:
        self.removed += keys.tolist()

    def forget(self, keys: Keys) -> None:
        self.forgotten += keys.tolist()


def index_next(state: State) -> str:
    """Do a worker's work on the next job; the document's id."""
    claimed = state.corpus.jobs.claim("boot-test")
    assert claimed is not None
    job, document = claimed
    extraction, passages = extraction_of([f"passage {n} of version {document.version}" for n in range(3)])
    state.corpus.jobs.commit(
        job,
        extraction=extraction,
        passages=passages,
        vectors=vectors_of(3),
        generation=generation_of(state.database, EMBEDDER),
        embedding_tokens=12,
    )
    return document.id


def test_versions_are_listed_newest_first_and_can_be_read(client: TestClient, state: State):
    document = send(client, "a.txt", b"First.", external_id="x").json()
    index_next(state)
    send(client, "b.txt", b"Second.", external_id="x")
    path = f"/v1/documents/{document['id']}"

    while_new = client.get(f"{path}/versions").json()["data"]
    index_next(state)
    after = client.get(f"{path}/versions").json()["data"]

    assert [(item["version"], item["live"], item["filename"]) for item in while_new] == [
        (2, False, "b.txt"),
        (1, True, "a.txt"),
    ]
    assert while_new[0]["indexed_at"] is None
    assert [(item["version"], item["live"]) for item in after] == [(2, True), (1, False)]
    assert after[0]["counts"]["chunks"] == 3
    assert after[0]["usage"] == {"embedding_tokens": 12}
    assert "version 1" in client.get(f"{path}/content", params={"version": 1}).text
    assert "version 2" in client.get(f"{path}/content").text


def test_versions_come_in_pages(client: TestClient):
    document = send(client, "a.txt", b"0", external_id="x").json()
    for number in range(1, 5):
        send(client, "a.txt", b"%d" % number, external_id="x")
    seen, cursor = [], None
    for _ in range(3):
        params = {"limit": 2, **({"cursor": cursor} if cursor else {})}
        page = client.get(f"/v1/documents/{document['id']}/versions", params=params).json()
        seen += [item["version"] for item in page["data"]]
        cursor = page["next_cursor"]

    assert seen == [5, 4, 3, 2, 1]
    assert cursor is None


@pytest.mark.parametrize("how", ["post", "put"])
def test_replacing_forgets_the_older_versions_at_the_swap_and_not_before(client: TestClient, state: State, how):
    document = send(client, "a.txt", b"First.", external_id="x").json()
    index_next(state)
    path = f"/v1/documents/{document['id']}"
    if how == "post":
        send(client, "a.txt", b"Second.", external_id="x", on_duplicate="replace")
    else:
        client.put(path, files={"file": ("a.txt", b"Second.")}, data={"on_duplicate": "replace"})

    assert "version 1" in client.get(f"{path}/content").text
    index_next(state)
    assert "version 2" in client.get(f"{path}/content").text
    assert [item["version"] for item in client.get(f"{path}/versions").json()["data"]] == [2]
    assert client.get(f"{path}/content", params={"version": 1}).status_code == 404


@pytest.mark.parametrize(
    ("on_duplicate", "status", "version"), [("skip", 200, 1), ("replace", 202, 2), ("version", 202, 2), (None, 202, 2)]
)
def test_on_duplicate_decides_what_new_bytes_under_a_known_external_id_do(
    client: TestClient, on_duplicate, status, version
):
    first = send(client, "a.txt", b"First.", external_id="x").json()
    fields = {"on_duplicate": on_duplicate} if on_duplicate else {}
    response = send(client, "a.txt", b"Second.", external_id="x", **fields)

    assert response.status_code == status
    assert (response.json()["id"], response.json()["version"]) == (first["id"], version)


def test_a_duplicate_is_an_error_where_one_asks_for_it(client: TestClient):
    send(client, "a.txt", b"First.", external_id="x")

    same_name = send(client, "a.txt", b"Second.", external_id="x", on_duplicate="error")
    same_bytes = send(client, "b.txt", b"First.", on_duplicate="error")
    neither = send(client, "b.txt", b"Second.", on_duplicate="error")

    assert [response.status_code for response in (same_name, same_bytes, neither)] == [409, 409, 202]


def test_metadata_change_without_a_new_version_or_job(client: TestClient, state: State):
    document = send(client, "a.txt", b"First.", metadata='{"year": 2024}').json()
    index_next(state)
    before = client.get(f"/v1/documents/{document['id']}").json()
    after = client.patch(f"/v1/documents/{document['id']}", json={"metadata": {"year": 2025}}).json()

    assert after["metadata"] == {"year": 2025}
    unchanged = {"version", "live_version", "job_id", "counts", "usage", "status"}
    assert {name: after[name] for name in unchanged} == {name: before[name] for name in unchanged}
    assert state.corpus.jobs.claim("boot-test") is None


def test_deleting_by_filter_says_what_went_and_takes_nothing_else(client: TestClient, state: State):
    for number in range(5):
        send(client, f"{number}.txt", b"Text %d." % number, metadata=json.dumps({"year": 2020 + number}))
    for _ in range(5):
        index_next(state)

    body = client.post("/v1/documents/delete", json={"filter": {"year": {"$lt": 2023}}}).json()

    assert body == {"deleted": True, "documents": 3, "chunks_removed": 9, "vectors_removed": 9}
    assert sorted(item["metadata"]["year"] for item in documents(client)) == [2023, 2024]
    assert len(held(state.corpus.files)) == 2
    again = client.post("/v1/documents/delete", json={"filter": {"year": {"$lt": 2023}}}).json()
    assert again["documents"] == 0


def test_deleting_by_filter_goes_through_more_than_one_batch_and_forgets_every_vector(client: TestClient, state: State):
    deleted = DeletedKeys()
    intake = Intake(
        documents=state.corpus.documents,
        collections=state.corpus.collections,
        files=state.corpus.files,
        passwords=Passwords(),
        wake=lambda: None,
        indexes=deleted,
    )
    for changed_client, _ in with_state(state, intake=intake):
        packed = zip_of({f"{number}.txt": b"Text %d." % number for number in range(205)})
        send(changed_client, "all.zip", packed, metadata='{"old": true}')
        index_next(state)
        body = changed_client.post("/v1/documents/delete", json={"filter": {"old": True}}).json()

        assert body["documents"] == 205
        assert deleted.removed == deleted.forgotten
        assert len(deleted.forgotten) == body["chunks_removed"] == 3
        assert documents(changed_client) == []


def test_a_key_limited_to_a_collection_deletes_only_there(client: TestClient, state: State):
    other = client.post("/v1/collections", json={"name": "other"}).json()["id"]
    send(client, "a.txt", b"Here.", metadata='{"old": true}')
    send(client, "b.txt", b"There.", metadata='{"old": true}', collection_id=other)
    _, secret = state.access.keys.create(
        tenant_id="default", user_id="u", name="n", role=Role.MEMBER, collections=(other,), expires_at=None
    )

    body = client.post(
        "/v1/documents/delete", json={"filter": {"old": True}}, headers={"Authorization": f"Bearer {secret}"}
    ).json()

    assert body["documents"] == 1
    assert [item["filename"] for item in documents(client)] == ["a.txt"]
