"""Uploads over HTTP: archives, passwords, web pages, identity and versions."""

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from app.outbound.web_pages import WebPages
from app.server.state import State
from tests.app.api.uploading import documents, send, with_state, zip_of
from tests.app.outbound.test_web_pages import Wire, answer
from tests.originals import path_of

PUBLIC = "93.184.215.14"


def incoming(state: State) -> list[Path]:
    return list((state.settings.data_dir / "files" / "incoming").iterdir())


def test_each_file_of_an_archive_becomes_a_document(client: TestClient, state: State):
    packed = zip_of({"a.txt": b"First.", "2025/b.md": b"# Second", "2025/logo.png": b"\x89PNG\r\n\x1a\n" + b"\0" * 64})

    response = send(client, "all.zip", packed, metadata='{"year": 2025}')
    body = response.json()

    assert response.status_code == 202
    assert body["object"] == "list"
    assert [(item["archive_path"], item["filename"]) for item in body["data"]] == [
        ("a.txt", "a.txt"),
        ("2025/b.md", "b.md"),
    ]
    assert all(item["metadata"] == {"year": 2025} and item["status"] == "queued" for item in body["data"])
    assert [(item["name"], item["code"]) for item in body["skipped"]] == [("2025/logo.png", "unsupported-format")]
    assert {item["id"] for item in documents(client)} == {item["id"] for item in body["data"]}
    assert incoming(state) == []


def test_an_archive_sent_again_brings_only_what_is_new(client: TestClient):
    first = send(client, "all.zip", zip_of({"a.txt": b"First.", "b.txt": b"Second."})).json()["data"]
    same = send(client, "all.zip", zip_of({"a.txt": b"First.", "b.txt": b"Second."}))
    more = send(client, "all.zip", zip_of({"a.txt": b"First.", "c.txt": b"Third."}))

    assert same.status_code == 200
    assert [item["duplicate_of"] for item in same.json()["data"]] == [item["id"] for item in first]
    assert more.status_code == 202
    assert [item["duplicate_of"] for item in more.json()["data"]] == [first[0]["id"], None]
    assert len(documents(client)) == 3


def test_an_archives_external_id_precedes_the_paths_so_that_changed_files_become_versions(client: TestClient):
    first = send(client, "all.zip", zip_of({"d/a.txt": b"First.", "b.txt": b"Other."}), external_id="docs")
    again = send(client, "all.zip", zip_of({"d/a.txt": b"First, changed.", "b.txt": b"Other."}), external_id="docs")

    assert [item["external_id"] for item in first.json()["data"]] == ["docs/d/a.txt", "docs/b.txt"]
    assert [item["version"] for item in again.json()["data"]] == [2, 1]
    assert len(documents(client)) == 2


def test_files_that_are_there_already_are_named_when_duplicates_are_an_error(client: TestClient):
    send(client, "a.txt", b"First.")
    body = send(client, "all.zip", zip_of({"a.txt": b"First.", "b.txt": b"Second."}), on_duplicate="error").json()

    assert [item["archive_path"] for item in body["data"]] == ["b.txt"]
    assert [(item["name"], item["code"]) for item in body["skipped"]] == [("a.txt", "conflict")]


def test_an_archive_in_an_archive_is_left_out(client: TestClient):
    body = send(client, "all.zip", zip_of({"a.txt": b"Words.", "inner.zip": zip_of({"b.txt": b"More."})})).json()

    assert [(item["name"], item["code"]) for item in body["skipped"]] == [("inner.zip", "unsupported-format")]


@pytest.mark.parametrize(
    ("members", "says"),
    [({}, "no document"), ({"a.png": b"\x89PNG\r\n\x1a\n" + b"\0" * 64}, "None of the 1 files")],
)
def test_an_archive_without_documents_is_415(client: TestClient, state: State, members, says):
    response = send(client, "all.zip", zip_of(members))

    assert response.status_code == 415
    assert says in response.json()["detail"]
    assert documents(client) == []
    assert incoming(state) == []


def test_an_archive_with_too_many_files_is_refused_whole(state: State):
    for client, changed in with_state(state, settings=state.settings.model_copy(update={"archive_members": 2})):
        response = send(client, "all.zip", zip_of({f"{n}.txt": b"x%d" % n for n in range(3)}))

        assert response.status_code == 422
        assert response.json()["code"] == "parser-limit"
        assert documents(client) == []
        assert incoming(changed) == []


def test_a_zip_under_another_formats_name_is_not_unpacked(client: TestClient):
    response = send(client, "report.docx", zip_of({"a.txt": b"Words."}))

    assert response.status_code == 415
    assert documents(client) == []


def test_a_zip_cannot_replace_a_document(client: TestClient):
    document = send(client, "a.txt", b"Words.").json()
    response = client.put(f"/v1/documents/{document['id']}", files={"file": ("a.zip", zip_of({"a.txt": b"x"}))})

    assert response.status_code == 415


def test_an_archive_under_a_key_is_unpacked_once(client: TestClient):
    packed = zip_of({"a.txt": b"First.", "b.txt": b"Second."})
    first, again = (
        client.post("/v1/documents", files={"file": ("all.zip", packed)}, headers={"Idempotency-Key": "k"})
        for _ in range(2)
    )

    assert again.json() == first.json()
    assert again.status_code == 202


def test_web_pages_are_off_by_default(client: TestClient):
    response = client.post("/v1/documents", json={"url": "https://example.com/"})

    assert response.status_code == 422
    assert response.json()["type"] == "urn:footnote:problem:url-not-allowed"


def resolving(*addresses: str) -> Callable[[str, int], Sequence[str]]:
    return lambda host, port: list(addresses)


def test_a_web_page_becomes_a_document_that_names_its_address(state: State):
    wire = Wire(answer(b"<html><body><p>Forty ships.</p></body></html>", "Content-Type: application/pdf"))
    for client, changed in with_state(state, web_pages=WebPages(resolve=resolving(PUBLIC), backend=wire)):
        response = client.post(
            "/v1/documents", json={"url": "http://example.com/a/ships.html?x", "metadata": {"year": 2025}}
        )
        body = response.json()

        assert response.status_code == 202, body
        assert body["filename"] == "ships.html"
        assert body["metadata"] == {"url": "http://example.com/a/ships.html?x", "year": 2025}
        assert (
            path_of(changed.corpus.files, body["id"], 1).read_bytes()
            == b"<html><body><p>Forty ships.</p></body></html>"
        )


def test_a_web_page_is_read_by_its_bytes_and_capped_like_any_upload(state: State):
    head, mebibyte = (
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
        b"100000\r\n" + b"x" * (1 << 20) + b"\r\n",
    )
    wire = Wire(answer(b"%PDF-1.7 not HTML at all"), [head, mebibyte, mebibyte])
    settings = state.settings.model_copy(update={"max_upload_mb": 1})
    pages = WebPages(resolve=resolving(PUBLIC), backend=wire)
    for client, changed in with_state(state, settings=settings, web_pages=pages):
        lied = client.post("/v1/documents", json={"url": "http://example.com/page.html"})
        large = client.post("/v1/documents", json={"url": "http://example.com/page"})

        assert lied.status_code == 415
        assert large.status_code == 413
        assert incoming(changed) == []


def test_a_body_with_an_address_and_a_text_is_refused(client: TestClient):
    response = client.post("/v1/documents", json={"url": "https://example.com/", "text": "x", "filename": "a.txt"})

    assert response.status_code == 422
    assert "text" in response.json()["detail"]
