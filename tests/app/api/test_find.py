"""GET /v1/documents/{id}/find finds a phrase in a document's text."""

import asyncio
import inspect

import pytest
from fastapi.testclient import TestClient

from app.api.find import find_in_document
from app.server.state import State
from app.types import Role
from tests.app.api.credentials import key_of
from tests.app.api.test_boxes import index_next, upload
from tests.ingestion.pdf_file import pdf_bytes

PAGES = [["The first page ends here."], ["The second page begins here."]]
TEXT = "The first page ends here.\n\nThe second page begins here."


@pytest.fixture
def document_id(client: TestClient, state: State) -> str:
    made = upload(client, "a.pdf", pdf_bytes(PAGES))
    index_next(state)
    return made


def test_each_occurrence_has_its_place_its_page_and_the_words_around_it(client: TestClient, document_id: str) -> None:
    body = client.get(f"/v1/documents/{document_id}/find", params={"q": "PAGE"}).json()

    assert (body["document_id"], body["version"], body["total"]) == (document_id, 1, 2)
    assert [(one["page_start"], one["page_end"]) for one in body["data"]] == [(1, 1), (2, 2)]
    for one in body["data"]:
        assert TEXT[one["start_char"] : one["end_char"]] == "page"
    assert body["data"][0]["snippet"] == "The first page ends here. The second page begins here."


def test_the_first_of_many_are_listed_and_all_are_counted(client: TestClient, document_id: str) -> None:
    body = client.get(f"/v1/documents/{document_id}/find", params={"q": "here", "limit": 1}).json()

    assert (len(body["data"]), body["total"]) == (1, 2)


def test_what_is_not_there_is_an_empty_list(client: TestClient, document_id: str) -> None:
    body = client.get(f"/v1/documents/{document_id}/find", params={"q": "third"}).json()

    assert (body["data"], body["total"]) == ([], 0)


@pytest.mark.parametrize("query", ["", "q=", "q=" + "a" * 201, "q=a&limit=501", "q=a&version=0"])
def test_a_request_for_too_much_or_for_nothing_is_422(client: TestClient, document_id: str, query: str) -> None:
    assert client.get(f"/v1/documents/{document_id}/find?{query}").status_code == 422


def test_other_tenants_and_other_collections_find_nothing(client: TestClient, state: State, document_id: str) -> None:
    path = f"/v1/documents/{document_id}/find?q=page"
    for stranger in (
        key_of(state, Role.ADMIN, tenant="rival"),
        key_of(state, Role.READER, collections=("col_1",)),
    ):
        assert client.get(path, headers=stranger).status_code == 404
    assert client.get(f"{path}&version=2").status_code == 404


def test_a_document_without_text_is_404(client: TestClient) -> None:
    queued = upload(client, "b.txt", b"waiting")

    assert client.get(f"/v1/documents/{queued}/find?q=a").status_code == 404


def test_it_runs_in_a_thread_and_not_on_the_event_loop() -> None:
    assert not asyncio.iscoroutinefunction(find_in_document)
    assert inspect.isfunction(find_in_document)
