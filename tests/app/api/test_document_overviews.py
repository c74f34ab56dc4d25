"""Overviews of documents over HTTP: a summary by quotation, and questions that were asked of them."""

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import replace
from typing import Any, cast

import pytest
import sqlalchemy as sa
from fastapi.testclient import TestClient

from app.answering.quoting.passage_reader import PassageReader
from app.answering.retrieving.finder import Finder
from app.answering.retrieving.overviews import Overviews
from app.answering.retrieving.question_vectors import QuestionVectors
from app.answering.understanding.documents.meant import DocumentsMeant
from app.api.application import create_app
from app.db.catalogue import CatalogueRepository
from app.db.suggestions import SuggestionRepository
from app.db.tables.documents import document_version
from app.db.tables.ledger import api_request
from app.models.extractive import NoEngine
from app.server.state import State
from app.suggestions.suggester import ENDPOINT, Suggester
from app.types import Role
from app.usage.budgets.budgets import Budgets
from app.usage.ledger.ledger import Ledger
from retrieval.ports import Vectors
from retrieval.search import Search
from retrieval.types import Hit, Pointer, Scope, Scores, SearchMode, Span
from tests.app.answering.answerers import QuotesAs, make_answerer
from tests.app.answering.pointing_reader import PointingReader
from tests.app.answering.retrieving.outlined import index
from tests.app.answering.test_prompt import CharacterTokenizer
from tests.app.api.conftest import ADMIN_KEY
from tests.app.api.credentials import key_of
from tests.app.db.samples import Library
from tests.app.server.stations import ANY_EVIDENCE, state_with, stations
from tests.retrieval.fakes import TopicEmbedder

BUILT = "The ferry was built in 1987 by a yard in Bergen and is the pride of the line."
LINES = (
    "# The Aldey ferry",
    "This is the story of the line that joins the island and the town, and of the people who keep it going.",
    "# The boat",
    BUILT,
    "# The fares",
    "It was not always so, and there are those who say that it will not be so for long.",
)
QUESTION = "When was the ferry built?"
ABOUT = "What is this document about?"
DEADLINE = 20.0


class EveryChunk:
    """A search that finds every chunk in scope, as a real one would in so small a collection."""

    def __init__(self, state: State) -> None:
        self._state = state

    def search(
        self, question: str, *, scope: Scope, top_k: int, mode: SearchMode, vector: Callable[[], Vectors]
    ) -> tuple[Hit, ...]:
        vector()
        corpus = self._state.corpus
        documents, _ = corpus.documents.list(
            tenant_id=scope.tenant_id, collections=scope.collection_ids, collection_id=None, limit=50, cursor=None
        )
        found = [
            chunk
            for document in documents
            if scope.document_ids is None or document.id in scope.document_ids
            for chunk in corpus.contents.chunks(document.id, tenant_id=scope.tenant_id, limit=20)[0]
        ]
        return tuple(Hit(chunk, Scores(fused=1 / (1 + rank))) for rank, chunk in enumerate(found[:top_k]))


class WaitingReader(PointingReader):
    """Answers no question with a given word before it may."""

    def __init__(self, words: str, *, asked: str, waits_at: Sequence[str]) -> None:
        super().__init__(words, asked=asked)
        self.may = {word: threading.Event() for word in waits_at}

    def mark(
        self,
        question: str,
        passages: Sequence[str],
        pieces: Sequence[Sequence[Span]],
        *,
        on_batch: Callable[[int], None] | None = None,
    ) -> list[list[Pointer | None]]:
        assert all(may.wait(DEADLINE) for word, may in self.may.items() if word in question)
        return super().mark(question, passages, pieces, on_batch=on_batch)


