"""Footnotes of kept answers say what became of their passages, over HTTP."""

from collections.abc import Iterator
from typing import Any

import pytest
from fastapi.testclient import TestClient

from app.api.schemas.kept_citations import kept_citation
from app.db.cited_passages import PassagePlace
from app.documents.passage_follower import PassageFollower
from app.server.state import State
from app.types import Document, Role, Turn
from ingestion.revisions import PassageState
from tests.app.api.conftest import client_of
from tests.app.api.credentials import key_of
from tests.app.db.samples import Library

FEE = "The fee for a parking space is 30 euros a month."
CELLAR = "Bicycles are kept in the cellar of the back building."
PETS = "Pets need a written permission of the landlord."
WHOLE = "\n\n".join((FEE, CELLAR, PETS))


class Desk:
    """A conversation with one answer, which cites three passages of a document, each confirmed."""

    def __init__(self, state: State, client: TestClient) -> None:
        self._state = state
        self.client = client
        self.key = key_of(state, Role.MEMBER)
        self.library = Library(state.database, tenant_id="default")
        self.document = self.library.index(FEE, CELLAR, PETS)
        self.id = self.client.post("/v1/conversations", json={}, headers=self.key).json()["id"]
        self._keep(self.document)

    def _keep(self, document: Document) -> None:
        citations = tuple(
            {
                "index": number,
                "answer_start": 4 * number - 4,
                "answer_end": 4 * number - 1,
                "document_id": document.id,
                "version": 1,
                "filename": "rules.txt",
                "start_char": WHOLE.index(quote),
                "end_char": WHOLE.index(quote) + len(quote),
                "page_start": 1,
                "page_end": 1,
                "cited_text": quote,
                "verified": True,
            }
            for number, quote in enumerate((FEE, CELLAR, PETS), start=1)
        )
        turn = Turn(
            request_id="req_1",
            question="What holds?",
            standalone=None,
            answer="[1] [2] [3]",
            answered=True,
            citations=citations,
        )
        assert self._state.history.conversations.append(self.id, turn)

    def follow(self) -> None:
        PassageFollower(self._state.history.passages).work()

    def citations(self) -> list[dict[str, Any]]:
        (turn,) = self.client.get(f"/v1/conversations/{self.id}", headers=self.key).json()["data"]
        found: list[dict[str, Any]] = turn["citations"]
        return found

    def exported(self) -> str:
        return self.client.get(f"/v1/conversations/{self.id}/export", headers=self.key).text


@pytest.fixture
def desk(state: State) -> Iterator[Desk]:
    with client_of(state) as client:
        yield Desk(state, client)


def states(citations: list[dict[str, Any]]) -> list[tuple[str | None, bool, int | None]]:
    return [(one["state"], one["verified"], one["current_version"]) for one in citations]


def test_a_conversation_tells_what_became_of_each_passage(desk: Desk) -> None:
    before = states(desk.citations())
    desk.library.index_again(desk.document, "These are the rules.", FEE.replace("30", "35"), PETS, replace=True)
    desk.follow()
    altered, gone, moved = desk.citations()

    assert before == [("current", True, 1)] * 3
    assert states([altered, gone, moved]) == [("altered", False, 2), ("gone", False, 2), ("moved", True, 2)]
    assert altered["cited_text"] == FEE
    assert altered["current_text"] == FEE.replace("30", "35")
    assert [run for run in altered["changes"] if run["kind"] != "equal"] == [
        {"kind": "removed", "text": "30 "},
        {"kind": "added", "text": "35 "},
    ]
    content = desk.client.get(
        f"/v1/documents/{desk.document.id}/content",
        params={"start": moved["current_start_char"], "end": moved["current_end_char"], "version": 2},
        headers=desk.key,
    )
    assert (content.text, moved["current_page_start"], moved["current_page_end"]) == (PETS, 1, 1)
    assert (moved["current_text"], moved["changes"]) == (None, [])
    assert (gone["current_start_char"], gone["current_page_start"], gone["current_text"]) == (None, None, None)


def test_an_export_tells_it_too(desk: Desk) -> None:
    desk.library.index_again(desk.document, "These are the rules.", FEE.replace("30", "35"), PETS)
    desk.follow()
    text = desk.exported()

    assert "altered since, not confirmed:" in text
    assert "is ~~30~~ euros" in text
    assert "    Now, in version 2, page 1:" in text
    assert "is **35** euros" in text
    assert "no longer in the document, not confirmed:" in text
    assert "unchanged in version 2, page 1:" in text


def test_passages_of_a_deleted_document_are_gone_and_not_confirmed(desk: Desk) -> None:
    desk.library.documents.delete(desk.document.id, tenant_id="default")

    assert states(desk.citations()) == [("gone", False, None)] * 3
    assert desk.exported().count("no longer in the document, not confirmed:") == 3


def test_a_wording_that_is_changed_back_is_confirmed_again(desk: Desk) -> None:
    for fee in (FEE.replace("30", "35"), FEE):
        desk.library.index_again(desk.document, "The rules.", fee, CELLAR, PETS, replace=True)
        desk.follow()

    assert states(desk.citations())[0] == ("moved", True, 3)
    assert desk.citations()[0]["changes"] == []


def test_a_passage_that_is_not_looked_for_yet_is_not_confirmed_and_names_the_newer_version() -> None:
    cited = {
        "document_id": "d",
        "version": 1,
        "start_char": 0,
        "end_char": 4,
        "cited_text": "Fee.",
        "verified": True,
    }
    told = kept_citation(cited, {("d", 1, 0, 4): PassagePlace(version=2, state=None)})

    assert (told["state"], told["verified"], told["current_version"]) == (None, False, 2)


def test_the_same_characters_on_another_page_have_moved() -> None:
    cited = {"document_id": "d", "version": 1, "start_char": 0, "end_char": 4, "cited_text": "Fee.", "page_start": 1}
    place = PassagePlace(version=2, state=PassageState.CURRENT, start_char=0, end_char=4, page_start=2, page_end=2)

    assert kept_citation(cited, {("d", 1, 0, 4): place})["state"] == "moved"


def test_a_footnote_of_an_early_answer_without_a_place_stays_as_it_was() -> None:
    told = kept_citation({"index": 1, "cited_text": "old", "verified": True}, {})

    assert (told["state"], told["verified"], told["current_version"]) == (None, True, None)
