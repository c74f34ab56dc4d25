"""GET /v1/documents/{id}/compare tells what changed between two versions, or between two documents."""

import asyncio
from typing import Any

import pytest
from fastapi.testclient import TestClient

from app.api.compare import compare_documents
from app.documents.comparing import MOST_CHARACTERS, ComparedDocuments, ComparedText
from app.errors import InvalidRequest
from app.server.state import State
from app.types import Role
from ingestion.types import Block, BlockKind
from tests.app.api.credentials import key_of
from tests.app.api.test_boxes import index_next, upload
from tests.ingestion.pdf_file import pdf_bytes

FIRST = b"# Terms\n\nThe notice period is 30 days. Either party may end it.\n\n# Fees\n\nThe fee is 30 euros.\n"
SECOND = (
    b"# Terms\n\nThe notice period is 60 days. Either party may end it.\n\n# Fees\n\nThe fee is 30 euros. Cards too.\n"
)


@pytest.fixture
def document_id(client: TestClient, state: State) -> str:
    made = upload(client, "a.md", FIRST)
    index_next(state)
    client.put(f"/v1/documents/{made}", files={"file": ("a.md", SECOND)}).raise_for_status()
    index_next(state)
    return made


def compared(client: TestClient, document_id: str, **query: Any) -> Any:
    response = client.get(f"/v1/documents/{document_id}/compare", params=query)
    assert response.status_code == 200, response.text
    return response.json()


def content(client: TestClient, document_id: str, version: int) -> str:
    return client.get(f"/v1/documents/{document_id}/content", params={"version": version}).text


def test_each_change_has_its_section_its_words_and_its_exact_characters(client: TestClient, document_id: str) -> None:
    body = compared(client, document_id)

    assert (body["old"]["version"], body["new"]["version"]) == (1, 2)
    assert body["counts"] == {"added": 1, "removed": 0, "altered": 1, "moved": 0, "unchanged": 4}
    altered, added = body["data"]
    assert (altered["kind"], altered["section"]) == ("altered", ["Terms"])
    assert [(run["kind"], run["text"]) for run in altered["words"]] == [
        ("equal", "The notice period is "),
        ("removed", "30 "),
        ("added", "60 "),
        ("equal", "days."),
    ]
    assert (added["kind"], added["section"], added["old"], added["words"]) == ("added", ["Fees"], None, [])
    for change in body["data"]:
        for side, version in (("old", 1), ("new", 2)):
            if passage := change[side]:
                text = content(client, document_id, version)
                assert text[passage["start_char"] : passage["end_char"]] == passage["text"]


def test_pages_are_told_where_there_are_any(client: TestClient, state: State) -> None:
    made = upload(client, "a.pdf", pdf_bytes([["The first page ends here."], ["The fee is 30 euros."]]))
    index_next(state)
    pages = [["The first page ends here."], ["The fee is 35 euros."]]
    client.put(f"/v1/documents/{made}", files={"file": ("a.pdf", pdf_bytes(pages))}).raise_for_status()
    index_next(state)

    (change,) = compared(client, made)["data"]

    assert [(change[side]["page_start"], change[side]["page_end"]) for side in ("old", "new")] == [(2, 2), (2, 2)]


def test_two_documents_are_compared(client: TestClient, state: State, document_id: str) -> None:
    other = upload(client, "b.md", FIRST)
    index_next(state)

    body = compared(client, document_id, **{"with": other})

    assert (body["old"]["document_id"], body["old"]["version"], body["new"]["document_id"]) == (other, 1, document_id)
    assert [change["kind"] for change in body["data"]] == ["altered", "added"]


def test_a_version_compared_with_itself_has_no_changes(client: TestClient, document_id: str) -> None:
    body = compared(client, document_id, version=2)

    assert (body["data"], body["counts"]["unchanged"], body["has_more"]) == ([], 6, False)


def test_changes_come_by_pages(client: TestClient, document_id: str) -> None:
    first = compared(client, document_id, limit=1)
    second = compared(client, document_id, limit=1, cursor=first["next_cursor"])

    assert (first["has_more"], second["has_more"], second["next_cursor"]) == (True, False, None)
    assert [*first["data"], *second["data"]] == compared(client, document_id)["data"]
    assert first["counts"] == second["counts"]


def test_a_page_ends_behind_many_characters() -> None:
    old = ComparedText("doc_1", 1, "", (), ())
    new = ComparedText("doc_1", 2, "One ferry.\n\nTwo ferries.\n\nThree ferries.", (), _headings(0, 12, 26))

    listed = ComparedDocuments(old, new).changes(start=0, most=9, most_characters=11)

    assert [change.new.text for change in listed if change.new] == ["One ferry.", "Two ferries."]


def _headings(*starts: int) -> list[Block]:
    """Paragraphs in sections of their own."""
    return [Block(BlockKind.PARAGRAPH, start, start + 10, None, (str(start),)) for start in starts]


def test_running_headers_are_no_change() -> None:
    def side(version: int, header: str) -> ComparedText:
        text = f"{header}\n\nThe fee is 30 euros."
        blocks = [
            Block(BlockKind.FURNITURE, 0, len(header), 1, ()),
            Block(BlockKind.PARAGRAPH, len(header) + 2, len(text), 1, ()),
        ]
        return ComparedText("doc_1", version, text, (), blocks)

    assert ComparedDocuments(side(1, "Page 1 of 9"), side(2, "Page 1 of 10")).counts == dict.fromkeys(
        ("added", "removed", "altered", "moved"), 0
    )


@pytest.mark.parametrize("query", ["version=0", "version=x", "limit=501", "cursor=x"])
def test_a_malformed_request_is_422(client: TestClient, document_id: str, query: str) -> None:
    assert client.get(f"/v1/documents/{document_id}/compare?{query}").status_code == 422


def test_a_text_that_is_too_long_is_refused() -> None:
    with pytest.raises(InvalidRequest, match="not compared"):
        ComparedText("doc_1", 1, "a" * (MOST_CHARACTERS + 1), (), ())


def test_a_missing_version_or_document_is_404(client: TestClient, state: State, document_id: str) -> None:
    path = f"/v1/documents/{document_id}/compare"
    assert client.get(path, params={"version": 3}).status_code == 404
    assert client.get(path, params={"with": "doc_none"}).status_code == 404
    only = upload(client, "only.txt", b"One version alone.")
    assert client.get(f"/v1/documents/{only}/compare").status_code == 404
    index_next(state)
    told = client.get(f"/v1/documents/{only}/compare")
    assert (told.status_code, told.json()["detail"]) == (404, "The document has no earlier version to compare with.")


def test_other_tenants_and_other_collections_see_neither_side(
    client: TestClient, state: State, document_id: str
) -> None:
    for stranger in (key_of(state, Role.ADMIN, tenant="rival"), key_of(state, Role.READER, collections=("col_1",))):
        assert client.get(f"/v1/documents/{document_id}/compare", headers=stranger).status_code == 404
    rival = key_of(state, Role.ADMIN, tenant="rival")
    text = {"text": "The fee is 30 euros.", "filename": "r.txt"}
    theirs = client.post("/v1/documents", json=text, headers=rival).json()["id"]
    index_next(state)
    assert client.get(f"/v1/documents/{document_id}/compare", params={"with": theirs}).status_code == 404
    path = f"/v1/documents/{theirs}/compare"
    assert client.get(path, params={"with": document_id}, headers=rival).status_code == 404


def test_it_runs_in_a_thread_and_not_on_the_event_loop() -> None:
    assert not asyncio.iscoroutinefunction(compare_documents)
