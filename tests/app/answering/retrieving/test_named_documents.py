"""Documents that a question names are searched by themselves, at the price of no further embedding."""

from dataclasses import replace

import numpy as np
import pytest

from app.answering.question import Question
from app.answering.retrieving.finder import Finder
from app.answering.retrieving.question_vectors import QuestionVectors
from app.db.session import Database
from app.types import Operation, Principal, Role
from app.usage.ledger.ledger import Ledger
from retrieval.name_index import NamedDocument, NameIndex, name_words
from retrieval.search import Search
from retrieval.types import Hit, Scope, SearchMode
from tests.app.answering.metered import meter_of
from tests.databases import migrated_file, sqlite_database
from tests.retrieval.exact_index import ExactIndex
from tests.retrieval.fakes import HashingEmbedder, Inside, MemoryStore, chunk

__all__ = ["migrated_file", "sqlite_database"]

TERM = "Either party may end this contract with a notice of three months"
PASSAGES = {
    "acme": ["This contract is made by Acme Corporation", TERM, "Fees are due within thirty days"],
    "globex": [
        "This contract is made by Globex",
        "The contract may be ended by Globex with a notice",
        "Fees are waived",
    ],
    "initech": ["The notice period of the contract of Initech is a year", "Notice of Acme", "Acme contract"],
}
NAMES = {"acme": "acme", "globex": "globex", "initech": "initech"}
QUESTION = Question(
    request_id="req_1",
    endpoint="ask",
    principal=Principal("t", "u", "k", Role.READER),
    text="With what notice may the contract of Acme be ended?",
    scope=Scope(tenant_id="t"),
    top_k=3,
)


class Names:
    """Implements `NamedDocuments` over `NAMES`; `asked` are the questions."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self._index = NameIndex()
        for document_id, name in NAMES.items():
            self._index.add(document_id, group="c", names=[name_words(name)])

    def named(self, question: str, *, scope: Scope) -> list[NamedDocument]:
        self.asked.append(question)
        inside = scope.document_ids
        return self._index.named(question, allowed=lambda one, _: inside is None or one in inside)


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
        self.names, vectors = Names(), QuestionVectors(self.embedder)
        self.finder = Finder(search=search, vectors=vectors, min_evidence=0.3, names=self.names)
        self.nameless = Finder(search=search, vectors=vectors, min_evidence=0.3)

    def find(self, question: Question) -> tuple[Hit, ...]:
        return self.finder.find(question, meter_of(question, self.ledger)).hits

    def without_names(self, question: Question) -> tuple[Hit, ...]:
        return self.nameless.find(question, meter_of(question, self.ledger)).hits


@pytest.fixture
def pool(sqlite_database: Database) -> Pool:
    return Pool(sqlite_database)


def test_the_passage_of_the_named_document_that_answers_comes_first(pool: Pool) -> None:
    assert pool.without_names(QUESTION)[0].chunk.document_id != "acme"

    found = pool.find(QUESTION)

    assert found[0].chunk.text == TERM
    assert [hit.scores.fused for hit in found] == sorted((hit.scores.fused for hit in found), reverse=True)
    assert len(found) == QUESTION.top_k


def test_the_question_is_embedded_and_paid_once(pool: Pool) -> None:
    pool.find(QUESTION)

    (row,) = pool.ledger.usage("req_1")
    assert (row.operation, row.input_tokens) == (Operation.EMBED_QUERY, pool.embedder.count_query(QUESTION.text))
    assert pool.embedder.embedded == [QUESTION.text]


def test_a_question_that_names_no_document_finds_what_it_found(pool: Pool) -> None:
    asked = replace(QUESTION, text="With what notice may the contract be ended?")
    assert pool.find(asked) == pool.without_names(asked)


def test_a_named_document_out_of_scope_changes_nothing(pool: Pool) -> None:
    asked = replace(QUESTION, scope=Scope(tenant_id="t", document_ids=("globex", "initech")))
    assert pool.find(asked) == pool.without_names(asked)


@pytest.mark.parametrize("mode", [SearchMode.DENSE, SearchMode.LEXICAL])
def test_a_search_by_meaning_or_by_words_alone_is_left_alone(pool: Pool, mode: SearchMode) -> None:
    asked = replace(QUESTION, mode=mode)

    assert pool.find(asked) == pool.without_names(asked)
    assert pool.names.asked == []


def test_a_follow_up_may_name_another_document_than_the_last_answer_cited(pool: Pool) -> None:
    found = pool.find(replace(QUESTION, preferred=("globex",)))

    assert found[0].chunk.text == TERM
