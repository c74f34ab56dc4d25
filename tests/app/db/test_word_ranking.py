"""BM25 over PostgreSQL's postings, beside BM25 written out over all chunks of a scope."""

from collections import Counter

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from app.db.chunks import ChunkRepository
from app.db.consistency import ConsistencyRepository
from app.db.session import Database
from app.db.word_ranking import WordRanking
from app.ids import new_id
from retrieval.terms import windows
from retrieval.types import Scope
from tests.app.db.samples import Library
from tests.bm25 import bm25, lucene

WORDS = ("pear", "plum", "fig", "lime", "nut", "part")  # their own stems
HEADING = {"part": 3}  # of every chunk, and how often it counts
texts = st.lists(st.lists(st.sampled_from(WORDS), min_size=1, max_size=9).map(" ".join), min_size=1, max_size=8)
questions = st.lists(st.sampled_from(WORDS), min_size=1, max_size=4, unique=True)
a_few = settings(deadline=None, max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
Ranking = list[tuple[int, float]]


class Shelf:
    """A collection of a tenant that is searched, another one of the tenant, and a stranger's, all filled anew."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._library = Library(database)
        self._stranger = Library(database, tenant_id="t2")
        self._beside = self._library.collections.create("t1", "Beside").id
        self.scope = Scope("t1", collection_ids=(self._library.collection_id,))
        self.texts: dict[int, str] = {}
        self.last = ""

    def fill(self, mine: list[str], others: list[str]) -> None:
        """`mine` are two documents: the last text is one of its own."""
        for library in (self._library, self._stranger):
            for document in library.documents.list(tenant_id=library.tenant_id, limit=99)[0]:
                library.documents.delete(document.id, tenant_id=library.tenant_id)
        self._stranger.index(*others, *mine)
        self._library.index(*others, content=new_id("bytes"), collection_id=self._beside)
        self._library.index(*mine[:-1], content=new_id("bytes"))
        self.last = self._library.index(mine[-1], content=new_id("bytes")).id
        keys = ChunkRepository(self._database).keys_in(self.scope).tolist()
        self.texts = dict(zip(keys, mine, strict=True))

    def ranked(self, question: list[str], *, k: int = 99, scope: Scope | None = None, ranking: WordRanking) -> Ranking:
        """As PostgreSQL's postings have it."""
        with self._database.read() as connection:
            return ranking.search(connection, " ".join(question), scope=scope or self.scope, k=k)

    def written_out(self, question: list[str]) -> dict[int, float]:
        """By all chunks of the collection."""
        counts = {key: Counter(text.split()) + Counter(HEADING) for key, text in self.texts.items()}
        lengths = {key: count.total() for key, count in counts.items()}
        return bm25(counts, lengths, question, scope=list(counts), weigh=lucene)


@pytest.fixture
def shelf(postgres_database: Database) -> Shelf:
    return Shelf(postgres_database)


@a_few
@given(mine=texts.filter(lambda some: len(some) > 1), others=texts, question=questions, k=st.integers(1, 9))
def test_a_ranking_is_that_of_all_chunks_of_the_scope(
    shelf: Shelf, mine: list[str], others: list[str], question: list[str], k: int
) -> None:
    shelf.fill(mine, others)
    ranking = WordRanking()

    found = shelf.ranked(question, ranking=ranking)
    few = shelf.ranked(question, k=k, ranking=ranking)
    last = Scope("t1", collection_ids=shelf.scope.collection_ids, document_ids=(shelf.last,))
    in_document = shelf.ranked(question, scope=last, ranking=ranking)

    assert dict(found) == pytest.approx(shelf.written_out(question))
    assert found == sorted(found, key=lambda hit: (-hit[1], hit[0]))
    assert few == found[:k]
    assert in_document == [hit for hit in found if hit[0] == max(shelf.texts)], "documents choose, scores stay"


@a_few
@given(mine=texts.filter(lambda some: len(some) > 1), others=texts, question=questions, common=st.integers(1, 6))
def test_common_words_propose_nothing_and_weigh_what_is_proposed(
    shelf: Shelf, mine: list[str], others: list[str], question: list[str], common: int
) -> None:
    shelf.fill(mine, others)
    ranking = WordRanking(common=common)
    holding = {word: sum(word in f"part {text}".split() for text in mine) for word in question}
    rare = {word for word, count in holding.items() if 0 < count < common}
    proposing = rare or {word for _, word in sorted((count, word) for word, count in holding.items() if count)[:1]}

    first, again = (shelf.ranked(question, ranking=ranking) for _ in range(2))

    proposed = {key for key, text in shelf.texts.items() if proposing & set(f"part {text}".split())}
    scores = shelf.written_out(question)
    assert dict(first) == pytest.approx({key: score for key, score in scores.items() if key in proposed})
    assert again == first, "also when it is known which words are common"


@a_few
@given(mine=texts.filter(lambda some: len(some) > 1), question=questions)
def test_the_best_by_rare_words_are_weighed(shelf: Shelf, mine: list[str], question: list[str]) -> None:
    shelf.fill(mine, [])

    found = shelf.ranked(question, k=1, ranking=WordRanking(common=3, proposed=4))

    scores = shelf.written_out(question)
    assert len(found) == min(1, len(scores))
    assert all(score == pytest.approx(scores[key]) for key, score in found)


def test_what_is_counted_is_counted_again_when_chunks_come_and_go(shelf: Shelf) -> None:
    shelf.fill(["fig plum", "fig", "nut"], ["fig"])
    ranking = WordRanking(common=2)
    shelf.ranked(["fig", "plum"], ranking=ranking)

    shelf.fill(["fig plum", "nut pear lime", "nut", "lime"], [])
    ranking.forget()

    assert dict(shelf.ranked(["fig", "plum"], ranking=ranking)) == pytest.approx(shelf.written_out(["fig", "plum"]))


def test_a_word_that_is_repeated_often_counts_in_steps(shelf: Shelf) -> None:
    shelf.fill(["fig " * 11 + "plum", "fig " * 8 + "plum " * 4, "fig " * 12], [])

    found = dict(shelf.ranked(["fig"], ranking=WordRanking()))

    first, second, third = (found[key] for key in sorted(found))
    assert first == second, "11 is rounded down to 8, and both are equally long"
    assert third == pytest.approx(shelf.written_out(["fig"])[max(found)])


def test_pairs_of_an_unspaced_script_are_ranked_by_bm25_too(shelf: Shelf) -> None:
    passages = ["人工知能とは何か", "機械学習の入門書", "機械の学習", "学習学習"]
    shelf.fill(passages, passages)

    found = dict(shelf.ranked(["機械学習"], ranking=WordRanking()))

    counts = {key: Counter(windows(text, size=2)) for key, text in shelf.texts.items()}
    lengths = {key: count.total() for key, count in counts.items()}
    pairs = windows("機械学習", size=2)
    assert found == pytest.approx(bm25(counts, lengths, pairs, scope=list(counts), weigh=lucene))


def test_words_that_are_missing_are_counted_and_written(shelf: Shelf, postgres_database: Database) -> None:
    shelf.fill(["fig plum", "fig", "nut"], ["fig"])
    consistency = ConsistencyRepository(postgres_database)
    with postgres_database.write() as connection:
        connection.exec_driver_sql("DELETE FROM chunk_words WHERE tenant_id = 't1'")
    lost = shelf.ranked(["fig"], ranking=WordRanking())

    counted = consistency.full_text_rows()
    consistency.rebuild_full_text()

    assert (lost, counted, consistency.full_text_rows()) == ([], 4, 0)
    assert dict(shelf.ranked(["fig"], ranking=WordRanking())) == pytest.approx(shelf.written_out(["fig"]))
