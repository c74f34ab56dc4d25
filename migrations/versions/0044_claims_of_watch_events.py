"""Of processes that share a database one at a time posts an event of a watched question."""

import sqlalchemy as sa
from alembic import op

revision = "0044"
down_revision = "0043"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("watch_event", sa.Column("claimed_by", sa.Text(), nullable=True))


def downgrade() -> None:
    op.drop_column("watch_event", "claimed_by")
