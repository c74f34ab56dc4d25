"""Every keyword index keeps one promise: scope inside, any text a query, ties by key, nothing that is gone."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from app.db.chunks import ChunkRepository
from app.db.session import Database
from app.documents.adapters.word_index import WordIndex
from app.ids import new_id
from app.types import Document
from retrieval.ports import LexicalIndex
from retrieval.types import Comparison, Scope
from tests.app.db.samples import Library
from tests.bm25 import Weigh, bm25, lucene, sqlite
from tests.databases import migrated_file, postgres_database, sqlite_database

__all__ = ["migrated_file", "postgres_database", "sqlite_database"]

PASSAGES = [
    "The annual revenue of the company rose by twelve percent.",
    "Employees enjoy running in the park at noon.",
    "Error code E-4711x means the disk is full; see getUserById.",
    "人工知能とは何かを説明します。",
    "機械学習の入門書です。",
    "한국어 문서를 검색합니다",
    "Die Straße nach Zürich ist gesperrt.",
    "हिन्दी में लिखा हुआ पाठ",
    "ระบบค้นหาเอกสารภาษาไทย",
    "Отчёт о прибыли за год",
]


class Shelf:
    """A library and one keyword index over it, told of every change as the worker tells it."""

    def __init__(self, database: Database, index: WordIndex, chunks: ChunkRepository) -> None:
        self.database = database
        self.live = index
        self.chunks = chunks

    @property
    def index(self) -> LexicalIndex:
        return self.live

    def add(self, *texts: str, tenant_id: str = "t1", **upload: object) -> Document:
        library = Library(self.database, tenant_id=tenant_id)
        created = library.upload("\n".join(texts), **upload)  # type: ignore[arg-type]
        result = library.commit(library.claim(), texts)
        self.chunks.forget(result.removed_keys)
        self.live.forget(result.removed_keys)
        self.live.add(result.new_keys)
        self.live.save_if_changed()
        return library.get(created.id)

    def delete(self, document: Document, *, tenant_id: str = "t1") -> None:
        removal = Library(self.database, tenant_id=tenant_id).documents.delete(document.id, tenant_id=tenant_id)
        self.chunks.forget(removal.keys)
        self.live.forget(removal.keys)

    def found(self, query: str, *, scope: Scope | None = None, k: int = 99) -> list[str]:
        scope = scope or Scope("t1")
        hits = self.index.search_text(query, scope=scope, k=k)
        assert len(hits) == len(dict(hits)) <= k
        assert hits == sorted(hits, key=lambda hit: (-hit[1], hit[0]))
        texts = self.chunks.chunks([key for key, _ in hits], scope=scope)
        return [texts[key].text for key, _ in hits]


@pytest.fixture(params=["fts5", "postgresql", "tantivy"])
def shelf(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Shelf]:
    name = "postgres_database" if request.param == "postgresql" else "sqlite_database"
    database = request.getfixturevalue(name)
    assert isinstance(database, Database)
    engine = "tantivy" if request.param == "tantivy" else "sql"
    chunks = ChunkRepository(database)
    live = WordIndex(tmp_path / "lexical", database=database, chunks=chunks, engine=engine)  # type: ignore[arg-type]
    live.start()
    live.wait()
    assert live.serving == engine
    yield Shelf(database, live, chunks)
    assert live.serving == engine, "it was given up"
    live.close()


@pytest.fixture
def filled(shelf: Shelf) -> Shelf:
    shelf.add(*PASSAGES)
    return shelf


FINDS = {
    "revenue": 0,
    "What is the REVENUE of the company?": 0,
    '"annual" OR revenue* NOT (percent:': 0,
    "E-4711x": 2,
    "4711x": 2,
    "e-4711X disk?": 2,
    "機械学習": 4,
    "人工知能とは何ですか": 3,
    "学習": 4,
    "검색합니다": 5,
    "straße": 6,
    "zürich": 6,
    "हिन्दी": 7,
    "ค้นหา": 8,
    "прибыли": 9,
}


def test_a_query_finds_its_passage_first(filled: Shelf) -> None:
    assert {query: filled.found(query)[0] for query in FINDS} == {query: PASSAGES[at] for query, at in FINDS.items()}


def test_stems_plain_letters_and_parts_are_known(filled: Shelf) -> None:
    for query, place in {"run": 1, "zurich": 6, "employee": 1, "etUserBy": 2}.items():
        assert filled.found(query) == [PASSAGES[place]], query


def test_more_matching_words_rank_higher(filled: Shelf) -> None:
    filled.add("revenue", "annual revenue rose")

    assert filled.found("annual revenue rose", k=1) == ["annual revenue rose"]


def test_headings_are_searched_too(filled: Shelf) -> None:
    assert set(filled.found("part")) == set(PASSAGES)


def test_filler_words_count_only_when_alone(filled: Shelf) -> None:
    assert filled.found("the zebra") == []
    assert filled.found("in the") != []


def test_a_claim_of_a_hundred_words_is_a_query(filled: Shelf) -> None:
    claim = " ".join(f"w{number}" for number in range(50)) + " annual revenue " + "and so on " * 40

    assert filled.found(claim)[0] == PASSAGES[0]


ODD = ["", " \n\t", '"', "'", "\\", "*", "AND OR NOT NEAR", "text:x", "-", "()", '""""', "😀😀", "a😀", "\0", "\ud800"]
LONG = [
    "x" * 100_000,
    "ab cd " * 9_000,
    "語" * 100_000,
    "!" * 100_000,
    " ".join(f"w{number}" for number in range(20_000)),
]


