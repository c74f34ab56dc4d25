"""The table of what people say of answers. Times are Unix seconds."""

import sqlalchemy as sa

from app.db.tables.documents import metadata

# No foreign key to a request: an answer for which no model was called has no row in the ledger.
feedback = sa.Table(
    "feedback",
    metadata,
    sa.Column("request_id", sa.Text, primary_key=True),
    sa.Column("user_id", sa.Text, primary_key=True),
    sa.Column("tenant_id", sa.Text, nullable=False),
    sa.Column("score", sa.Double, nullable=False),
    sa.Column("comment", sa.Text),
    sa.Column("created_at", sa.Double, nullable=False),
    sa.Column("updated_at", sa.Double, nullable=False),
    sa.ForeignKeyConstraint(["tenant_id", "user_id"], ["app_user.tenant_id", "app_user.id"]),
    sa.CheckConstraint("score BETWEEN -1 AND 1", name="score"),
    sa.Index(None, "tenant_id", "created_at", "request_id", "user_id"),
)
