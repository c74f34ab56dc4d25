"""Each deletion of a document, a file or a collection is in the audit log, by name, in the transaction that deletes."""

import pytest

from retrieval.filters import parse_filter
from tests.app.api.uploading import documents, send, zip_of

BATCH = 100  # documents that a deletion by filter deletes in one transaction


def acts(client):
    answer = client.get("/v1/admin/audit")
    assert answer.status_code == 200, answer.text
    return answer.json()["data"]


def told(client):
    return {(act["action"], act["target_name"], act["target"]) for act in acts(client)}


def sent(client, name, **fields):
    answer = send(client, name, f"The text of {name}.".encode(), **fields)
    assert answer.status_code == 202, answer.text
    return answer.json()["id"]


def collection_of(client, name):
    return client.post("/v1/collections", json={"name": name}).json()["id"]


def file_of(client, name):
    answer = client.post("/v1/files", files={"file": (name, b"A mill.")}, data={"purpose": "assistants"})
    assert answer.status_code == 200, answer.text
    return answer.json()["id"]


def test_a_deleted_document_is_in_the_log_by_its_newest_name(client):
    document_id = sent(client, "old.txt", external_id="report")
    sent(client, "report.txt", external_id="report")

    gone = client.delete(f"/v1/documents/{document_id}")
    again = client.delete(f"/v1/documents/{document_id}")

    assert (gone.status_code, again.status_code) == (200, 404)
    [act] = acts(client)
    assert (act["action"], act["target"], act["target_name"]) == ("document.deleted", document_id, "report.txt")
    assert act["detail"].items() >= {"name": "report.txt", "id": document_id}.items()
    assert act["request_id"] == gone.headers["x-request-id"]


def test_each_document_of_a_deletion_by_filter_is_in_the_log_in_every_batch(client):
    packed = zip_of({f"{number}.txt": f"Text {number}.".encode() for number in range(BATCH + 1)})
    members = send(client, "all.zip", packed, metadata='{"year": 2025}').json()["data"]
    sent(client, "kept.txt", metadata='{"year": 2026}')

    answer = client.post("/v1/documents/delete", json={"filter": {"year": 2025}})

    assert answer.json()["documents"] == BATCH + 1, answer.text
    found = client.get("/v1/admin/audit", params={"limit": 2 * BATCH}).json()["data"]
    assert sorted((act["action"], act["target_name"], act["target"]) for act in found) == sorted(
        ("document.deleted", item["filename"], item["id"]) for item in members
    )


def test_a_deletion_by_filter_that_fails_has_the_entries_of_what_it_deleted(client, state):
    for number in range(3):
        sent(client, f"{number}.txt", metadata='{"year": 2025}')
    principal = state.access.keys.authenticate(client.headers["authorization"].removeprefix("Bearer "))
    assert principal is not None
    repository, record = state.corpus.documents, state.access.audit.recording(principal, "document.deleted")
    seen = []

    def failing(connection, target, detail):
        seen.append(target)
        record(connection, target, detail)
        if len(seen) == 2:
            raise RuntimeError("The disk is full.")

    condition = parse_filter({"year": 2025})
    once = {"tenant_id": principal.tenant_id, "created_until": repository.newest(tenant_id=principal.tenant_id)}
    repository.delete_matching(condition, limit=1, record=failing, **once)
    with pytest.raises(RuntimeError):
        repository.delete_matching(condition, limit=1, record=failing, **once)

    assert [act["target"] for act in acts(client)] == seen[:1]
    assert {item["id"] for item in documents(client)} >= {seen[1]}


def test_a_deleted_collection_is_in_the_log_with_its_documents(client):
    collection_id = collection_of(client, "contracts")
    document_id = sent(client, "a.txt", collection_id=collection_id)

    assert client.delete(f"/v1/collections/{collection_id}").status_code == 409
    assert acts(client) == []
    assert client.delete(f"/v1/collections/{collection_id}?force=true").status_code == 200

    assert told(client) == {
        ("collection.deleted", "contracts", collection_id),
        ("document.deleted", "a.txt", document_id),
    }
    [of_collection] = [act for act in acts(client) if act["action"] == "collection.deleted"]
    assert of_collection["detail"] == {"name": "contracts", "id": collection_id, "documents": 1}


def test_what_openais_client_deletes_is_in_the_log_once(client):
    store = client.post("/v1/vector_stores", json={"name": "mills"}).json()["id"]
    names = ["unattached.txt", "deleted.txt", "detached.txt", "stored.txt"]
    unattached, deleted, detached, stored = (file_of(client, name) for name in names)
    for file_id in (deleted, detached, stored):
        assert client.post(f"/v1/vector_stores/{store}/files", json={"file_id": file_id}).status_code == 200

    assert client.delete(f"/v1/files/{unattached}").status_code == 200
    assert client.delete(f"/v1/files/{deleted}").status_code == 200
    assert client.delete(f"/v1/vector_stores/{store}/files/{detached}").status_code == 200
    assert client.delete(f"/v1/vector_stores/{store}").status_code == 200

    assert told(client) == {
        ("file.deleted", "unattached.txt", unattached),
        ("document.deleted", "deleted.txt", deleted),
        ("document.detached", "detached.txt", detached),
        ("document.detached", "stored.txt", stored),
        ("collection.deleted", "mills", store),
    }
    assert len(acts(client)) == 5
