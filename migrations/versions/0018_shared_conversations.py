"""Conversations that the whole tenant may read, and how their answers were made."""

import sqlalchemy as sa
from alembic import op

revision = "0018"
down_revision = "0017"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("conversation", sa.Column("shared", sa.Boolean(), server_default=sa.false(), nullable=False))
    op.add_column("conversation_turn", sa.Column("making", sa.JSON(none_as_null=True), nullable=True))


def downgrade() -> None:
    op.drop_column("conversation_turn", "making")
    op.drop_column("conversation", "shared")
