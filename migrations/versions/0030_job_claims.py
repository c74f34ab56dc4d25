"""Claims of jobs have a number, and a crash counts only against a document that was being read without progress."""

import sqlalchemy as sa
from alembic import op

revision = "0030"
down_revision = "0029"
branch_labels = None
depends_on = None

_FLAGS = "kept_since_crash", "alone", "begun"


def upgrade() -> None:
    op.add_column("job", sa.Column("claim", sa.Integer(), server_default=sa.text("0"), nullable=False))
    for name in _FLAGS:
        op.add_column("job", sa.Column(name, sa.Boolean(), server_default=sa.false(), nullable=False))


def downgrade() -> None:
    for name in reversed(_FLAGS):
        op.drop_column("job", name)
    op.drop_column("job", "claim")
