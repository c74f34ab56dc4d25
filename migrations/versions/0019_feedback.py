"""What people say of answers."""

import sqlalchemy as sa
from alembic import op

revision = "0019"
down_revision = "0018"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "feedback",
        sa.Column("request_id", sa.Text(), nullable=False),
        sa.Column("user_id", sa.Text(), nullable=False),
        sa.Column("tenant_id", sa.Text(), nullable=False),
        sa.Column("score", sa.Double(), nullable=False),
        sa.Column("comment", sa.Text(), nullable=True),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.Column("updated_at", sa.Double(), nullable=False),
        sa.CheckConstraint("score BETWEEN -1 AND 1", name="ck_feedback_score"),
        sa.ForeignKeyConstraint(
            ["tenant_id", "user_id"], ["app_user.tenant_id", "app_user.id"], name="fk_feedback_tenant_id"
        ),
        sa.PrimaryKeyConstraint("request_id", "user_id", name="pk_feedback"),
    )
    op.create_index(
        "ix_feedback_tenant_id_created_at_request_id_user_id",
        "feedback",
        ["tenant_id", "created_at", "request_id", "user_id"],
    )


def downgrade() -> None:
    op.drop_table("feedback")
