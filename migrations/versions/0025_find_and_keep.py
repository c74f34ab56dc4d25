"""Pinned conversations and folders, and the questions that are being answered."""

import sqlalchemy as sa
from alembic import op

revision = "0025"
down_revision = "0024"
branch_labels = None
depends_on = None

_LISTED = "ix_conversation_tenant_id_pinned_created_at_id"
_LISTED_BEFORE = "ix_conversation_tenant_id_created_at_id"


def upgrade() -> None:
    op.add_column("conversation", sa.Column("pinned", sa.Boolean(), server_default=sa.false(), nullable=False))
    op.add_column("conversation", sa.Column("folder", sa.Text(), nullable=True))
    op.drop_index(_LISTED_BEFORE, "conversation")
    op.create_index(_LISTED, "conversation", ["tenant_id", "pinned", "created_at", "id"])
    op.create_table(
        "asked_question",
        sa.Column("request_id", sa.Text(), nullable=False),
        sa.Column("conversation_id", sa.Text(), nullable=False),
        sa.Column("boot_id", sa.Text(), nullable=False),
        sa.Column("question", sa.Text(), nullable=False),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.ForeignKeyConstraint(
            ["conversation_id"], ["conversation.id"], name="fk_asked_question_conversation_id_conversation"
        ),
        sa.PrimaryKeyConstraint("request_id", name="pk_asked_question"),
    )
    op.create_index("ix_asked_question_conversation_id", "asked_question", ["conversation_id"])


def downgrade() -> None:
    op.drop_table("asked_question")
    op.drop_index(_LISTED, "conversation")
    op.create_index(_LISTED_BEFORE, "conversation", ["tenant_id", "created_at", "id"])
    op.drop_column("conversation", "folder")
    op.drop_column("conversation", "pinned")