def test_odd_and_long_texts_are_valid_queries(filled: Shelf) -> None:
    for query in [*ODD, *LONG, "\u0301\u0302", "²³", "İ"]:
        assert len(filled.found(query)) <= len(PASSAGES), ascii(query[:12])


@settings(deadline=None, max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(query=st.text(max_size=60), k=st.integers(0, 12))
def test_no_query_text_raises_an_error(filled: Shelf, query: str, k: int) -> None:
    assert set(filled.found(query, k=k)) <= set(PASSAGES)


@settings(deadline=None, max_examples=8, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(text=st.text(st.characters(blacklist_categories=["Cs"], blacklist_characters="\0"), min_size=1, max_size=40))
def test_any_text_can_be_added_and_deleted(shelf: Shelf, text: str) -> None:
    gone = shelf.add(text)
    held = shelf.found(text)
    shelf.delete(gone)

    assert held in ([], [text])
    assert shelf.found(text) == []


@pytest.mark.parametrize("query", ["shared", "共有"])
def test_scope_is_applied_inside_and_tenants_never_meet(shelf: Shelf, query: str) -> None:
    other = Library(shelf.database).collections.create("t1", "Other").id
    here = shelf.add(f"{query} here", metadata={"year": 2020})
    there = shelf.add(f"{query} there", collection_id=other, metadata={"year": 2024})
    shelf.add(*(f"{query} {query} {query} {number}" for number in range(9)), tenant_id="t2")

    def texts(scope: Scope) -> set[str]:
        return set(shelf.found(query, scope=scope, k=2))

    assert texts(Scope("t1")) == {f"{query} here", f"{query} there"}
    assert texts(Scope("t1", collection_ids=(other,))) == {f"{query} there"}
    assert texts(Scope("t1", document_ids=(here.id,))) == {f"{query} here"}
    assert texts(Scope("t1", filter=Comparison("year", "$gte", 2024))) == {f"{query} there"}
    assert texts(Scope("t1", collection_ids=(other,), document_ids=(here.id,))) == set()
    assert texts(Scope("t1", collection_ids=())) == texts(Scope("t1", document_ids=())) == set()
    assert texts(Scope("t2", document_ids=(there.id,))) == texts(Scope("stranger")) == set()


def test_k_come_back_from_a_small_scope_behind_many_better_matches(shelf: Shelf) -> None:
    shelf.add(*("shared shared" for _ in range(300)))
    last = shelf.add(*(f"shared and {number} other words of no account" for number in range(5)))

    assert len(shelf.found("shared", scope=Scope("t1", document_ids=(last.id,)), k=5)) == 5


WORDS = ("apple", "pear", "plum", "fig", "quince", "lime")
passages = st.lists(  # of equal length: the average, which is the whole index's, stays
    st.lists(st.sampled_from(WORDS), min_size=6, max_size=6).map(" ".join), min_size=1, max_size=5
)


@settings(deadline=None, max_examples=10, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(mine=passages, others=passages, query=st.lists(st.sampled_from(WORDS), min_size=1, max_size=4, unique=True))
def test_what_others_upload_changes_no_score_and_no_rank(
    shelf: Shelf, mine: list[str], others: list[str], query: list[str]
) -> None:
    library = Library(shelf.database)
    other = library.collections.create("t1", new_id("name")).id
    scopes = [Scope("t1", collection_ids=(library.collection_id,)), Scope("t1")]

    def found(scope: Scope) -> list[tuple[int, float]]:
        return shelf.index.search_text(" ".join(query), scope=scope, k=99)

    here = shelf.add(*mine)
    keys = shelf.chunks.keys_in(scopes[0]).tolist()
    alone = found(scopes[0])
    elsewhere = shelf.add(*others, collection_id=other)
    beside_own, with_own = (found(scope) for scope in scopes)
    strangers = shelf.add(*others, *mine, *others, tenant_id="t2")
    beside = [found(scope) for scope in scopes]
    all_keys = shelf.chunks.keys_in(scopes[1]).tolist()

    for document, tenant_id in ((here, "t1"), (elsewhere, "t1"), (strangers, "t2")):
        shelf.delete(document, tenant_id=tenant_id)
    weigh = sqlite if shelf.live.serving == "sql" and shelf.database.kind == "sqlite" else lucene
    assert_same(beside_own, alone)
    assert_same(beside[0], alone)
    assert_same(beside[0], written_out(keys, mine, query, weigh))
    assert_same(beside[1], with_own)
    assert_same(beside[1], written_out(all_keys, [*mine, *others], query, weigh))


def written_out(keys: list[int], texts: list[str], query: list[str], weigh: Weigh) -> list[tuple[int, float]]:
    """The ranking of an index that holds `texts` alone, each under the heading "Part"."""
    counts = {key: Counter(text.split()) for key, text in zip(keys, texts, strict=True)}
    scores = bm25(counts, dict.fromkeys(keys, 1), query, scope=keys, weigh=weigh)
    return sorted(scores.items(), key=lambda hit: (-hit[1], hit[0]))


def assert_same(ranking: list[tuple[int, float]], other: list[tuple[int, float]]) -> None:
    """The same scores but for rounding, and the same ranks but among scores that only rounding tells apart."""
    assert dict(ranking) == pytest.approx(dict(other), rel=1e-4, abs=1e-9)
    assert [score for _, score in ranking] == pytest.approx([score for _, score in other], rel=1e-4, abs=1e-9)


@pytest.mark.parametrize("query", ["words", "機械"])
def test_a_deleted_or_replaced_passage_is_not_found(shelf: Shelf, query: str) -> None:
    gone = shelf.add(f"{query} one")
    shelf.add(f"{query} two", external_id="x")
    shelf.delete(gone)
    shelf.add(f"{query} three", external_id="x")

    assert shelf.found(query) == [f"{query} three"]


def test_at_most_k_come_back_and_ties_go_by_key(filled: Shelf) -> None:
    for name in "abc":
        filled.add(*("same thing" for _ in range(20)), external_id=name)

    hits = filled.index.search_text("thing", scope=Scope("t1"), k=2)

    assert [key for key, _ in hits] == filled.chunks.keys_in(Scope("t1")).tolist()[-60:-58]
    assert filled.index.search_text("thing", scope=Scope("t1"), k=0) == []
