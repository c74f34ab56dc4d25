"""The database's own keyword index: behaviour beyond the contract of all keyword indexes."""

from collections import Counter

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from app.db.chunks import ChunkRepository
from app.db.lexical import search_text
from app.db.session import Database
from retrieval.types import Scope
from tests.app.db.samples import Library
from tests.bm25 import bm25, sqlite


@pytest.mark.parametrize("strangers", [0, 1])
def test_fts5_looks_beyond_its_best_when_scope_takes_them_away(sqlite_database: Database, strangers: int) -> None:
    library = Library(sqlite_database)
    Library(sqlite_database, tenant_id="t2").index(*("of no account",) * strangers)
    library.index(*("shared shared" for _ in range(300)))
    kept = library.index("shared and many other words of no account", "shared but longer, and longer still, and so on")
    scope = Scope("t1", document_ids=(kept.id,))

    with sqlite_database.read() as connection:
        found = search_text(connection, "shared", scope=scope, k=2)

    assert sorted(key for key, _ in found) == ChunkRepository(sqlite_database).keys_in(scope).tolist()


@pytest.mark.parametrize("strangers", [0, 1])
def test_fts5_ranks_the_same_whether_the_first_look_is_enough_or_not(sqlite_database: Database, strangers: int) -> None:
    library = Library(sqlite_database)
    Library(sqlite_database, tenant_id="t2").index(*("a word that is shared",) * strangers)
    library.index(*(f"shared {'word ' * (place % 7)} {place}" for place in range(160)))

    with sqlite_database.read() as connection:
        few, all_of_them = (search_text(connection, "shared word", scope=Scope("t1"), k=k) for k in (20, 160))

    assert few == all_of_them[:20]
    assert len(all_of_them) == 160


def test_a_heading_counts_more_than_a_word_of_the_text(sqlite_database: Database) -> None:
    library = Library(sqlite_database)
    library.index("part of a text that is quite short", "quite another short text, without the word")

    with sqlite_database.read() as connection:
        by_key = dict(search_text(connection, "part", scope=Scope("t1"), k=9))

    assert min(by_key.values()) > max(by_key.values()) / 2, "the heading, which both have, makes most of the score"


WORDS = ("apple", "pear", "plum", "fig", "part")
texts = st.lists(st.lists(st.sampled_from(WORDS), min_size=1, max_size=12).map(" ".join), min_size=1, max_size=6)


@settings(deadline=None, max_examples=12, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(mine=texts, others=texts, query=st.lists(st.sampled_from(WORDS), min_size=1, max_size=4, unique=True))
def test_scores_are_bm25_with_the_rarity_in_the_scope(
    sqlite_database: Database, mine: list[str], others: list[str], query: list[str]
) -> None:
    libraries = {tenant: Library(sqlite_database, tenant_id=tenant) for tenant in ("t1", "t2")}
    chunks = ChunkRepository(sqlite_database)
    before = chunks.visible_keys().tolist()
    documents = {tenant: libraries[tenant].index(*held) for tenant, held in (("t1", mine), ("t2", others))}
    keys = [key for key in chunks.visible_keys().tolist() if key not in before]
    counts = {
        key: Counter(text.split()) + Counter({"part": 4}) for key, text in zip(keys, [*mine, *others], strict=True)
    }
    lengths = {key: len(text.split()) + 1 for key, text in zip(keys, [*mine, *others], strict=True)}
    scope = keys[: len(mine)]

    with sqlite_database.read() as connection:
        read = search_text(connection, " ".join(query), scope=Scope("t1"), k=99)
        known = search_text(connection, " ".join(query), scope=Scope("t1"), k=99, keys=chunks.keys_in(Scope("t1")))
    for tenant, document in documents.items():
        libraries[tenant].documents.delete(document.id, tenant_id=tenant)

    assert dict(read) == pytest.approx(bm25(counts, lengths, query, scope=scope, weigh=sqlite), rel=1e-6)
    assert read == known == sorted(read, key=lambda hit: (-hit[1], hit[0]))


def test_a_tenant_alone_gets_the_scores_that_fts5_gives(sqlite_database: Database) -> None:
    library = Library(sqlite_database)
    library.index("fig and plum", "fig", "plum plum pear")
    with sqlite_database.read() as connection:
        found = search_text(connection, "fig plum", scope=Scope("t1"), k=9)
        ranked = connection.exec_driver_sql(
            "SELECT rowid, -bm25(chunk_fts, 1.0, 4.0) FROM chunk_fts WHERE chunk_fts MATCH ? ORDER BY 2 DESC",
            ('"fig" OR "plum"',),
        ).all()

    assert found == [tuple(row) for row in ranked]


def test_documents_and_filter_choose_and_leave_the_scores(sqlite_database: Database) -> None:
    library = Library(sqlite_database)
    library.index("fig fig fig", "plum")
    chosen = library.index("fig and plum", "fig and a pear")
    Library(sqlite_database, tenant_id="t2").index("fig and fig", "plum, fig")

    with sqlite_database.read() as connection:
        everything = dict(search_text(connection, "fig plum", scope=Scope("t1"), k=9))
        few = search_text(connection, "fig plum", scope=Scope("t1", document_ids=(chosen.id,)), k=9)

    assert len(few) == 2
    assert few == [(key, everything[key]) for key, _ in few]


def test_parts_of_words_are_ranked_in_scope_too(sqlite_database: Database) -> None:
    library = Library(sqlite_database)
    library.index("getUserById", "setUserByName userBy", "nothing of the kind")
    with sqlite_database.read() as connection:
        alone = search_text(connection, "serBy", scope=Scope("t1"), k=9)
    Library(sqlite_database, tenant_id="t2").index("getUserById", "getUserById", "getUserById")
    with sqlite_database.read() as connection:
        beside = search_text(connection, "serBy", scope=Scope("t1"), k=9)

    assert [key for key, _ in alone] == [key for key, _ in beside]
    assert len(alone) == 2
