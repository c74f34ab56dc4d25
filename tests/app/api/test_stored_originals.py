"""Uploads over HTTP: when bytes are stored, stored again, shared, and gone."""

import pytest
from fastapi.testclient import TestClient

from app.documents.adapters.folder_originals import FolderOriginals
from app.server.state import State
from tests.app.api.uploading import send
from tests.originals import held, path_of


@pytest.fixture
def puts(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of originals as they are put."""
    names: list[str] = []
    put = FolderOriginals.put

    def noted(store, name, file):
        names.append(name)
        put(store, name, file)

    monkeypatch.setattr(FolderOriginals, "put", noted)
    return names


def test_bytes_that_are_known_are_not_stored(client: TestClient, state: State, puts: list[str]) -> None:
    first = send(client, "a.txt", b"Forty ships.").json()
    again = send(client, "b.txt", b"Forty ships.")
    refused = send(client, "c.txt", b"Forty ships.", on_duplicate="error")

    assert (again.status_code, again.json()["duplicate_of"], refused.status_code) == (200, first["id"], 409)
    assert len(puts) == 1
    assert held(state.corpus.files) == set(puts)


def test_a_lost_original_is_stored_again_by_an_upload_of_its_bytes(client: TestClient, state: State) -> None:
    document = send(client, "a.txt", b"Forty ships.").json()["id"]
    path_of(state.corpus.files, document, 1).unlink()
    assert client.get(f"/v1/documents/{document}/file").status_code == 404

    assert send(client, "a.txt", b"Forty ships.").status_code == 200
    assert client.get(f"/v1/documents/{document}/file").content == b"Forty ships."
    assert len(held(state.corpus.files)) == 1


def test_other_bytes_never_take_the_place_of_a_lost_original(client: TestClient, state: State) -> None:
    document = send(client, "a.txt", b"Forty ships.", external_id="x").json()["id"]
    path_of(state.corpus.files, document, 1).unlink()

    assert send(client, "a.txt", b"Fifty ships.", external_id="x", on_duplicate="skip").status_code == 200
    assert client.get(f"/v1/documents/{document}/file").status_code == 404


def test_an_upload_that_is_refused_leaves_nothing(client: TestClient, state: State, puts: list[str]) -> None:
    assert send(client, "a.txt", b"").status_code == 422
    assert client.put("/v1/documents/doc_none", files={"file": ("a.txt", b"Forty ships.")}).status_code == 404

    assert held(state.corpus.files) == set()
    assert puts == []


def test_an_original_can_be_read_in_ranges(client: TestClient) -> None:
    document = send(client, "a.txt", b"Forty ships.").json()["id"]
    address = f"/v1/documents/{document}/file"

    part = client.get(address, headers={"Range": "bytes=6-10"})
    rest = client.get(address, headers={"Range": "bytes=6-"})

    assert (part.status_code, part.content, rest.content) == (206, b"ships", b"ships.")
    assert part.headers["content-range"] == "bytes 6-10/12"
    assert client.get(address, headers={"Range": "bytes=99-"}).status_code == 416
