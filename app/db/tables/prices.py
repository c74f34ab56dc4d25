"""The tables of prices and of corrections to the ledger. Times are Unix microseconds, money integer pico-units (1e-12).

Triggers (in the migrations) allow only ending a price, prevent two prices of one model and meter from
overlapping, and forbid changing or deleting an adjustment.
"""

import sqlalchemy as sa

from app.db.tables.documents import metadata
from app.db.tables.usage_columns import Measures

# The price of a token while `effective_from <= time < effective_to` (NULL: until a later price begins).
price = sa.Table(
    "price",
    metadata,
    sa.Column("price_id", sa.Text, primary_key=True),
    sa.Column("model_id", sa.Text, nullable=False),
    sa.Column("meter", sa.Text, nullable=False),
    sa.Column("currency", sa.Text, nullable=False),
    sa.Column("pico_per_token", sa.BigInteger, nullable=False),
    sa.Column("effective_from", sa.BigInteger, nullable=False),
    sa.Column("effective_to", sa.BigInteger),
    sa.Column("source", sa.Text, nullable=False, server_default=sa.text("''")),
    sa.Column("created_by", sa.Text, nullable=False),
    sa.Column("created_at", sa.BigInteger, nullable=False),
    sa.CheckConstraint("meter IN ('input', 'cached_input', 'output', 'embedding')", name="meter"),
    sa.CheckConstraint("pico_per_token >= 0", name="not_negative"),
    sa.CheckConstraint("effective_to IS NULL OR effective_to > effective_from", name="period"),
    sa.Index(None, "model_id", "meter", "effective_from", unique=True),
)

# Corrections of settled rows, to be added to their numbers.
usage_adjustment = sa.Table(
    "usage_adjustment",
    metadata,
    sa.Column("adjustment_id", sa.Text, primary_key=True),
    sa.Column("event_id", sa.Text, sa.ForeignKey("usage_event.event_id"), nullable=False, index=True),
    sa.Column("kind", sa.Text, nullable=False),
    *(
        sa.Column(name, sa.BigInteger, nullable=False, server_default=sa.text("0"))
        for name in (*Measures._fields, "cost_pico")
    ),
    sa.Column("currency", sa.Text, nullable=False),
    sa.Column("price_ids", sa.Text, nullable=False, server_default=sa.text("'[]'")),
    sa.Column("reason", sa.Text, nullable=False),
    sa.Column("created_by", sa.Text, nullable=False),
    sa.Column("created_at", sa.BigInteger, nullable=False),
    sa.Index(None, "created_at", "adjustment_id"),
    sa.CheckConstraint("kind IN ('rerate', 'correction')", name="kind"),
)
