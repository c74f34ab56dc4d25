"""Revision 0036: chunks are kept in both directions, and get their words after it."""

import sqlalchemy as sa

from app.db.chunks import ChunkRepository
from app.db.consistency import ConsistencyRepository
from app.db.migration import downgrade, upgrade
from app.db.session import Database
from retrieval.types import Scope
from tests.app.db.samples import Library


def rows(database: Database) -> list[dict[str, object]]:
    with database.read() as connection:
        found = connection.execute(sa.text("SELECT * FROM chunk ORDER BY key")).mappings()
        return [{name: value for name, value in row.items() if name != "search_vector"} for row in found]


def test_chunks_are_kept_and_their_words_are_filled(migrated_database: Database) -> None:
    Library(migrated_database).index("notice of three months", "Ada | 36")
    before = rows(migrated_database)

    downgrade(migrated_database, "0035")
    between = rows(migrated_database)
    upgrade(migrated_database)

    assert before == between == rows(migrated_database)
    assert before[1]["table_header"]
    assert ConsistencyRepository(migrated_database).full_text_rows() == 0
    found = ChunkRepository(migrated_database).search_text("months", scope=Scope("t1"), k=9)
    assert [key for key, _ in found] == [before[0]["key"]]
