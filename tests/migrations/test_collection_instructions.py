"""Revision 0042: collections keep all else in both directions; down forgets their instructions."""

import sqlalchemy as sa

from app.db.collections import CollectionRepository
from app.db.migration import downgrade, upgrade
from app.db.session import Database


def test_collections_are_kept_in_both_directions(migrated_database: Database) -> None:
    collections = CollectionRepository(migrated_database)
    made = collections.create("t1", "contracts", metadata={"year": 2024}, instructions="Answer in two sentences.")
    assert collections.get(made.id, tenant_id="t1").instructions == "Answer in two sentences."

    downgrade(migrated_database, "0041")
    with migrated_database.read() as connection:
        assert connection.execute(sa.text("SELECT name FROM collection")).scalars().all() == ["contracts"]
    upgrade(migrated_database)

    kept = collections.get(made.id, tenant_id="t1")
    assert (kept.name, kept.metadata, kept.instructions) == ("contracts", {"year": 2024}, "")
