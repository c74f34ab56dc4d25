"""Collections whose documents are all read again."""

import sqlalchemy as sa
from alembic import op

revision = "0013"
down_revision = "0012"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "reindexing",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("tenant_id", sa.Text(), nullable=False),
        sa.Column("collection_id", sa.Text(), nullable=False),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_reindexing"),
    )
    op.add_column("job", sa.Column("reindex_id", sa.Text(), nullable=True))
    op.create_index("ix_job_reindex_id", "job", ["reindex_id"])


def downgrade() -> None:
    op.drop_index("ix_job_reindex_id", "job")
    op.drop_column("job", "reindex_id")
    op.drop_table("reindexing")
