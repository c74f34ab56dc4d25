"""Documents for which no question was found are asked for questions again: since then more are found."""

import sqlalchemy as sa
from alembic import op

revision = "0033"
down_revision = "0032"
branch_labels = None
depends_on = None

_VERSION = sa.table("document_version", sa.column("suggestions", sa.JSON(none_as_null=True)))


def upgrade() -> None:
    none_found = sa.cast(_VERSION.c.suggestions, sa.Text()) == "[]"
    op.execute(_VERSION.update().where(none_found).values(suggestions=None))


def downgrade() -> None:
    pass  # the version before finds them again, too
