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
_ENDED = "a price can only be ended, once"
_NOT_AN_END = (
    "OLD.effective_to IS NOT NULL OR NEW.effective_to IS NULL OR NEW.price_id <> OLD.price_id "
    "OR NEW.model_id <> OLD.model_id OR NEW.meter <> OLD.meter OR NEW.currency <> OLD.currency "
    "OR NEW.pico_per_token <> OLD.pico_per_token OR NEW.effective_from <> OLD.effective_from "
    "OR NEW.source <> OLD.source OR NEW.created_by <> OLD.created_by OR NEW.created_at <> OLD.created_at"
)
_OVERLAP = "prices of one model and meter overlap"
_OVERLAPS = (
    "EXISTS (SELECT 1 FROM price AS other WHERE other.model_id = NEW.model_id AND other.meter = NEW.meter "
    "AND other.effective_from < COALESCE(NEW.effective_to, 9223372036854775807) "
    "AND COALESCE(other.effective_to, 9223372036854775807) > NEW.effective_from)"
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
    op.create_index("ix_usage_adjustment_created_at_adjustment_id", "usage_adjustment", ["created_at", "adjustment_id"])
    op.create_index("ix_usage_adjustment_event_id", "usage_adjustment", ["event_id"])
    _guard()


def downgrade() -> None:
    op.drop_table("usage_adjustment")
    op.drop_table("price")
    if op.get_bind().dialect.name != "sqlite":
        op.execute("DROP FUNCTION price_refuse_overlap()")


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
    if on_sqlite:
        refusal = f"BEGIN SELECT RAISE(ABORT, '{_ENDED}'); END"
        op.execute(f"CREATE TRIGGER price_only_ended BEFORE UPDATE ON price WHEN {_NOT_AN_END} {refusal}")
        refusal = f"BEGIN SELECT RAISE(ABORT, '{_OVERLAP}'); END"
        op.execute(f"CREATE TRIGGER price_no_overlap BEFORE INSERT ON price WHEN {_OVERLAPS} {refusal}")
        return
    refusal = f"EXECUTE FUNCTION ledger_refuse('{_ENDED}')"
    op.execute(f"CREATE TRIGGER price_only_ended BEFORE UPDATE ON price FOR EACH ROW WHEN ({_NOT_AN_END}) {refusal}")
    # One insertion at a time, so that each sees those before it. A table lock would be an upgrade of the lock that
    # every insertion holds already, and two of them would wait for each other.
    op.execute(
        "CREATE FUNCTION price_refuse_overlap() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
        "PERFORM pg_advisory_xact_lock(hashtextextended('price', 0)); "
        f"IF {_OVERLAPS} THEN "
        f"RAISE EXCEPTION '{_OVERLAP}' USING ERRCODE = 'integrity_constraint_violation'; END IF; "
        "RETURN NEW; END $$"
    )
    op.execute(
        "CREATE TRIGGER price_no_overlap BEFORE INSERT ON price FOR EACH ROW EXECUTE FUNCTION price_refuse_overlap()"
    )