class Harbour:
    """A server whose reader points at "1987" where a question says "built"."""

    def __init__(
        self,
        state: State,
        *,
        loaded: bool = True,
        failing: bool = False,
        ledger: Ledger | None = None,
        reader: PointingReader | None = None,
    ) -> None:
        self.ledger = ledger or state.usage.ledger
        self.reader = reader or PointingReader("1987", asked="built", failing=failing)
        embedder, tokenizer = TopicEmbedder("ferry"), CharacterTokenizer()
        engine = NoEngine(revision="1", context_window=2000)
        catalogue, contents = CatalogueRepository(state.database), state.corpus.contents
        self.answerer = make_answerer(
            finder=Finder(search=cast(Search, EveryChunk(state)), vectors=QuestionVectors(embedder)),
            engine=engine,
            tokenizer=tokenizer,
            contents=contents,
            overviews=Overviews(DocumentsMeant(catalogue), catalogue, contents),
            ledger=self.ledger,
            limits=replace(ANY_EVIDENCE, max_context_tokens=4000),
            passage_reader=PassageReader(embedder=embedder, reader=self.reader),
            quotes=QuotesAs.ONLY,
        )
        self.kept = SuggestionRepository(state.database)
        self.loaded = loaded
        self.suggester = Suggester(
            contents,
            catalogue,
            self.kept,
            answerer=lambda: self.answerer if self.loaded else None,
        )
        models = replace(stations(state, engine, tokenizer=tokenizer, embedder=embedder), answerer=self.answerer)
        self.state = state_with(state, models=models, suggester=self.suggester)
        app = create_app(lambda: nullcontext(self.state), version="1")
        self.client = TestClient(app, headers={"Authorization": f"Bearer {ADMIN_KEY}"})
        self.library = Library(state.database, tenant_id="default")

    def overview(self, document: str, **headers: str) -> Any:
        response = self.client.get(f"/v1/documents/{document}/overview", headers=headers)
        assert response.status_code == 200, response.text
        return response.json()

    def ready(self, document: str, *, until: str = "ready", **headers: str) -> Any:
        """The overview once its questions are known."""
        deadline = time.monotonic() + DEADLINE
        while (body := self.overview(document, **headers))["state"] != until:
            assert time.monotonic() < deadline, body
            time.sleep(0.02)
        return body

    def suggesting(self, document: str, count: int) -> Any:
        """The overview once it has so many questions."""
        deadline = time.monotonic() + DEADLINE
        while len((body := self.overview(document))["questions"]) < count:
            assert time.monotonic() < deadline, body
            time.sleep(0.02)
        return body

    def calls(self) -> list[Any]:
        """The ledger's rows of suggestions."""
        rows = self.client.get("/v1/admin/usage/events", params={"start_time": 0, "limit": 200}).json()["data"]
        with self.state.database.read() as connection:
            ours = sa.select(api_request.c.request_id).where(api_request.c.endpoint == ENDPOINT)
            requests = set(connection.execute(ours).scalars())
        return [row for row in rows if row["request_id"] in requests]


Open = Callable[..., Harbour]


@pytest.fixture
def harbours(state: State) -> Iterator[Open]:
    opened: list[Harbour] = []

    def start(**how: Any) -> Harbour:
        harbour = Harbour(state, **how)
        harbour.client.__enter__()
        opened.append(harbour)
        return harbour

    yield start
    for harbour in opened:
        harbour.suggester.close()
        harbour.client.__exit__(None, None, None)


def test_the_overview_says_what_a_document_is_and_quotes_it_exactly(harbours: Open) -> None:
    harbour = harbours()
    document = index(harbour.library, "ferry.pdf", *LINES, title="The Aldey ferry")
    body = harbour.overview(document)

    assert (body["object"], body["document_id"], body["version"]) == ("document.overview", document, 1)
    assert (body["title"], body["pages"]) == ("The Aldey ferry", 1)
    assert [(quote["part"], quote["page"]) for quote in body["summary"]] == [
        ("opening", 1), ("heading", 1), ("heading", 1)
    ]  # fmt: skip
    assert [quote["text"] for quote in body["summary"]] == [LINES[1], "The boat", "The fares"]
    content = harbour.client.get(f"/v1/documents/{document}/content").text
    for quote in body["summary"]:
        assert content[quote["start_char"] : quote["end_char"]] == quote["text"]


