"""The table of what administrators did. Times are Unix microseconds; a trigger forbids change and deletion."""

import sqlalchemy as sa

from app.db.tables.documents import metadata

audit_event = sa.Table(
    "audit_event",
    metadata,
    sa.Column("audit_id", sa.Text, primary_key=True),
    sa.Column("at", sa.BigInteger, nullable=False),
    sa.Column("tenant_id", sa.Text, nullable=False),
    sa.Column("user_id", sa.Text, nullable=False),
    sa.Column("api_key_id", sa.Text, nullable=False),
    sa.Column("request_id", sa.Text, nullable=False, server_default=sa.text("''")),
    sa.Column("action", sa.Text, nullable=False),
    sa.Column("target", sa.Text, nullable=False),
    sa.Column("detail", sa.Text, nullable=False, server_default=sa.text("'{}'")),  # JSON: before and after
    sa.Index(None, "tenant_id", "at", "audit_id"),
)
