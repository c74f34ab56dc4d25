"""Originals are named by rows. Those that are there keep their place: they are named as their document and version."""

import sqlalchemy as sa
from alembic import op

revision = "0029"
down_revision = "0028"
branch_labels = None
depends_on = None

_TABLES = ("document_version", "unattached_file")
_VERSION_INDEX = "ix_document_version_object"
_FILE_INDEX = "ix_unattached_file_object"


def upgrade() -> None:
    for table in _TABLES:
        op.add_column(table, sa.Column("object", sa.Text(), nullable=False, server_default=sa.text("''")))
    op.execute(sa.text("UPDATE document_version SET object = document_id || '/' || version"))
    op.execute(sa.text("UPDATE unattached_file SET object = id || '/0'"))
    op.create_index(_VERSION_INDEX, "document_version", ["object"])
    op.create_index(_FILE_INDEX, "unattached_file", ["object"])
    op.create_table(
        "upload",
        sa.Column("object", sa.Text(), nullable=False),
        sa.Column("boot_id", sa.Text(), nullable=True),
        sa.Column("begun_at", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("object", name="pk_upload"),
    )


def downgrade() -> None:
    later = "SELECT count(*) FROM document_version WHERE object <> document_id || '/' || version"
    later_files = "SELECT count(*) FROM unattached_file WHERE object <> id || '/0'"
    connection = op.get_bind()
    if connection.execute(sa.text(later)).scalar() or connection.execute(sa.text(later_files)).scalar():
        raise RuntimeError("Documents were uploaded under this schema; the one before would not find their originals.")
    op.drop_table("upload")
    op.drop_index(_FILE_INDEX, "unattached_file")
    op.drop_index(_VERSION_INDEX, "document_version")
    for table in _TABLES:
        op.drop_column(table, "object")
