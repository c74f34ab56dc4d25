"""Questions about a document as a whole over HTTP: quotes of its opening and headings, exact and without a model."""

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, cast

import pytest

from app.answering.conversations.conversations import Conversations
from app.answering.quoting.passage_reader import PassageReader
from app.answering.retrieving.finder import Finder
from app.answering.retrieving.overviews import Overviews
from app.answering.retrieving.question_vectors import QuestionVectors
from app.answering.understanding.catalogue_replies import CatalogueReplies
from app.answering.understanding.documents.meant import FOLLOWED, KNOWN, DocumentsMeant
from app.db.catalogue import CatalogueRepository
from app.models.extractive import NoEngine
from app.server.state import State
from app.types import Role
from app.usage.ledger.ledger import Ledger
from generation.ports import Engine
from retrieval.search import Search
from tests.app.answering.answerers import QuotesAs, make_answerer
from tests.app.answering.retrieving.outlined import index
from tests.app.answering.retrieving.test_overviews import MEMO, PLAN, THIS
from tests.app.api.conftest import client_of
from tests.app.api.conversing import TalkingEngine
from tests.app.api.credentials import key_of
from tests.app.api.openai.test_response_format import FixedSearch
from tests.app.db.samples import Library
from tests.app.server.stations import LIMITS, state_with, stations
from tests.generation.fakes import LetterTokenizer
from tests.retrieval.fakes import HashingEmbedder

SHOWN = f"**Strategic Plan 2022** [1]\n\n> {PLAN[1]} [1]\n>\n> Vision [2]\n>\n> Mission [3]"


class Shelf:
    """A server whose searches find nothing, and its documents."""

    def __init__(self, state: State, engine: Engine | None = None) -> None:
        """Without an engine quotes are the answer."""
        embedder, ledger = HashingEmbedder(max_tokens=64), Ledger(state.database, boot_id="boot")
        quotes = QuotesAs.ONLY if engine is None else QuotesAs.NOTHING
        engine, tokenizer = engine or NoEngine(revision="1", context_window=2000), LetterTokenizer()
        contents, catalogue = state.corpus.contents, CatalogueRepository(state.database)
        meant = DocumentsMeant(catalogue)
        overviews = Overviews(meant, catalogue, contents, min_evidence=LIMITS.min_evidence)
        answerer = make_answerer(
            finder=Finder(search=cast(Search, FixedSearch(())), vectors=QuestionVectors(embedder)),
            engine=engine,
            tokenizer=tokenizer,
            contents=contents,
            ledger=ledger,
            limits=LIMITS,
            passage_reader=PassageReader(embedder=embedder),
            quotes=quotes,
            conversations=Conversations(state.history.conversations, count_tokens=tokenizer.count, history_tokens=1000),
            replies=CatalogueReplies(catalogue, meant),
            overviews=overviews,
        )
        running = state_with(state, models=replace(stations(state, engine, embedder=embedder), answerer=answerer))
        self.client = client_of(running)
        self.ledger = ledger
        self.library = Library(state.database, tenant_id="default")

    def ask(self, question: str = THIS, **fields: Any) -> Any:
        response = self.client.post("/v1/ask", json={"question": question, **fields})
        assert response.status_code == 200, response.text
        return response.json()


@pytest.fixture
def talking(state: State) -> Iterator[tuple[Shelf, TalkingEngine]]:
    """A server with a language model."""
    engine = TalkingEngine(says="It serves its customers [1].")
    shelf = Shelf(state, cast(Engine, engine))
    with shelf.client:
        yield shelf, engine


@pytest.fixture
def shelf(state: State) -> Iterator[Shelf]:
    shelf = Shelf(state)
    with shelf.client:
        yield shelf


def test_the_title_leads_and_the_opening_and_headings_are_quoted(shelf: Shelf) -> None:
    document = index(shelf.library, "plan.pdf", *PLAN, title="Strategic Plan 2022")
    body = shelf.ask()

    assert body["answer"] == SHOWN
    assert (body["answered"], body["reason"], body["answers"]) == (True, None, KNOWN)
    assert body["answer"][body["lead"]["start"] : body["lead"]["end"]] == "Strategic Plan 2022"
    assert [span["answers"] for span in body["quoted_spans"]] == [KNOWN] * 3
    assert body["abstention"]["stage"] is None
    for cited in body["citations"]:
        content = shelf.client.get(
            f"/v1/documents/{document}/content", params={"start": cited["start_char"], "end": cited["end_char"]}
        )
        assert content.text == cited["cited_text"]
        assert cited["verified"]
        assert body["answer"][cited["answer_start"] : cited["answer_end"]] == f"[{cited['index']}]"
        assert cited["chunk_id"] in body["sources"]["presented"]


