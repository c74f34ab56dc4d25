"""What a tenant deletes is not replayed under an `Idempotency-Key`, nor stored; and its requests do not run twice."""

from collections.abc import Callable

import pytest
import sqlalchemy as sa
from fastapi.testclient import TestClient

from app.db.tables.documents import idempotent_request
from app.server.state import State
from app.types import Role
from tests.app.api.uploading import send

KEYED = {"Idempotency-Key": "k"}
NAME = {"name": "notes on the vault, code 4711"}


def kept_bodies(state: State) -> list[bytes | None]:
    with state.database.read() as connection:
        return list(connection.execute(sa.select(idempotent_request.c.body)).scalars())


def delete_document(client: TestClient) -> int:
    return client.delete(f"/v1/documents/{send(client, 'a.txt', b'Text.').json()['id']}").status_code


def delete_by_filter(client: TestClient) -> int:
    send(client, "a.txt", b"Text.", metadata='{"year": 2025}')
    return client.post("/v1/documents/delete", json={"filter": {"year": 2025}}).status_code


def delete_collection(client: TestClient) -> int:
    made = client.post("/v1/collections", json={"name": "other"}).json()["id"]
    return client.delete(f"/v1/collections/{made}").status_code


def delete_conversation(client: TestClient) -> int:
    return client.delete(f"/v1/conversations/{client.post('/v1/conversations', json={}).json()['id']}").status_code


def delete_file(client: TestClient) -> int:
    made = client.post("/v1/files", files={"file": ("a.txt", b"Text.")}, data={"purpose": "assistants"})
    return client.delete(f"/v1/files/{made.json()['id']}").status_code


@pytest.mark.parametrize(
    "delete", [delete_document, delete_by_filter, delete_collection, delete_conversation, delete_file]
)
def test_after_a_deletion_no_earlier_answer_is_replayed_or_stored(
    client: TestClient, state: State, delete: Callable[[TestClient], int]
) -> None:
    first = client.post("/v1/collections", json=NAME, headers=KEYED)
    assert client.post("/v1/collections", json=NAME, headers=KEYED).json() == first.json()

    assert delete(client) in (200, 204)

    again = client.post("/v1/collections", json=NAME, headers=KEYED)
    assert (again.status_code, again.json()["type"]) == (409, "urn:footnote:problem:answer-not-kept")
    assert "4711" not in again.text
    assert [body for body in kept_bodies(state) if body] == []
    names = [one["name"] for one in client.get("/v1/collections").json()["data"]]
    assert names.count(NAME["name"]) == 1, "the request did not run again"


def test_answers_of_another_tenant_are_kept(client: TestClient, state: State) -> None:
    _, secret = state.access.keys.create(
        tenant_id="rival", user_id="u", name="n", role=Role.ADMIN, collections=None, expires_at=None
    )
    theirs = {**KEYED, "Authorization": f"Bearer {secret}"}
    first = client.post("/v1/collections", json=NAME, headers=theirs)

    delete_document(client)

    assert client.post("/v1/collections", json=NAME, headers=theirs).content == first.content


def test_a_deletion_that_finds_nothing_forgets_nothing(client: TestClient) -> None:
    first = client.post("/v1/collections", json=NAME, headers=KEYED)

    assert client.delete("/v1/documents/doc_none").status_code == 404
    assert client.post("/v1/documents/delete", json={"filter": {"year": 1}}).json()["deleted"] in (0, True)

    assert client.post("/v1/collections", json=NAME, headers=KEYED).content == first.content
