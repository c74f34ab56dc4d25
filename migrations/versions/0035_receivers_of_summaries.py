"""A weekly summary has a delivery for each receiver: those so far went to the webhook."""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op

revision = "0035"
down_revision = "0033"
branch_labels = None
depends_on = None

_WEBHOOK = "webhook"
_KEY = ("tenant_id", "week_start")


def upgrade() -> None:
    kept = [{**row, "channel": _WEBHOOK} for row in _rows()]
    _made_anew((sa.Column("channel", sa.Text(), nullable=False),), (*_KEY, "channel"), kept)


def downgrade() -> None:
    kept = [
        {name: value for name, value in row.items() if name != "channel"}
        for row in _rows()
        if row["channel"] == _WEBHOOK
    ]
    _made_anew((), _KEY, kept)


def _rows() -> list[dict[str, object]]:
    """All rows: one for each week and receiver."""
    return [dict(row) for row in op.get_bind().execute(sa.text("SELECT * FROM weekly_summary")).mappings()]


def _made_anew(more: Sequence["sa.Column[str]"], key: Sequence[str], rows: list[dict[str, object]]) -> None:
    """Make the table again with these rows: SQLite cannot change a primary key."""
    op.drop_table("weekly_summary")
    table = op.create_table(
        "weekly_summary",
        sa.Column("tenant_id", sa.Text(), nullable=False),
        sa.Column("week_start", sa.BigInteger(), nullable=False),
        *more,
        sa.Column("delivery", sa.Text(), server_default=sa.text("'waiting'"), nullable=False),
        sa.Column("attempts", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("next_attempt_at", sa.BigInteger(), nullable=False),
        sa.Column("delivered_at", sa.BigInteger(), nullable=True),
        sa.CheckConstraint("delivery IN ('waiting', 'delivered', 'failed')", name="ck_weekly_summary_delivery"),
        sa.PrimaryKeyConstraint(*key, name="pk_weekly_summary"),
    )
    op.bulk_insert(table, rows)
