"""Conversations and their turns."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    queryable = sa.JSON(none_as_null=True).with_variant(JSONB(none_as_null=True), "postgresql")
    op.create_table(
        "conversation",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("tenant_id", sa.Text(), nullable=False),
        sa.Column("user_id", sa.Text(), nullable=False),
        sa.Column("key_id", sa.Text(), nullable=True),
        sa.Column("title", sa.Text(), nullable=True),
        sa.Column("metadata", queryable, nullable=False),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.Column("updated_at", sa.Double(), nullable=False),
        sa.ForeignKeyConstraint(
            ["tenant_id", "user_id"], ["app_user.tenant_id", "app_user.id"], name="fk_conversation_tenant_id"
        ),
        sa.PrimaryKeyConstraint("id", name="pk_conversation"),
    )
    op.create_index("ix_conversation_tenant_id_created_at_id", "conversation", ["tenant_id", "created_at", "id"])
    op.create_table(
        "conversation_turn",
        sa.Column("conversation_id", sa.Text(), nullable=False),
        sa.Column("ordinal", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("request_id", sa.Text(), nullable=False),
        sa.Column("answered", sa.Boolean(), nullable=False),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.Column("question", sa.Text(), nullable=False),
        sa.Column("standalone", sa.Text(), nullable=True),
        sa.Column("answer", sa.Text(), nullable=False),
        sa.Column("citations", sa.JSON(none_as_null=True), nullable=False),
        sa.ForeignKeyConstraint(["conversation_id"], ["conversation.id"], name="fk_conversation_turn_conversation_id"),
        sa.PrimaryKeyConstraint("conversation_id", "ordinal", name="pk_conversation_turn"),
        sa.UniqueConstraint("request_id", name="uq_conversation_turn_request_id"),
    )


def downgrade() -> None:
    op.drop_table("conversation_turn")
    op.drop_table("conversation")