def test_a_question_is_suggested_that_the_same_server_answers_and_confirms(harbours: Open) -> None:
    harbour = harbours()
    document = index(harbour.library, "ferry.pdf", *LINES, title="The Aldey ferry")
    first = harbour.overview(document)
    body = harbour.ready(document)

    assert first["state"] in {"preparing", "ready"}
    content = harbour.client.get(f"/v1/documents/{document}/content").text
    question, about = body["questions"]
    assert (question["question"], question["answer"], question["document_id"]) == (QUESTION, "1987", document)
    assert question["confirmed"]
    assert content[question["start_char"] : question["end_char"]].endswith(BUILT)
    assert (question["page_start"], question["page_end"]) == (1, 1)
    asked = harbour.client.post("/v1/ask", json={"question": QUESTION, "document_ids": [document]}).json()
    assert asked["answered"]
    assert asked["citations"][0]["verified"]
    assert asked["citations"][0]["cited_text"].endswith(BUILT)
    assert (about["question"], about["answer"], about["confirmed"]) == (ABOUT, LINES[1], True)
    asked = harbour.client.post("/v1/ask", json={"question": ABOUT, "document_ids": [document]}).json()
    assert asked["answered"]
    assert all(citation["verified"] for citation in asked["citations"])
    assert LINES[1] in asked["answer"]


def test_every_model_call_is_on_the_ledger_and_made_once_for_a_version(harbours: Open) -> None:
    harbour = harbours()
    document = index(harbour.library, "ferry.pdf", *LINES, title="The Aldey ferry")
    harbour.ready(document)
    calls = harbour.calls()
    read = len(harbour.reader.passages)
    again = harbour.ready(document)

    assert {call["operation"] for call in calls} == {"embed_query", "judge"}
    assert {call["status"] for call in calls} == {"completed"}
    assert len({call["request_id"] for call in calls}) == 1
    assert [one["question"] for one in again["questions"]] == [QUESTION, ABOUT]
    assert (len(harbour.calls()), len(harbour.reader.passages)) == (len(calls), read)


def test_reading_what_is_known_starts_no_search_and_bills_nothing(harbours: Open) -> None:
    harbour = harbours()
    document = index(harbour.library, "ferry.pdf", *LINES, title="The Aldey ferry")
    path = f"/v1/documents/{document}/overview?prepare=false"
    before = harbour.client.get(path).json()
    calls = harbour.calls()
    harbour.ready(document)
    after = harbour.client.get(path).json()

    assert (before["state"], before["questions"], calls) == ("unasked", [], [])
    assert (after["state"], [one["question"] for one in after["questions"]]) == ("ready", [QUESTION, ABOUT])


def test_a_question_that_another_document_answers_better_is_not_suggested(harbours: Open) -> None:
    harbour = harbours()
    index(harbour.library, "twin.pdf", "# Twins", BUILT, title="Twins")
    document = index(harbour.library, "ferry.pdf", *LINES, title="The Aldey ferry")
    body = harbour.ready(document)
    twin = harbour.client.get("/v1/documents").json()["data"]

    assert len(twin) == 2
    assert {one["document_id"] for one in body["questions"]} <= {document}


def test_a_document_in_another_language_is_asked_what_it_is_about_which_costs_nothing(harbours: Open) -> None:
    harbour = harbours()
    text = "Die Fähre wurde 1987 von einer Werft in Bergen gebaut und ist der Stolz der Linie."
    document = index(harbour.library, "faehre.txt", text, title=None)
    body = harbour.ready(document)

    assert [(one["question"], one["answer"]) for one in body["questions"]] == [
        ("Worum geht es in diesem Dokument?", text)
    ]
    assert (body["title"], body["kind"]) == ("faehre.txt", "txt")
    assert harbour.calls() == []


def test_a_document_that_says_nothing_gets_no_question(harbours: Open) -> None:
    harbour = harbours()
    document = index(harbour.library, "ferry.pdf", "# The Aldey ferry", title="The Aldey ferry")

    assert harbour.ready(document)["questions"] == []


def test_readers_may_read_it_and_other_tenants_and_other_collections_may_not(harbours: Open, state: State) -> None:
    harbour = harbours()
    document = index(harbour.library, "ferry.pdf", *LINES, title="The Aldey ferry")
    harbour.client.post("/v1/admin/tenants", json={"id": "other", "name": "Other"})
    elsewhere = state.corpus.collections.create("default", "elsewhere", metadata={}).id
    reader = key_of(state, Role.READER)
    stranger = key_of(state, Role.ADMIN, tenant="other")
    limited = key_of(state, Role.MEMBER, collections=(elsewhere,))

    assert harbour.ready(document, **reader)["questions"]
    for headers in (stranger, limited):
        assert harbour.client.get(f"/v1/documents/{document}/overview", headers=headers).status_code == 404


