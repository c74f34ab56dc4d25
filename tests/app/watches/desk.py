"""Watches of one tenant over a search whose passages the test sets, a clock that it moves, and answers by quotes."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, cast
from zoneinfo import ZoneInfo

import sqlalchemy as sa

from app.answering.answerer import Answerer
from app.answering.quoting.passage_reader import PassageReader
from app.answering.retrieving.finder import Finder
from app.answering.retrieving.question_vectors import QuestionVectors
from app.db.acting import ActingPrincipals
from app.db.presence import OwnProcess
from app.db.tables.ledger import usage_event
from app.db.watch_changes import WatchChanges
from app.db.watch_runs import WatchRuns
from app.db.watches import Watch, WatchRepository, WatchTerms
from app.models.extractive import NoEngine
from app.server.state import State
from app.types import OPENID, Principal, Role
from app.usage.budgets.budgets import Budgets
from app.usage.ledger.events import UsageEvent
from app.usage.ledger.ledger import Ledger
from app.watches.runner import WatchRunner
from app.watches.watching import Watching
from generation.tokenizer import ChatTokenizer
from retrieval.ports import Vectors
from retrieval.search import Search
from retrieval.types import Hit, Scope, SearchMode
from tests.app.answering.answerers import QuotesAs, make_answerer
from tests.app.answering.pointing_reader import SURE, PointingReader
from tests.app.api.openai.test_response_format import ScriptedEngine
from tests.app.server.stations import ANY_EVIDENCE
from tests.generation.fakes import LetterTokenizer
from tests.generation.tiny import tiny_tokenizer
from tests.retrieval.fakes import HashingEmbedder, chunk, hit

QUESTION = "How many euros is the fee for a parking space?"
FEE = "The fee for a parking space is 30 euros a month."
RAISED = FEE.replace("30", "35")
PETS = "Pets need a written permission of the landlord."
LEAST_S = 60
NOON = 1_900_000_000.0


class Shelf:
    """Implements a search that finds what is on it, and notes the scopes that it is asked for."""

    def __init__(self) -> None:
        self._hits: tuple[Hit, ...] = ()
        self.scopes: list[Scope] = []
        self.failing: Exception | None = None
        self.before: Callable[[], object] = lambda: None

    def put(self, *texts: str, version: int = 1) -> None:
        """Have these texts found, each of a document of its own."""
        found = [
            hit(chunk(rank, text, document_id=f"doc_{rank}", version=version), rank=rank)
            for rank, text in enumerate(texts, start=1)
        ]
        self._hits = tuple(replace(one, scores=replace(one.scores, dense=0.9)) for one in found)

    def search(
        self, question: str, *, scope: Scope, top_k: int, mode: SearchMode, vector: Callable[[], Vectors]
    ) -> tuple[Hit, ...]:
        vector()
        self.before()
        if self.failing is not None:
            raise self.failing
        self.scopes.append(scope)
        return self._hits


class Desk:
    """One tenant's watches, and what runs them."""

    def __init__(self, state: State, *, most: int = 20, events_kept: int = 100, search: Search | None = None) -> None:
        """`search` is the shelf by default."""
        self.state = state
        self.now = NOON
        self.shelf = Shelf()
        self.search = search or cast(Search, self.shelf)
        self.ledger = Ledger(state.database, boot_id="boot", observers=(Budgets(),))
        self.watches = WatchRepository(state.database, most=most, least_s=LEAST_S, clock=self.clock)
        self.runs = self.runs_of("boot_1", events_kept=events_kept)
        self.changes = WatchChanges(state.database, OwnProcess.alone("boot_1", clock=self.clock), least_s=LEAST_S)
        self.answerer = self.quoting()
        self.key, _ = state.access.keys.create(tenant_id="acme", user_id="ann", name="ann", role=Role.READER)
        self.ann = Principal("acme", "ann", self.key.id, Role.READER)
        self.signed_in = Principal("acme", "ann", OPENID, Role.READER)

    def clock(self) -> float:
        return self.now

    def runs_of(self, boot_id: str, *, events_kept: int = 100) -> WatchRuns:
        own = OwnProcess.alone(boot_id, clock=self.clock)
        return WatchRuns(self.state.database, own, events_kept=events_kept, least_s=LEAST_S)

    def watch(self, principal: Principal | None = None, **terms: Any) -> Watch:
        given = {"question": QUESTION, "every_s": 3600, **terms}
        return self.watches.create(principal or self.ann, WatchTerms(**given))

    def again(self, watch: Watch) -> Watch:
        """The watch as it is now."""
        return self.watches.get(watch.id, principal=Principal("acme", "root", "key_root", Role.ADMIN))

    def events(self, watch: Watch) -> tuple[Any, ...]:
        return self.watches.events(watch.id, principal=self.ann, limit=50)[0]

    def runner(self, *, runs: WatchRuns | None = None, deliver: bool = False) -> WatchRunner:
        return WatchRunner(
            runs=runs or self.runs,
            changes=self.changes,
            watching=self.watching(deliver=deliver),
            answerer=lambda: self.answerer,
        )

    def watching(self, *, deliver: bool = False) -> Watching:
        return Watching(
            principals=ActingPrincipals(self.state.database, openid_role=Role.READER, clock=self.clock),
            collections=self.state.corpus.collections,
            zone=ZoneInfo("UTC"),
            clock=self.clock,
            deliver=deliver,
        )

    def work(self, *, later: float = 0.0) -> int:
        """Run what is due, `later` seconds from now."""
        self.now += later
        return self.runner().work()

    def rows(self) -> list[UsageEvent]:
        """The tenant's rows of the ledger."""
        query = sa.select(usage_event.c.request_id).where(usage_event.c.tenant_id == "acme").distinct()
        with self.state.database.read() as connection:
            ids = sorted(connection.execute(query).scalars())
        return [row for request_id in ids for row in self.ledger.usage(request_id)]

    def generating(self, says: str) -> ScriptedEngine:
        """Have a language model say one text whatever is asked, from now on."""
        engine = ScriptedEngine(says)
        self.answerer = make_answerer(
            finder=Finder(search=self.search, vectors=QuestionVectors(HashingEmbedder(max_tokens=64))),
            engine=engine,
            tokenizer=cast(Any, ChatTokenizer(tiny_tokenizer())),
            contents=self.state.corpus.contents,
            ledger=self.ledger,
            limits=ANY_EVIDENCE,
            quotes=QuotesAs.NOTHING,
        )
        return engine

    def quoting(self, *, margin: float = SURE) -> Answerer:
        """What answers by quotes, of which the reader is so sure."""
        embedder = HashingEmbedder(max_tokens=64)
        return make_answerer(
            finder=Finder(search=self.search, vectors=QuestionVectors(embedder)),
            engine=NoEngine(revision="1", context_window=2000),
            tokenizer=LetterTokenizer(),
            contents=self.state.corpus.contents,
            ledger=self.ledger,
            limits=ANY_EVIDENCE,
            passage_reader=PassageReader(
                embedder=embedder, reader=PointingReader("euros a month", asked="euros", margins=(margin,))
            ),
            quotes=QuotesAs.ONLY,
        )
