"""Finished blocks of embeddings, by which a job goes on where it stopped; when a job is tried next."""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None

_OLD = "ix_job_status_created_at_id"
_NEW = (
    ("ix_job_status_tenant_id_user_id_next_attempt_at_id", ["status", "tenant_id", "user_id", "next_attempt_at", "id"]),
    ("ix_job_tenant_id_user_id_started_at", ["tenant_id", "user_id", "started_at"]),
    ("ix_job_tenant_id_created_at_id", ["tenant_id", "created_at", "id"]),
)


def upgrade() -> None:
    op.add_column("job", sa.Column("next_attempt_at", sa.Double(), server_default=sa.text("0"), nullable=False))
    op.add_column("job", sa.Column("crashes", sa.Integer(), server_default=sa.text("0"), nullable=False))
    op.execute("UPDATE job SET next_attempt_at = created_at")
    op.drop_index(_OLD, "job")
    for name, columns in _NEW:
        op.create_index(name, "job", columns)
    op.create_index("ix_document_job_id", "document", ["job_id"])
    op.create_table(
        "embedding_checkpoint",
        sa.Column("job_id", sa.Text(), nullable=False),
        sa.Column("first_ordinal", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("passages", sa.Integer(), nullable=False),
        sa.Column("generation", sa.Integer(), nullable=False),
        sa.Column("digest", sa.Text(), nullable=False),
        sa.Column("event_id", sa.Text(), nullable=False),
        sa.Column("tokens", sa.BigInteger(), nullable=False),
        sa.Column("vectors", sa.LargeBinary(), nullable=False),
        sa.ForeignKeyConstraint(["job_id"], ["job.id"], name="fk_embedding_checkpoint_job_id"),
        sa.PrimaryKeyConstraint("job_id", "first_ordinal", name="pk_embedding_checkpoint"),
    )


def downgrade() -> None:
    op.drop_table("embedding_checkpoint")
    op.drop_index("ix_document_job_id", "document")
    for name, _ in _NEW:
        op.drop_index(name, "job")
    op.create_index(_OLD, "job", ["status", "created_at", "id"])
    op.drop_column("job", "crashes")
    op.drop_column("job", "next_attempt_at")
