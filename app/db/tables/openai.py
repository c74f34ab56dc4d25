"""The tables of OpenAI's files: those that are in no collection yet, and batches. Times are Unix seconds."""

import sqlalchemy as sa

from app.db.tables.documents import metadata

# An upload that is no document yet; it becomes the document of the same id. Its original is version 0.
unattached_file = sa.Table(
    "unattached_file",
    metadata,
    sa.Column("id", sa.Text, primary_key=True),
    sa.Column("tenant_id", sa.Text, sa.ForeignKey("tenant.id"), nullable=False),
    sa.Column("key_id", sa.Text, nullable=False),  # a key that is limited to collections sees its own alone
    sa.Column("filename", sa.Text, nullable=False),
    sa.Column("bytes", sa.BigInteger, nullable=False),
    sa.Column("sha256", sa.Text, nullable=False),
    sa.Column("purpose", sa.Text, nullable=False),
    sa.Column("created_at", sa.Double, nullable=False),
    sa.Index(None, "tenant_id", "id"),
)

file_batch = sa.Table(
    "file_batch",
    metadata,
    sa.Column("id", sa.Text, primary_key=True),
    sa.Column("collection_id", sa.Text, sa.ForeignKey("collection.id", ondelete="CASCADE"), nullable=False),
    sa.Column("created_at", sa.Double, nullable=False),
    sa.Column("cancelled_at", sa.Double),
    sa.Column("file_ids", sa.JSON(none_as_null=True), nullable=False),
    sa.Index(None, "collection_id"),
)
