"""Any text is a query; words find their passages, and so do scripts without spaces."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from app.db.chunks import ChunkRepository
from app.db.session import Database
from retrieval.types import Scope
from tests.app.db.samples import Library

PASSAGES = [
    "The annual revenue of the company rose by twelve percent.",
    "Employees enjoy running in the park at noon.",
    "Error code ERR-4021-X means the disk is full; see getUserById.",
    "人工知能とは何かを説明します。",
    "機械学習の入門書です。",
    "한국어 문서를 검색합니다",
    "Die Straße nach Zürich ist gesperrt.",
    "हिन्दी में लिखा हुआ पाठ",
]


def found(database: Database, query: str, *, k: int = 9, scope: Scope | None = None) -> list[str]:
    chunks, scope = ChunkRepository(database), scope or Scope("t1")
    hits = chunks.search_text(query, scope=scope, k=k)
    assert len(hits) <= k
    assert [score for _, score in hits] == sorted((score for _, score in hits), reverse=True)
    texts = chunks.chunks([key for key, _ in hits], scope=scope)
    return [texts[key].text for key, _ in hits]


@pytest.fixture
def library(database: Database) -> Library:
    library = Library(database)
    library.index(*PASSAGES)
    return library


@pytest.mark.parametrize(
    ("query", "place"),
    [
        ("revenue", 0),
        ("What is the REVENUE of the company?", 0),
        ('"annual" OR revenue* NOT (percent:', 0),
        ("ERR-4021-X", 2),
        ("機械学習", 4),
        ("人工知能とは何ですか", 3),
        ("学習", 4),
        ("검색합니다", 5),
        ("straße", 6),
        ("zürich", 6),
        ("हिन्दी", 7),
    ],
)
def test_a_query_finds_its_passage_first(library: Library, query: str, place: int) -> None:
    assert found(library.database, query)[:1] == [PASSAGES[place]]


@pytest.mark.parametrize(("query", "place"), [("run", 1), ("zurich", 6), ("employee", 1), ("etUserBy", 2)])
def test_sqlite_also_knows_stems_plain_letters_and_parts(sqlite_database: Database, query: str, place: int) -> None:
    Library(sqlite_database).index(*PASSAGES)

    assert found(sqlite_database, query) == [PASSAGES[place]]


def test_more_matching_words_rank_higher(library: Library) -> None:
    library.index("revenue", "annual revenue rose")

    assert found(library.database, "annual revenue rose", k=1) == ["annual revenue rose"]


def test_headings_are_searched_too(library: Library) -> None:
    assert set(found(library.database, "part", k=99)) == set(PASSAGES)


def test_filler_words_find_nothing_by_themselves_when_there_are_others(library: Library) -> None:
    assert found(library.database, "the zebra") == []
    assert found(library.database, "in the") != [], "but they are all there is here"


@pytest.mark.parametrize(
    "query",
    [
        "",
        " \n\t",
        '"',
        "'",
        "\\",
        "*",
        "AND OR NOT NEAR",
        "text:x",
        "-",
        "()",
        '""""',
        "😀😀",
        "a😀",
        "\0",
        "\ud800",
        "\u0301\u0302",
        "²³",
        "x" * 100_000,
        "ab cd " * 20_000,
        " ".join(f"w{number}" for number in range(50_000)),
        "語" * 100_000,
        "!" * 100_000,
    ],
    ids=lambda query: ascii(query[:12]),
)
def test_any_text_is_a_query(library: Library, query: str) -> None:
    assert len(found(library.database, query)) <= len(PASSAGES)


@settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(query=st.text(max_size=60))
def test_no_text_is_an_error(library: Library, query: str) -> None:
    assert set(found(library.database, query)) <= set(PASSAGES)


@pytest.mark.parametrize("query", ["words", "언어", "機械"])
def test_a_deleted_or_replaced_passage_is_not_found(database: Database, query: str) -> None:
    library = Library(database)
    gone = library.index(f"{query} one")
    library.index(f"{query} two", external_id="x")
    library.documents.delete(gone.id, tenant_id="t1")
    library.upload("new", external_id="x")
    library.commit(library.claim(), [f"{query} three"])

    assert found(database, query) == [f"{query} three"]


def test_at_most_k_come_back_and_ties_go_by_key(library: Library) -> None:
    library.index("same thing", "same thing", "same thing")
    chunks = ChunkRepository(library.database)

    hits = chunks.search_text("thing", scope=Scope("t1"), k=2)

    assert [key for key, _ in hits] == chunks.keys_in(Scope("t1")).tolist()[-3:-1]
    assert chunks.search_text("thing", scope=Scope("t1"), k=0) == []
