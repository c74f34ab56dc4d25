"""The tables of budgets. Times are Unix microseconds; amounts are tokens, or integer pico-units (1e-12) of money."""

import sqlalchemy as sa

from app.db.tables.documents import metadata

# A limit on what a tenant, user, key or collection may spend in each period.
budget = sa.Table(
    "budget",
    metadata,
    sa.Column("budget_id", sa.Text, primary_key=True),
    sa.Column("tenant_id", sa.Text, nullable=False),
    sa.Column("scope_type", sa.Text, nullable=False),
    sa.Column("scope_id", sa.Text, nullable=False),
    sa.Column("unit", sa.Text, nullable=False),
    sa.Column("limit_value", sa.BigInteger, nullable=False),
    sa.Column("period", sa.Text, nullable=False),
    sa.Column("tz", sa.Text, nullable=False, server_default=sa.text("'UTC'")),
    sa.Column("enforcement", sa.Text, nullable=False),
    sa.Column("thresholds", sa.Text, nullable=False, server_default=sa.text("'[]'")),  # percent of the limit, JSON
    sa.Column("webhook_url", sa.Text, nullable=False, server_default=sa.text("''")),
    sa.Column("series", sa.BigInteger, nullable=False, server_default=sa.text("1")),  # a reset begins another
    sa.Column("created_by", sa.Text, nullable=False),
    sa.Column("created_at", sa.BigInteger, nullable=False),
    sa.Column("deleted_at", sa.BigInteger),
    sa.CheckConstraint("scope_type IN ('tenant', 'user', 'key', 'collection')", name="scope_type"),
    sa.CheckConstraint("unit IN ('tokens', 'cost')", name="unit"),
    sa.CheckConstraint("limit_value >= 0", name="limit_value"),
    sa.CheckConstraint("period IN ('minute', 'day', 'month', 'total')", name="period"),
    sa.CheckConstraint("enforcement IN ('hard', 'soft')", name="enforcement"),
    sa.Index(
        "ix_budget_scope",
        "tenant_id",
        "scope_type",
        "scope_id",
        sqlite_where=sa.text("deleted_at IS NULL"),
        postgresql_where=sa.text("deleted_at IS NULL"),
    ),
)

# The use of a budget in one period: `reserved` by running calls, `settled` by ended ones.
budget_window = sa.Table(
    "budget_window",
    metadata,
    sa.Column("budget_id", sa.Text, sa.ForeignKey("budget.budget_id"), primary_key=True),
    sa.Column("series", sa.BigInteger, primary_key=True),
    sa.Column("window_start", sa.BigInteger, primary_key=True),
    sa.Column("window_end", sa.BigInteger),  # NULL: never
    sa.Column("reserved", sa.BigInteger, nullable=False, server_default=sa.text("0")),
    sa.Column("settled", sa.BigInteger, nullable=False, server_default=sa.text("0")),
    sa.CheckConstraint("reserved >= 0", name="reserved"),
    sa.CheckConstraint("settled >= 0", name="settled"),
)

# The amount a call reserves in a window until it is settled.
budget_hold = sa.Table(
    "budget_hold",
    metadata,
    sa.Column("event_id", sa.Text, primary_key=True),
    sa.Column("budget_id", sa.Text, primary_key=True),
    sa.Column("series", sa.BigInteger, nullable=False),
    sa.Column("window_start", sa.BigInteger, nullable=False),
    sa.Column("reserved", sa.BigInteger, nullable=False),
    sa.Column("settled", sa.BigInteger),  # NULL while the call runs
    sa.ForeignKeyConstraint(
        ["budget_id", "series", "window_start"],
        ["budget_window.budget_id", "budget_window.series", "budget_window.window_start"],
    ),
    sa.Index(None, "budget_id", "series", "window_start"),
)

# Passed thresholds, each once per window: logged, and sent to the budget's webhook, if it has one.
budget_alert = sa.Table(
    "budget_alert",
    metadata,
    sa.Column("budget_id", sa.Text, sa.ForeignKey("budget.budget_id"), primary_key=True),
    sa.Column("series", sa.BigInteger, primary_key=True),
    sa.Column("window_start", sa.BigInteger, primary_key=True),
    sa.Column("percent", sa.BigInteger, primary_key=True),
    sa.Column("reason", sa.Text, nullable=False),
    sa.Column("used", sa.BigInteger, nullable=False),
    sa.Column("limit_value", sa.BigInteger, nullable=False),
    sa.Column("fired_at", sa.BigInteger, nullable=False, index=True),
    sa.Column("delivery", sa.Text, nullable=False, server_default=sa.text("'waiting'")),
    sa.Column("attempts", sa.BigInteger, nullable=False, server_default=sa.text("0")),
    sa.Column("next_attempt_at", sa.BigInteger, nullable=False),
    sa.Column("delivered_at", sa.BigInteger),
    sa.Column("claimed_by", sa.Text),  # the process, of several, that delivers it
    sa.CheckConstraint("reason IN ('spent', 'refused')", name="reason"),
    sa.CheckConstraint("delivery IN ('waiting', 'delivered', 'failed', 'logged')", name="delivery"),
    sa.Index(
        "ix_budget_alert_waiting",
        "next_attempt_at",
        sqlite_where=sa.text("delivery = 'waiting'"),
        postgresql_where=sa.text("delivery = 'waiting'"),
    ),
)
