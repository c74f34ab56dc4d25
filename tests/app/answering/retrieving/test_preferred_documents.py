"""A follow-up prefers the documents that the last answer cited, and its search costs one embedding all the same."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from app.answering.question import Question
from app.answering.retrieving.evidence import evidence_score
from app.answering.retrieving.finder import MARGIN, Finder, preferring
from app.answering.retrieving.question_vectors import QuestionVectors
from app.db.session import Database
from app.types import Operation, Principal, Role
from app.usage.ledger.ledger import Ledger
from retrieval.search import Search
from retrieval.types import Hit, Scope, Scores, SearchMode
from tests.app.answering.metered import meter_of
from tests.databases import migrated_file, sqlite_database
from tests.retrieval.exact_index import ExactIndex
from tests.retrieval.fakes import HashingEmbedder, Inside, MemoryStore, chunk

__all__ = ["migrated_file", "sqlite_database"]

INJURED = "The pilot had minor injuries"
PASSAGES = {
    "reno": ["The pilot held a private certificate", INJURED, "The weather was clear"],
    "oslo": ["The pilot had serious injuries what did", "The pilot was alone", "The engine stopped"],
    "lease": ["The notice period of the lease is three months"],
}
QUESTION = Question(
    request_id="req_1",
    endpoint="ask",
    principal=Principal("t", "u", "k", Role.READER),
    text="What injuries did the pilot have",
    scope=Scope(tenant_id="t"),
    top_k=3,
)


class Pool:
    """A finder over `PASSAGES`, each list a document of that name."""

    def __init__(self, database: Database) -> None:
        self.embedder, self.ledger, store = HashingEmbedder(), Ledger(database, boot_id="boot"), MemoryStore()
        index = ExactIndex(self.embedder.info.dim)
        numbered = [(name, text) for name, texts in PASSAGES.items() for text in texts]
        for key, (name, text) in enumerate(numbered, start=1):
            store.put(chunk(key, text, document_id=name))
        index.add(np.arange(1, len(numbered) + 1), self.embedder.embed_documents([text for _, text in numbered]))
        search = Search(Inside(lambda: index, store), store, store)
        self.finder = Finder(search=search, vectors=QuestionVectors(self.embedder), min_evidence=0.3)

    def documents(self, question: Question) -> list[str]:
        return [hit.chunk.document_id for hit in self.find(question)]

    def find(self, question: Question) -> tuple[Hit, ...]:
        return self.finder.find(question, meter_of(question, self.ledger)).hits


@pytest.fixture
def pool(sqlite_database: Database) -> Pool:
    return Pool(sqlite_database)


@pytest.mark.parametrize("mode", list(SearchMode))
def test_the_cited_document_is_preferred_to_a_better_match_of_another(pool: Pool, mode: SearchMode) -> None:
    asked = replace(QUESTION, mode=mode)
    assert pool.documents(asked)[0] == "oslo"

    preferring_reno = replace(asked, preferred=("reno",))
    assert set(pool.documents(preferring_reno)) == {"reno"}
    assert INJURED in [hit.chunk.text for hit in pool.find(preferring_reno)]


def test_another_document_that_is_clearly_better_evidence_comes_first(pool: Pool) -> None:
    asked = replace(QUESTION, text="What is the notice period of the lease", preferred=("reno",))

    assert pool.documents(asked)[0] == "lease"


def test_a_preferred_document_out_of_scope_or_gone_changes_nothing(pool: Pool) -> None:
    inside = replace(QUESTION, scope=Scope(tenant_id="t", document_ids=("oslo", "lease")))

    assert pool.documents(replace(inside, preferred=("reno",))) == pool.documents(inside)
    assert pool.documents(replace(QUESTION, preferred=("deleted",))) == pool.documents(QUESTION)


def test_the_question_is_embedded_and_paid_once(pool: Pool) -> None:
    pool.find(replace(QUESTION, preferred=("reno",)))

    (row,) = pool.ledger.usage("req_1")
    assert (row.operation, row.input_tokens) == (Operation.EMBED_QUERY, pool.embedder.count_query(QUESTION.text))
    assert pool.embedder.embedded == [QUESTION.text]


@st.composite
def hits(draw: st.DrawFn, *, documents: tuple[str, ...], first: int) -> tuple[Hit, ...]:
    drawn = draw(st.lists(st.tuples(st.sampled_from(documents), st.floats(0, 1)), max_size=6))
    return tuple(
        Hit(chunk(first + at, "text", document_id=name), Scores(fused=1 / (at + 1), dense=cosine))
        for at, (name, cosine) in enumerate(drawn)
    )


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(
    found=hits(documents=("a", "b", "c"), first=1),
    inside=hits(documents=("a",), first=100),
    minimum=st.floats(0, 1),
    top_k=st.integers(6, 8),
)
def test_other_documents_stay_only_where_they_are_clearly_better(
    found: tuple[Hit, ...], inside: tuple[Hit, ...], minimum: float, top_k: int
) -> None:
    kept = preferring("Why?", found, inside, minimum=minimum, top_k=top_k)

    best = evidence_score("Why?", inside)
    if not inside or best < minimum:
        assert kept == found
        return
    others = [hit for hit in found if hit.chunk.document_id != "a"]
    better = [hit for hit in others if evidence_score("Why?", [hit]) >= best + MARGIN][: top_k // 2]
    assert list(kept) == [*better, *inside][:top_k]
    assert sum(hit in inside for hit in kept) >= min(len(inside), top_k - top_k // 2)
