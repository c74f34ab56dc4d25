"""A server of documents and their suggested questions, without a model: tests of overviews look at it over HTTP."""

import threading
import time
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import replace
from typing import Any, cast

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
from app.db.tables.ledger import api_request
from app.models.extractive import NoEngine
from app.server.state import State
from app.suggestions.suggester import ENDPOINT, Suggester
from app.usage.ledger.ledger import Ledger
from retrieval.ports import Vectors
from retrieval.search import Search
from retrieval.types import Hit, Pointer, Scope, Scores, SearchMode, Span
from tests.app.answering.answerers import QuotesAs, make_answerer
from tests.app.answering.pointing_reader import PointingReader
from tests.app.answering.test_prompt import CharacterTokenizer
from tests.app.api.conftest import ADMIN_KEY
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
