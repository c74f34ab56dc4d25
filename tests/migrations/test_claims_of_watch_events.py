"""Revision 0044: an event that waits is free after it; down forgets alone which process has taken it."""

import sqlalchemy as sa

from app.db.migration import downgrade, upgrade
from app.db.session import Database
from app.db.tables.watches import watch_event
from app.db.watches import WatchRepository, WatchTerms
from app.types import Principal, Role

EVENT = {
    "id": "event_1", "question": "What is the fee?", "created_at": 5.0, "delivery": "waiting", "attempts": 2,
    "next_attempt_at": 6.0,
}  # fmt: skip


def events(database: Database) -> list[dict[str, object]]:
    with database.read() as connection:
        rows = connection.execute(sa.text("SELECT * FROM watch_event")).mappings()
        return [{name: value for name, value in row.items() if name not in {"before", "after"}} for row in rows]


def test_events_are_kept_in_both_directions_and_claims_are_forgotten(migrated_database: Database) -> None:
    ann, terms = Principal("t1", "ann", "key_a", Role.MEMBER), WatchTerms(question="What is the fee?", on_change=True)
    watch_id = WatchRepository(migrated_database).create(ann, terms).id
    row = {**EVENT, "watch_id": watch_id, "before": {}, "after": {}, "differences": []}
    with migrated_database.write() as connection:
        connection.execute(sa.insert(watch_event).values(**row, claimed_by="boot-1"))

    downgrade(migrated_database, "0043")
    (before,) = events(migrated_database)
    upgrade(migrated_database)
    (after,) = events(migrated_database)

    assert {name: before[name] for name in EVENT} == EVENT
    assert "claimed_by" not in before
    assert after == {**before, "claimed_by": None}
