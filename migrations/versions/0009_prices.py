"""Prices, and corrections of the ledger."""

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None

# table, event, what the database says
_GUARDS = (
    ("usage_adjustment", "UPDATE", "usage_adjustment is immutable"),
    ("usage_adjustment", "DELETE", "usage_adjustment rows are never deleted"),
    ("price", "DELETE", "price rows are never deleted"),
)


def upgrade() -> None:
    op.create_table(
        "price",
        sa.Column("price_id", sa.Text(), nullable=False),
        sa.Column("model_id", sa.Text(), nullable=False),
        sa.Column("meter", sa.Text(), nullable=False),
        sa.Column("currency", sa.Text(), nullable=False),
        sa.Column("pico_per_token", sa.BigInteger(), nullable=False),
        sa.Column("effective_from", sa.BigInteger(), nullable=False),
        sa.Column("effective_to", sa.BigInteger(), nullable=True),
        sa.Column("source", sa.Text(), server_default=sa.text("''"), nullable=False),
        sa.Column("created_by", sa.Text(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.CheckConstraint("meter IN ('input', 'cached_input', 'output', 'embedding')", name="ck_price_meter"),
        sa.CheckConstraint("effective_to IS NULL OR effective_to > effective_from", name="ck_price_period"),
        sa.CheckConstraint("pico_per_token >= 0", name="ck_price_not_negative"),
        sa.PrimaryKeyConstraint("price_id", name="pk_price"),
    )
    op.create_index(
        "ix_price_model_id_meter_effective_from", "price", ["model_id", "meter", "effective_from"], unique=True
    )
    op.create_table(
        "usage_adjustment",
        sa.Column("adjustment_id", sa.Text(), nullable=False),
        sa.Column("event_id", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
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
        sa.Column("currency", sa.Text(), nullable=False),
        sa.Column("price_ids", sa.Text(), server_default=sa.text("'[]'"), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("created_by", sa.Text(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.CheckConstraint("kind IN ('rerate', 'correction')", name="ck_usage_adjustment_kind"),
        sa.ForeignKeyConstraint(["event_id"], ["usage_event.event_id"], name="fk_usage_adjustment_event_id"),
        sa.PrimaryKeyConstraint("adjustment_id", name="pk_usage_adjustment"),
    )
    op.create_index("ix_usage_adjustment_created_at", "usage_adjustment", ["created_at"])
    op.create_index("ix_usage_adjustment_event_id", "usage_adjustment", ["event_id"])
    _guard()


def downgrade() -> None:
    op.drop_table("usage_adjustment")
    op.drop_table("price")


def _guard() -> None:
    on_sqlite = op.get_bind().dialect.name == "sqlite"
    for table, event, message in _GUARDS:
        name = f"{table}_no_{event.lower()}"
        if on_sqlite:
            body = f"BEGIN SELECT RAISE(ABORT, '{message}'); END"
            op.execute(f"CREATE TRIGGER {name} BEFORE {event} ON {table} {body}")
        else:
            body = f"EXECUTE FUNCTION ledger_refuse('{message}')"
            op.execute(f"CREATE TRIGGER {name} BEFORE {event} ON {table} FOR EACH ROW {body}")
