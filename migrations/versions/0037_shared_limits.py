"""Processes that share a database count requests, tokens and requests that run in it, and cancel answers elsewhere."""

import sqlalchemy as sa
from alembic import op

revision = "0037"
down_revision = "0036"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "rate_grain",
        sa.Column("counter", sa.Text(), nullable=False),
        sa.Column("grain", sa.BigInteger(), nullable=False),
        sa.Column("amount", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("counter", "grain", name="pk_rate_grain"),
    )
    op.create_index("ix_rate_grain_grain", "rate_grain", ["grain"])
    op.create_table(
        "rate_seat",
        sa.Column("seat_id", sa.Text(), nullable=False),
        sa.Column("counter", sa.Text(), nullable=False),
        sa.Column("boot_id", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("seat_id", "counter", name="pk_rate_seat"),
    )
    op.create_index("ix_rate_seat_counter", "rate_seat", ["counter"])
    op.create_table(
        "cancel_request",
        sa.Column("request_id", sa.Text(), nullable=False),
        sa.Column("boot_id", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("request_id", name="pk_cancel_request"),
    )
    op.create_index("ix_cancel_request_boot_id", "cancel_request", ["boot_id"])
    if op.get_bind().dialect.name == "postgresql":
        for table in ("rate_grain", "rate_seat"):
            op.execute(f"ALTER TABLE {table} SET UNLOGGED")


def downgrade() -> None:
    op.drop_table("cancel_request")
    op.drop_table("rate_seat")
    op.drop_table("rate_grain")
