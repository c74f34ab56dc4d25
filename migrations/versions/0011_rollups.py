"""Sums of the ledger, and the engine's counters."""

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None

# What counted before there were sums. Days and months are built at the start, in the reporting zone.
_FILL = """
INSERT INTO usage_rollup_15m (
  tenant_id, bucket_start, project_id, user_id, api_key_id, model_id, operation, status, num_calls, num_unpriced,
  tok_system, tok_history, tok_context, tok_question, tok_template,
  input_tokens, input_cached_tokens, output_tokens, output_delivered_tokens, cost_high, cost_low
)
SELECT
  e.tenant_id, {at} - {at} % 900000000, e.project_id, e.user_id, e.api_key_id, e.model_id, e.operation, {status},
  {calls}, {unpriced},
  sum({line}.tok_system), sum({line}.tok_history), sum({line}.tok_context), sum({line}.tok_question),
  sum({line}.tok_template), sum({line}.input_tokens), sum({line}.input_cached_tokens), sum({line}.output_tokens),
  sum({line}.output_delivered_tokens),
  coalesce(sum({line}.cost_pico / 1000000000), 0), coalesce(sum({line}.cost_pico % 1000000000), 0)
FROM {rows}
WHERE e.settled_at IS NOT NULL
GROUP BY 1, 2, 3, 4, 5, 6, 7, 8
"""
_CALLS = {
    "at": "e.settled_at",
    "status": "e.status",
    "calls": "count(*)",
    "unpriced": "count(*) - count(e.cost_pico)",
    "line": "e",
    "rows": "usage_event e",
}
_ADJUSTMENTS = {
    "at": "a.created_at",
    "status": "'adjustment'",
    "calls": "0",
    "unpriced": "0",
    "line": "a",
    "rows": "usage_adjustment a JOIN usage_event e ON e.event_id = a.event_id",
}


def upgrade() -> None:
    op.create_table(
        "usage_rollup_15m",
        sa.Column("tenant_id", sa.Text(), nullable=False),
        sa.Column("bucket_start", sa.BigInteger(), nullable=False),
        sa.Column("project_id", sa.Text(), nullable=False),
        sa.Column("user_id", sa.Text(), nullable=False),
        sa.Column("api_key_id", sa.Text(), nullable=False),
        sa.Column("model_id", sa.Text(), nullable=False),
        sa.Column("operation", sa.Text(), nullable=False),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("num_calls", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("num_unpriced", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("tok_system", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("tok_history", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("tok_context", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("tok_question", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("tok_template", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("input_tokens", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("input_cached_tokens", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("output_tokens", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("output_delivered_tokens", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("cost_high", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("cost_low", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.PrimaryKeyConstraint(
            "tenant_id",
            "bucket_start",
            "project_id",
            "user_id",
            "api_key_id",
            "model_id",
            "operation",
            "status",
            name="pk_usage_rollup_15m",
        ),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "usage_rollup_day",
        sa.Column("tz", sa.Text(), nullable=False),
        sa.Column("tenant_id", sa.Text(), nullable=False),
        sa.Column("bucket_start", sa.BigInteger(), nullable=False),
        sa.Column("project_id", sa.Text(), nullable=False),
        sa.Column("user_id", sa.Text(), nullable=False),
        sa.Column("api_key_id", sa.Text(), nullable=False),
        sa.Column("model_id", sa.Text(), nullable=False),
        sa.Column("operation", sa.Text(), nullable=False),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("num_calls", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("num_unpriced", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("tok_system", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("tok_history", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("tok_context", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("tok_question", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("tok_template", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("input_tokens", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("input_cached_tokens", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("output_tokens", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("output_delivered_tokens", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("cost_high", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("cost_low", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.PrimaryKeyConstraint(
            "tz",
            "tenant_id",
            "bucket_start",
            "project_id",
            "user_id",
            "api_key_id",
            "model_id",
            "operation",
            "status",
            name="pk_usage_rollup_day",
        ),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "usage_rollup_month",
        sa.Column("tz", sa.Text(), nullable=False),
        sa.Column("tenant_id", sa.Text(), nullable=False),
        sa.Column("bucket_start", sa.BigInteger(), nullable=False),
        sa.Column("project_id", sa.Text(), nullable=False),
        sa.Column("user_id", sa.Text(), nullable=False),
        sa.Column("api_key_id", sa.Text(), nullable=False),
        sa.Column("model_id", sa.Text(), nullable=False),
        sa.Column("operation", sa.Text(), nullable=False),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("num_calls", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("num_unpriced", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("tok_system", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("tok_history", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("tok_context", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("tok_question", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("tok_template", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("input_tokens", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("input_cached_tokens", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("output_tokens", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("output_delivered_tokens", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("cost_high", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("cost_low", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.PrimaryKeyConstraint(
            "tz",
            "tenant_id",
            "bucket_start",
            "project_id",
            "user_id",
            "api_key_id",
            "model_id",
            "operation",
            "status",
            name="pk_usage_rollup_month",
        ),
        sqlite_with_rowid=False,
    )
    op.create_index("ix_usage_rollup_month_user", "usage_rollup_month", ["tz", "tenant_id", "user_id", "bucket_start"])
    op.create_table(
        "usage_rollup_zone",
        sa.Column("tz", sa.Text(), nullable=False),
        sa.Column("built_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("tz", name="pk_usage_rollup_zone"),
    )
    op.create_table(
        "engine_counter",
        sa.Column("boot_id", sa.Text(), nullable=False),
        sa.Column("model_id", sa.Text(), nullable=False),
        sa.Column("prefill_tokens", sa.BigInteger(), nullable=False),
        sa.Column("cached_tokens", sa.BigInteger(), nullable=False),
        sa.Column("decode_tokens", sa.BigInteger(), nullable=False),
        sa.Column("requests", sa.BigInteger(), nullable=False),
        sa.Column("started_at", sa.BigInteger(), nullable=False),
        sa.Column("updated_at", sa.BigInteger(), nullable=False),
        sa.Column("closed", sa.Boolean(), nullable=False),
        sa.PrimaryKeyConstraint("boot_id", "model_id", name="pk_engine_counter"),
    )
    op.execute(_FILL.format(**_CALLS))
    op.execute(_FILL.format(**_ADJUSTMENTS))


def downgrade() -> None:
    op.drop_table("engine_counter")
    op.drop_table("usage_rollup_zone")
    op.drop_table("usage_rollup_month")
    op.drop_table("usage_rollup_day")
    op.drop_table("usage_rollup_15m")
