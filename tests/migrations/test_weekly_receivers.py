"""Revision 0035: what was delivered to the webhook stays so; down forgets mails alone."""

import sqlalchemy as sa

from app.db.migration import downgrade, upgrade
from app.db.session import Database
from app.db.tables.ledger import weekly_summary


def test_deliveries_to_the_webhook_are_kept_in_both_directions(migrated_database: Database) -> None:
    delivered = {
        "tenant_id": "t1", "week_start": 7, "delivery": "delivered", "attempts": 3, "next_attempt_at": 9,
        "delivered_at": 9,
    }  # fmt: skip
    mailed = {**delivered, "channel": "mail:ada@example.org", "delivery": "waiting", "delivered_at": None}
    with migrated_database.write() as connection:
        connection.execute(sa.insert(weekly_summary), [{**delivered, "channel": "webhook"}, mailed])

    downgrade(migrated_database, "0033")
    with migrated_database.read() as connection:
        before = [dict(row) for row in connection.execute(sa.text("SELECT * FROM weekly_summary")).mappings()]
    upgrade(migrated_database)
    with migrated_database.read() as connection:
        after = [dict(row) for row in connection.execute(sa.select(weekly_summary)).mappings()]

    assert before == [delivered]
    assert after == [{**delivered, "channel": "webhook", "claimed_by": None}]
