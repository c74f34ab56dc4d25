"""A file that OpenAI's client uploaded and attached is a document with its own name, and has no external id."""

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.app.api.openai.openai_server import Service
from tests.app.cli.command_line import CommandLine
from tests.server import ADMIN_KEY

TEXT = b"A heron at the weir waits for trout until the evening."


@pytest.fixture
def http(openai_service: Service) -> Iterator[httpx.Client]:
    headers = {"Authorization": f"Bearer {ADMIN_KEY}"}
    with httpx.Client(base_url=openai_service.url, headers=headers, timeout=60) as http:
        yield http


@pytest.fixture
def store(http: httpx.Client) -> Iterator[str]:
    store_id: str = http.post("/v1/vector_stores", json={"name": "herons by name"}).json()["id"]
    yield store_id
    assert http.delete(f"/v1/collections/{store_id}?force=true").status_code == 200


def attached(http: httpx.Client, store: str, name: str) -> str:
    made = http.post("/v1/files", files={"file": (name, TEXT)}, data={"purpose": "assistants"})
    file_id: str = made.json()["id"]
    assert http.post(f"/v1/vector_stores/{store}/files", json={"file_id": file_id}).status_code == 200
    return file_id


def test_attached_files_with_the_same_bytes_are_listed_by_their_own_names(http: httpx.Client, store: str) -> None:
    ids = {attached(http, store, "heron.txt"): "heron.txt", attached(http, store, "copy.txt"): "copy.txt"}

    listed = http.get("/v1/documents", params={"collection_id": store}).json()["data"]

    assert {item["id"]: (item["external_id"], item["filename"]) for item in listed} == {
        file_id: (None, name) for file_id, name in ids.items()
    }


def test_a_hit_in_an_attached_file_has_no_external_id(http: httpx.Client, store: str, openai_service: Service) -> None:
    file_id = attached(http, store, "heron.txt")
    with http.stream("GET", f"/v1/documents/{file_id}/events") as events:
        events.read()  # ends when the document is indexed

    found = http.post("/v1/search", json={"query": "heron weir", "collection_ids": [store]}).json()

    [hit] = found["data"]
    assert (hit["document_id"], hit["external_id"], hit["filename"]) == (file_id, None, "heron.txt")


def test_the_command_lists_an_attached_file_by_its_name(
    http: httpx.Client,
    store: str,
    openai_service: Service,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    file_id = attached(http, store, "heron.txt")
    command_line = CommandLine(tmp_path, monkeypatch, capsys)
    command_line.reach(url=openai_service.url, key=ADMIN_KEY)

    [row] = [row for row in command_line.run("documents", "--collection", store).rows if row[:1] == [file_id]]

    assert row[1] == "heron.txt"