def test_where_the_document_is_known_no_model_is_called(shelf: Shelf) -> None:
    index(shelf.library, "plan.pdf", *PLAN)
    body = shelf.ask()

    assert (body["usage"]["total_tokens"], body["usage"]["auxiliary"]) == (0, [])
    assert shelf.ledger.usage(body["id"]) == ()


def test_without_a_document_nothing_is_shown(shelf: Shelf) -> None:
    body = shelf.ask()

    assert (body["answered"], body["reason"], body["citations"]) == (False, "no_evidence", [])


@pytest.mark.parametrize("form", ["markdown", "text", "json"])
def test_streamed_and_whole_overviews_are_equal(shelf: Shelf, form: str) -> None:
    index(shelf.library, "plan.pdf", *PLAN, title="Strategic Plan 2022")
    whole = shelf.ask(format=form)
    text = shelf.client.post("/v1/ask", json={"question": THIS, "format": form, "stream": True}).text
    blocks = [block.split("\n") for block in text.strip().split("\n\n") if block.startswith("event:")]
    told = [(name.removeprefix("event: "), json.loads(data.removeprefix("data: "))) for name, data, *_ in blocks]

    assert "".join(data["text"] for name, data in told if name == "delta") == whole["answer"]
    assert [data for name, data in told if name == "citation"] == whole["citations"]
    if form == "json":
        answer = json.loads(whole["answer"])
        assert answer == {"answer": f"Strategic Plan 2022 {PLAN[1]} Vision Mission", "sources": [1, 2, 3]}


def test_a_question_for_a_fact_is_searched_for(shelf: Shelf) -> None:
    index(shelf.library, "plan.pdf", *PLAN)
    body = shelf.ask("What is the budget of the plan?")

    assert (body["answered"], body["reason"]) == (False, "no_evidence")
    assert [row.operation.value for row in shelf.ledger.usage(body["id"])] == ["embed_query"]


def test_a_language_model_reads_the_passages_of_the_overview(talking: tuple[Shelf, TalkingEngine]) -> None:
    shelf, engine = talking
    index(shelf.library, "plan.pdf", *PLAN)
    body = shelf.ask()

    assert (body["answered"], body["answer"]) == (True, "It serves its customers [1].")
    (request,) = engine.requests
    assert all(line.removeprefix("# ") in LetterTokenizer().decode(request.prompt) for line in PLAN)
    assert [row.operation.value for row in shelf.ledger.usage(body["id"])] == ["chat"]


def test_a_dry_run_shows_the_sources(shelf: Shelf) -> None:
    index(shelf.library, "plan.pdf", *PLAN)
    body = shelf.ask(dry_run=True)

    assert (body["reason"], body["answer"], len(body["sources"]["presented"])) == ("dry_run", "", 3)


def test_a_conversation_goes_on_with_the_document_of_its_last_answer(shelf: Shelf) -> None:
    index(shelf.library, "plan.pdf", *PLAN, title="Strategic Plan 2022")
    memo = index(shelf.library, "memo.txt", *MEMO)
    conversation = shelf.client.post("/v1/conversations", json={}).json()["id"]
    named = shelf.ask("What does the memo cover?", conversation_id=conversation)
    again = shelf.ask("Summarise the document", conversation_id=conversation)

    assert (named["answers"], again["answers"]) == (KNOWN, FOLLOWED)
    assert {cited["document_id"] for cited in (*named["citations"], *again["citations"])} == {memo}
    assert [cited["verified"] for cited in again["citations"]] == [False]


def test_a_key_sees_only_documents_of_its_collections(shelf: Shelf, state: State) -> None:
    index(shelf.library, "plan.pdf", *PLAN)
    other = shelf.library.collections.create("default", "others").id
    headers = key_of(state, Role.READER, collections=(other,))
    body = shelf.client.post("/v1/ask", json={"question": THIS}, headers=headers).json()

    assert (body["answered"], body["citations"]) == (False, [])
