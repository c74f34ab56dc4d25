"""Revision 0020: chunks from before have no table header and lose nothing else."""

import sqlalchemy as sa

from app.db.chunks import ChunkRepository
from app.db.migration import downgrade, upgrade
from app.db.session import Database
from app.db.tables.documents import chunk
from retrieval.types import Scope
from tests.app.db.samples import Library
from tests.migrations.originals import name_as_before


def test_chunks_from_before_have_an_empty_table_header(migrated_database: Database) -> None:
    library = Library(migrated_database)
    library.index("first row", "second row")
    with migrated_database.write() as connection:
        connection.execute(sa.update(chunk).values(table_header="name | age"))

    name_as_before(migrated_database)
    downgrade(migrated_database, "0019")
    upgrade(migrated_database)

    chunks = ChunkRepository(migrated_database)
    keys = chunks.visible_keys().tolist()
    found = chunks.chunks(keys, scope=Scope(tenant_id="t1")).values()
    assert sorted((each.text, each.table_header) for each in found) == [("first row", ""), ("second row", "")]
