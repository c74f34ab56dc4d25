"""Revision 0040: a delivery that waits is free after it; down forgets alone which process has taken it."""

import sqlalchemy as sa

from app.db.migration import downgrade, upgrade
from app.db.session import Database
from app.db.tables.budgets import budget, budget_alert
from app.db.tables.ledger import weekly_summary

BUDGET = {
    "budget_id": "b", "tenant_id": "t1", "scope_type": "tenant", "scope_id": "t1", "unit": "tokens", "limit_value": 9,
    "period": "day", "enforcement": "hard", "created_by": "u", "created_at": 0,
}  # fmt: skip
ALERT = {
    "budget_id": "b", "series": 1, "window_start": 0, "percent": 80, "reason": "spent", "used": 8, "limit_value": 9,
    "fired_at": 5, "delivery": "waiting", "attempts": 2, "next_attempt_at": 6, "delivered_at": None,
}  # fmt: skip
SUMMARY = {
    "tenant_id": "t1", "week_start": 7, "channel": "webhook", "delivery": "waiting", "attempts": 3,
    "next_attempt_at": 9, "delivered_at": None,
}  # fmt: skip


def rows(database: Database, name: str) -> list[dict[str, object]]:
    with database.read() as connection:
        return [dict(row) for row in connection.execute(sa.text(f"SELECT * FROM {name}")).mappings()]


def test_deliveries_are_kept_in_both_directions_and_claims_are_forgotten(migrated_database: Database) -> None:
    with migrated_database.write() as connection:
        connection.execute(sa.insert(budget).values(BUDGET))
        connection.execute(sa.insert(budget_alert).values(**ALERT, claimed_by="boot-1"))
        connection.execute(sa.insert(weekly_summary).values(**SUMMARY, claimed_by="boot-1"))

    downgrade(migrated_database, "0039")
    before = rows(migrated_database, "budget_alert"), rows(migrated_database, "weekly_summary")
    upgrade(migrated_database)
    after = rows(migrated_database, "budget_alert"), rows(migrated_database, "weekly_summary")

    assert before == ([ALERT], [SUMMARY])
    assert after == ([{**ALERT, "claimed_by": None}], [{**SUMMARY, "claimed_by": None}])
