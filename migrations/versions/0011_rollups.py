"""Sums of the ledger, and the engine's counters."""

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None

# What was settled before there were sums. Days are built at the start, in the reporting zone.
_FILL = """
INSERT INTO usage_rollup_15m (
  tenant_id, bucket_start, project_id, user_id, api_key_id, model_id, operation, status, num_calls, num_unpriced,
  tok_system, tok_history, tok_context, tok_question, tok_template,
  input_tokens, input_cached_tokens, output_tokens, output_delivered_tokens, cost_pico
)
SELECT
  tenant_id, settled_at - settled_at % 900000000, project_id, user_id, api_key_id, model_id, operation, status,
  count(*), count(*) - count(cost_pico),
  sum(tok_system), sum(tok_history), sum(tok_context), sum(tok_question), sum(tok_template),
  sum(input_tokens), sum(input_cached_tokens), sum(output_tokens), sum(output_delivered_tokens),
  coalesce(sum(cost_pico), 0)
FROM usage_event
WHERE settled_at IS NOT NULL
GROUP BY 1, 2, 3, 4, 5, 6, 7, 8
"""


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
        sa.Column("cost_pico", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
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
        sa.Column("cost_pico", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
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
    op.execute(_FILL)


def downgrade() -> None:
    op.drop_table("engine_counter")
    op.drop_table("usage_rollup_zone")
    op.drop_table("usage_rollup_day")
    op.drop_table("usage_rollup_15m")
