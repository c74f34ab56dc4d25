"""Processes that share a database hand the password of a protected file to the one that reads it, sealed."""

import sqlalchemy as sa
from alembic import op

revision = "0043"
down_revision = "0042"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "job_secret",
        sa.Column("job_id", sa.Text(), nullable=False),
        sa.Column("sealed", sa.LargeBinary(), nullable=False),
        sa.Column("kept_at", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("job_id", name="pk_job_secret"),
    )


def downgrade() -> None:
    op.drop_table("job_secret")
