"""Uploads over HTTP: archives, passwords, web pages, identity and versions."""

import io
import json
import zipfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fastapi.testclient import TestClient

from app.api.application import create_app
from app.documents.intake import Intake
from app.documents.passwords import Passwords
from app.outbound.web_pages import WebPages
from app.server.state import State
from app.types import Role
from tests.app.api.conftest import ADMIN_KEY
from tests.app.db.samples import EMBEDDER, extraction_of, generation_of, vectors_of
from tests.app.outbound.test_web_pages import Wire, answer
from tests.app.server.stations import state_with

PUBLIC = "93.184.215.14"


def zip_of(members: dict[str, bytes]) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return packed.getvalue()


def send(client: TestClient, name: str, content: bytes, **fields: str) -> Any:
    return client.post("/v1/documents", files={"file": (name, content)}, data=fields)


def documents(client: TestClient) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = client.get("/v1/documents").json()["data"]
    return found


def incoming(state: State) -> list[Path]:
    return list((state.settings.data_dir / "files" / "incoming").iterdir())


def index_next(state: State) -> str:
    """Do a worker's work on the next job; the document's id."""
    claimed = state.corpus.jobs.claim("boot-test")
    assert claimed is not None
    job, document = claimed
    extraction, passages = extraction_of([f"passage {n} of version {document.version}" for n in range(3)])
    state.corpus.jobs.commit(
        job.id,
        extraction=extraction,
        passages=passages,
        vectors=vectors_of(3),
        generation=generation_of(state.database, EMBEDDER),
        embedding_tokens=12,
    )
    return document.id


def fail_next(state: State, code: str) -> str:
    claimed = state.corpus.jobs.claim("boot-test")
    assert claimed is not None
    state.corpus.jobs.fail(claimed[0].id, code=code, detail="It needs a password.")
    return claimed[1].id


def with_state(state: State, **changes: Any) -> Iterator[tuple[TestClient, State]]:
    changed = state_with(state, **changes)
    app = create_app(lambda: nullcontext(changed), version=state.serving.version)
    with TestClient(app, headers={"Authorization": f"Bearer {ADMIN_KEY}"}) as client:
        yield client, changed


# archives


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


# passwords


@pytest.fixture
def kept(state: State) -> Iterator[tuple[TestClient, State, Passwords]]:
    """The application, and the passwords it holds."""
    passwords = Passwords()
    intake = Intake(
        documents=state.corpus.documents,
        collections=state.corpus.collections,
        files=state.corpus.files,
        passwords=passwords,
        wake=lambda: None,
        forget=lambda keys: None,
    )
    for client, changed in with_state(state, intake=intake):
        yield client, changed, passwords


def test_a_password_waits_for_its_job_in_memory_alone(kept):
    client, state, passwords = kept
    response = send(client, "a.txt", b"Words.", password="open-sesame")

    assert passwords.of(response.json()["job_id"]) == "open-sesame"
    assert "open-sesame" not in response.text
    for path in state.settings.data_dir.rglob("*"):
        assert not path.is_file() or b"open-sesame" not in path.read_bytes()


def test_a_retry_brings_the_password_that_was_lacking(kept):
    client, state, passwords = kept
    document = send(client, "a.txt", b"Words.").json()
    fail_next(state, "encrypted")

    response = client.post(f"/v1/documents/{document['id']}/retry", json={"password": "open-sesame"})

    assert response.status_code == 202
    assert passwords.of(response.json()["job_id"]) == "open-sesame"


def test_a_retry_needs_no_body(kept):
    client, state, passwords = kept
    document = send(client, "a.txt", b"Words.").json()
    fail_next(state, "internal-error")

    assert client.post(f"/v1/documents/{document['id']}/retry").status_code == 202
    assert len(passwords) == 0


def test_the_same_bytes_sent_again_with_a_password_are_tried_with_it(kept):
    client, state, passwords = kept
    first = send(client, "a.txt", b"Words.").json()
    fail_next(state, "encrypted")

    again = send(client, "a.txt", b"Words.", password="open-sesame").json()

    assert again["duplicate_of"] == first["id"]
    assert again["status"] == "queued"
    assert passwords.of(again["job_id"]) == "open-sesame"


def test_a_password_that_is_wrong_in_form_is_not_in_the_answer(kept):
    client, _, passwords = kept
    response = send(client, "a.txt", b"Words.", password="telltale" * 200)

    assert response.status_code == 422
    assert "telltale" not in response.text
    assert len(passwords) == 0


# web pages


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
        assert changed.corpus.files.path(body["id"], 1).read_bytes() == b"<html><body><p>Forty ships.</p></body></html>"


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


# identity and versions


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
def test_other_bytes_under_a_known_external_id(client: TestClient, on_duplicate, status, version):
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
    assert len(state.corpus.files.document_versions()) == 2
    again = client.post("/v1/documents/delete", json={"filter": {"year": {"$lt": 2023}}}).json()
    assert again["documents"] == 0


def test_deleting_by_filter_goes_through_more_than_one_batch_and_forgets_every_vector(client: TestClient, state: State):
    forgotten: list[int] = []
    intake = Intake(
        documents=state.corpus.documents,
        collections=state.corpus.collections,
        files=state.corpus.files,
        passwords=Passwords(),
        wake=lambda: None,
        forget=lambda keys: forgotten.extend(np.asarray(keys).tolist()),
    )
    for changed_client, _ in with_state(state, intake=intake):
        packed = zip_of({f"{number}.txt": b"Text %d." % number for number in range(205)})
        send(changed_client, "all.zip", packed, metadata='{"old": true}')
        index_next(state)
        body = changed_client.post("/v1/documents/delete", json={"filter": {"old": True}}).json()

        assert body["documents"] == 205
        assert len(forgotten) == body["chunks_removed"] == 3
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
