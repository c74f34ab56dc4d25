"""The application over an engine of the test's choosing and a search that may take its time."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from anyio.from_thread import BlockingPortal
from fastapi.testclient import TestClient

from app.answering.question import AnswerDefaults
from app.answering.retrieving.finder import Finder
from app.answering.retrieving.question_vectors import QuestionVectors
from app.db.contents import ContentRepository
from app.server.serving import Models
from app.server.state import State
from app.types import Operation
from app.usage.ledger.events import UsageEvent
from app.usage.ledger.ledger import Ledger
from generation.ports import Engine
from retrieval.ports import Embedder, Vectors
from retrieval.search import Search
from retrieval.types import EmbedderInfo, Hit
from tests.app.answering.answerers import make_answerer
from tests.app.answering.generating.test_footnote_writer import SOURCES
from tests.app.api.conftest import client_of
from tests.app.server.stations import state_with
from tests.generation.fakes import LetterTokenizer

DEADLINES = (1.5, 6.0, 24.0)
"""Seconds, to be tried in turn: on a machine with more workers than cores some step begins only after the first."""


class LetterEmbedder:
    """Counts letters; every question has the same vector."""

    info = EmbedderInfo(model="letters", revision="0", dim=4, max_tokens=64)

    def count_tokens(self, text: str) -> int:
        return len(text)

    def count_query(self, text: str) -> int:
        return len(text)

    def embed_query(self, text: str) -> Vectors:
        return np.full(4, 0.5, dtype=np.float32)


class Finding:
    """Finds the same hits whatever is asked, after `wait`."""

    def __init__(self, wait: Any = lambda: None) -> None:
        self._wait = wait

    def search(self, question: str, *, vector: Callable[[], Vectors], **_: object) -> tuple[Hit, ...]:
        vector()
        self._wait()
        return tuple(source.hit for source in SOURCES)


@dataclass
class Service:
    """The application, and its books."""

    http: TestClient
    ledger: Ledger

    @property
    def portal(self) -> BlockingPortal:
        """The way into the application's event loop."""
        assert self.http.portal is not None, "served() is on"
        return self.http.portal

    def row(self, request_id: str) -> UsageEvent:
        """The one row of the answer's generation."""
        (row,) = self.rows(request_id, Operation.CHAT)
        return row

    def rows(self, request_id: str, operation: Operation) -> list[UsageEvent]:
        return [row for row in self.ledger.usage(request_id) if row.operation == operation]


@contextmanager
def served(state: State, engine: Engine, *, deadline_s: float = 600.0, search: Any = None) -> Iterator[Service]:
    """Serve until the end of the block."""
    ledger, tokenizer, embedder = Ledger(state.database, boot_id="boot"), LetterTokenizer(), LetterEmbedder()
    answerer = make_answerer(
        finder=Finder(search=cast(Search, search or Finding()), vectors=QuestionVectors(cast(Embedder, embedder))),
        engine=engine,
        tokenizer=tokenizer,
        contents=ContentRepository(state.database),
        ledger=ledger,
        limits=AnswerDefaults(max_context_tokens=2000, max_output_tokens=2000, min_evidence=-1.0, max_waiting=4),
    )
    unused: Any = None
    models = Models(
        embedder=cast(Embedder, embedder),
        engine=engine,
        tokenizer=tokenizer,
        index=unused,
        lexical=unused,
        answerer=answerer,
        worker=unused,
        inline=unused,
    )
    settings = state.settings.model_copy(update={"answer_deadline_s": deadline_s})
    running = state_with(state, models=models, settings=settings)
    with client_of(running) as http:
        yield Service(http, ledger)
