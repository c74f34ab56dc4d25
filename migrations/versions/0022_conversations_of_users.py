"""An index of conversations by user, to count them whenever one is created."""

from alembic import op

revision = "0022"
down_revision = "0021"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_index("ix_conversation_tenant_id_user_id", "conversation", ["tenant_id", "user_id"])


def downgrade() -> None:
    op.drop_index("ix_conversation_tenant_id_user_id", "conversation")
