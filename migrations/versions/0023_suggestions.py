"""Questions that a document version answers, made when somebody first looks at it. Earlier versions have none yet."""

import sqlalchemy as sa
from alembic import op

revision = "0023"
down_revision = "0022"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("document_version", sa.Column("suggestions", sa.JSON(none_as_null=True)))


def downgrade() -> None:
    op.drop_column("document_version", "suggestions")
