"""OpenAI's files that are in no collection yet, and batches of files."""

import sqlalchemy as sa
from alembic import op

revision = "0017"
down_revision = "0016"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "unattached_file",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("tenant_id", sa.Text(), nullable=False),
        sa.Column("key_id", sa.Text(), nullable=False),
        sa.Column("filename", sa.Text(), nullable=False),
        sa.Column("bytes", sa.BigInteger(), nullable=False),
        sa.Column("sha256", sa.Text(), nullable=False),
        sa.Column("purpose", sa.Text(), nullable=False),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.ForeignKeyConstraint(["tenant_id"], ["tenant.id"], name="fk_unattached_file_tenant_id"),
        sa.PrimaryKeyConstraint("id", name="pk_unattached_file"),
    )
    op.create_index("ix_unattached_file_tenant_id_id", "unattached_file", ["tenant_id", "id"])
    op.create_table(
        "file_batch",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("collection_id", sa.Text(), nullable=False),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.Column("cancelled_at", sa.Double(), nullable=True),
        sa.Column("file_ids", sa.JSON(none_as_null=True), nullable=False),
        sa.ForeignKeyConstraint(
            ["collection_id"], ["collection.id"], name="fk_file_batch_collection_id", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name="pk_file_batch"),
    )
    op.create_index("ix_file_batch_collection_id", "file_batch", ["collection_id"])


def downgrade() -> None:
    op.drop_index("ix_file_batch_collection_id", "file_batch")
    op.drop_table("file_batch")
    op.drop_index("ix_unattached_file_tenant_id_id", "unattached_file")
    op.drop_table("unattached_file")
