"""Budgets, what they hold, and their alerts."""

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "budget",
        sa.Column("budget_id", sa.Text(), nullable=False),
        sa.Column("tenant_id", sa.Text(), nullable=False),
        sa.Column("scope_type", sa.Text(), nullable=False),
        sa.Column("scope_id", sa.Text(), nullable=False),
        sa.Column("unit", sa.Text(), nullable=False),
        sa.Column("limit_value", sa.BigInteger(), nullable=False),
        sa.Column("period", sa.Text(), nullable=False),
        sa.Column("tz", sa.Text(), server_default=sa.text("'UTC'"), nullable=False),
        sa.Column("enforcement", sa.Text(), nullable=False),
        sa.Column("thresholds", sa.Text(), server_default=sa.text("'[]'"), nullable=False),
        sa.Column("webhook_url", sa.Text(), server_default=sa.text("''"), nullable=False),
        sa.Column("series", sa.BigInteger(), server_default=sa.text("1"), nullable=False),
        sa.Column("created_by", sa.Text(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("deleted_at", sa.BigInteger(), nullable=True),
        sa.CheckConstraint("enforcement IN ('hard', 'soft')", name="ck_budget_enforcement"),
        sa.CheckConstraint("period IN ('minute', 'day', 'month', 'total')", name="ck_budget_period"),
        sa.CheckConstraint("scope_type IN ('tenant', 'user', 'key', 'collection')", name="ck_budget_scope_type"),
        sa.CheckConstraint("unit IN ('tokens', 'cost')", name="ck_budget_unit"),
        sa.CheckConstraint("limit_value >= 0", name="ck_budget_limit_value"),
        sa.PrimaryKeyConstraint("budget_id", name="pk_budget"),
    )
    op.create_index(
        "ix_budget_scope",
        "budget",
        ["tenant_id", "scope_type", "scope_id"],
        sqlite_where=sa.text("deleted_at IS NULL"),
        postgresql_where=sa.text("deleted_at IS NULL"),
    )
    op.create_table(
        "budget_window",
        sa.Column("budget_id", sa.Text(), nullable=False),
        sa.Column("series", sa.BigInteger(), nullable=False),
        sa.Column("window_start", sa.BigInteger(), nullable=False),
        sa.Column("window_end", sa.BigInteger(), nullable=True),
        sa.Column("reserved", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("settled", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.CheckConstraint("reserved >= 0", name="ck_budget_window_reserved"),
        sa.CheckConstraint("settled >= 0", name="ck_budget_window_settled"),
        sa.ForeignKeyConstraint(["budget_id"], ["budget.budget_id"], name="fk_budget_window_budget_id"),
        sa.PrimaryKeyConstraint("budget_id", "series", "window_start", name="pk_budget_window"),
    )
    op.create_table(
        "budget_hold",
        sa.Column("event_id", sa.Text(), nullable=False),
        sa.Column("budget_id", sa.Text(), nullable=False),
        sa.Column("series", sa.BigInteger(), nullable=False),
        sa.Column("window_start", sa.BigInteger(), nullable=False),
        sa.Column("reserved", sa.BigInteger(), nullable=False),
        sa.Column("settled", sa.BigInteger(), nullable=True),
        sa.ForeignKeyConstraint(
            ["budget_id", "series", "window_start"],
            ["budget_window.budget_id", "budget_window.series", "budget_window.window_start"],
            name="fk_budget_hold_budget_id",
        ),
        sa.PrimaryKeyConstraint("event_id", "budget_id", name="pk_budget_hold"),
    )
    op.create_index(
        "ix_budget_hold_budget_id_series_window_start", "budget_hold", ["budget_id", "series", "window_start"]
    )
    op.create_table(
        "budget_alert",
        sa.Column("budget_id", sa.Text(), nullable=False),
        sa.Column("series", sa.BigInteger(), nullable=False),
        sa.Column("window_start", sa.BigInteger(), nullable=False),
        sa.Column("percent", sa.BigInteger(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("used", sa.BigInteger(), nullable=False),
        sa.Column("limit_value", sa.BigInteger(), nullable=False),
        sa.Column("fired_at", sa.BigInteger(), nullable=False),
        sa.Column("delivery", sa.Text(), server_default=sa.text("'waiting'"), nullable=False),
        sa.Column("attempts", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("next_attempt_at", sa.BigInteger(), nullable=False),
        sa.Column("delivered_at", sa.BigInteger(), nullable=True),
        sa.CheckConstraint("reason IN ('spent', 'refused')", name="ck_budget_alert_reason"),
        sa.CheckConstraint("delivery IN ('waiting', 'delivered', 'failed', 'logged')", name="ck_budget_alert_delivery"),
        sa.ForeignKeyConstraint(["budget_id"], ["budget.budget_id"], name="fk_budget_alert_budget_id"),
        sa.PrimaryKeyConstraint("budget_id", "series", "window_start", "percent", name="pk_budget_alert"),
    )
    op.create_index("ix_budget_alert_fired_at", "budget_alert", ["fired_at"])
    op.create_index(
        "ix_budget_alert_waiting",
        "budget_alert",
        ["next_attempt_at"],
        sqlite_where=sa.text("delivery = 'waiting'"),
        postgresql_where=sa.text("delivery = 'waiting'"),
    )


def downgrade() -> None:
    op.drop_table("budget_alert")
    op.drop_table("budget_hold")
    op.drop_table("budget_window")
    op.drop_table("budget")
