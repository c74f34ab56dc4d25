"""An index of answers by user: each person's own count is read while they look at their usage."""

from alembic import op

revision = "0027"
down_revision = "0026"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_index(
        "ix_answer_outcome_tenant_id_user_id_ended_at", "answer_outcome", ["tenant_id", "user_id", "ended_at"]
    )


def downgrade() -> None:
    op.drop_index("ix_answer_outcome_tenant_id_user_id_ended_at", "answer_outcome")
