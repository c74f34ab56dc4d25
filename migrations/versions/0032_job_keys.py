"""A running job notes the first of the keys that it took for its chunks, before it commits them."""

import sqlalchemy as sa
from alembic import op

revision = "0032"
down_revision = "0031"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("job", sa.Column("first_key", sa.BigInteger(), nullable=True))


def downgrade() -> None:
    op.drop_column("job", "first_key")