def test_the_questions_go_with_the_document(harbours: Open, state: State) -> None:
    harbour = harbours()
    document = index(harbour.library, "ferry.pdf", *LINES, title="The Aldey ferry")
    harbour.ready(document)
    deleted = harbour.client.delete(f"/v1/documents/{document}")

    assert deleted.status_code == 200
    assert harbour.client.get(f"/v1/documents/{document}/overview").status_code == 404
    with state.database.read() as connection:
        assert connection.execute(sa.select(document_version.c.suggestions)).all() == []


def test_a_document_without_an_indexed_version_has_none(harbours: Open) -> None:
    harbour = harbours()
    created = harbour.library.upload("not read yet", filename="new.txt")

    assert harbour.client.get(f"/v1/documents/{created.id}/overview").status_code == 404


def test_while_models_load_the_summary_is_there_and_the_questions_follow(harbours: Open) -> None:
    harbour = harbours(loaded=False)
    document = index(harbour.library, "ferry.pdf", *LINES, title="The Aldey ferry")
    early = harbour.overview(document)
    harbour.loaded = True

    assert (early["state"], early["questions"], len(early["summary"])) == ("preparing", [], 3)
    assert harbour.ready(document)["questions"]


def test_a_model_that_fails_leaves_the_summary_and_is_tried_again_later(harbours: Open) -> None:
    harbour = harbours(failing=True)
    document = index(harbour.library, "ferry.pdf", *LINES, title="The Aldey ferry")
    body = harbour.ready(document, until="unavailable")

    assert (body["questions"], len(body["summary"])) == ([], 3)
    assert harbour.kept.read(document, tenant_id="default", version=1) is None


def test_a_spent_budget_stops_it_before_a_model_reads(harbours: Open, state: State) -> None:
    ledger = Ledger(state.database, boot_id="boot", observers=(Budgets(),))
    harbour = harbours(ledger=ledger)
    budget = {"limit": 1, "unit": "tokens", "period": "day"}
    created = harbour.client.post("/v1/admin/budgets", json=budget)
    document = index(harbour.library, "ferry.pdf", *LINES, title="The Aldey ferry")
    body = harbour.ready(document, until="unavailable")

    assert created.status_code == 201, created.text
    assert body["questions"] == []
    assert harbour.reader.passages == []


def test_a_question_is_shown_as_soon_as_it_is_found(harbours: Open) -> None:
    reader = WaitingReader("1987", asked="built", waits_at=["built", "opened"])
    harbour = harbours(reader=reader)
    document = index(harbour.library, "ferry.pdf", *LINES, "The pier was opened in 1990.", title="The Aldey ferry")

    about = harbour.suggesting(document, 1)["questions"]
    reader.may["built"].set()
    early = harbour.suggesting(document, 2)["questions"]
    state = harbour.overview(document)["state"]
    reader.may["opened"].set()

    assert [one["question"] for one in about] == [ABOUT]
    assert [one["question"] for one in early] == [QUESTION, ABOUT]
    assert state == "preparing"
    assert harbour.ready(document)["questions"][:1] == early[:1]


def test_what_a_document_is_about_does_not_wait_for_the_drafts_of_another(harbours: Open) -> None:
    reader = WaitingReader("1987", asked="built", waits_at=["built", "opened"])
    harbour = harbours(reader=reader)
    first = index(harbour.library, "ferry.pdf", *LINES, "The pier was opened in 1990.", title="The Aldey ferry")
    other = index(harbour.library, "mill.pdf", "# The mill", LINES[1], title="The mill")
    harbour.suggesting(first, 1)
    harbour.overview(other)
    reader.may["built"].set()  # the next draft of the first waits for the test

    early = harbour.suggesting(other, 1)
    state = harbour.overview(first)["state"]
    reader.may["opened"].set()

    assert [one["question"] for one in early["questions"]] == [ABOUT]
    assert state == "preparing"
    assert [one["question"] for one in harbour.ready(first)["questions"]] == [QUESTION, ABOUT]


def test_closing_ends_the_thread_and_keeps_nothing_that_is_not_whole(harbours: Open) -> None:
    harbour = harbours()
    document = index(harbour.library, "ferry.pdf", *LINES, title="The Aldey ferry")
    harbour.suggester.close()

    assert harbour.overview(document)["state"] == "preparing"
    assert harbour.kept.read(document, tenant_id="default", version=1) is None
