"""The database's own keyword index: what is not in the contract of all of them."""

from app.db.chunks import ChunkRepository
from app.db.lexical import search_text
from app.db.session import Database
from retrieval.types import Scope
from tests.app.db.samples import Library


def test_fts5_looks_beyond_its_best_when_scope_takes_them_away(sqlite_database: Database) -> None:
    library = Library(sqlite_database)
    library.index(*("shared shared" for _ in range(300)))
    kept = library.index("shared and many other words of no account", "shared but longer, and longer still, and so on")
    scope = Scope("t1", document_ids=(kept.id,))

    with sqlite_database.read() as connection:
        found = search_text(connection, "shared", scope=scope, k=2)

    assert sorted(key for key, _ in found) == ChunkRepository(sqlite_database).keys_in(scope).tolist()


def test_fts5_ranks_the_same_whether_the_first_look_is_enough_or_not(sqlite_database: Database) -> None:
    library = Library(sqlite_database)
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
