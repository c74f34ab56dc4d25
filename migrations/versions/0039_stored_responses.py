"""A turn may keep the response of OpenAI's protocol that it is; a conversation of such turns alone is in no list.

Down, the conversations stay with their turns, and are listed.
"""

import sqlalchemy as sa
from alembic import op

revision = "0039"
down_revision = "0038"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("conversation", sa.Column("listed", sa.Boolean(), server_default=sa.true(), nullable=False))
    op.add_column("conversation_turn", sa.Column("response", sa.Text(), nullable=True))


def downgrade() -> None:
    op.drop_column("conversation_turn", "response")
    op.drop_column("conversation", "listed")
