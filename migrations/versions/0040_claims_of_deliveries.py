"""Of processes that share a database one at a time delivers an alert, or a weekly summary."""

import sqlalchemy as sa
from alembic import op

revision = "0040"
down_revision = "0039"
branch_labels = None
depends_on = None

_TABLES = "budget_alert", "weekly_summary"


def upgrade() -> None:
    for table in _TABLES:
        op.add_column(table, sa.Column("claimed_by", sa.Text(), nullable=True))


def downgrade() -> None:
    for table in reversed(_TABLES):
        op.drop_column(table, "claimed_by")
