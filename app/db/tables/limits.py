"""The table of limits that administrators set in place of the defaults. Times are Unix seconds; NULL is no limit."""

import sqlalchemy as sa

from app.db.tables.documents import metadata

quota_override = sa.Table(
    "quota_override",
    metadata,
    sa.Column("scope_type", sa.Text, primary_key=True),
    sa.Column("scope_id", sa.Text, primary_key=True),
    sa.Column("tenant_id", sa.Text, sa.ForeignKey("tenant.id"), nullable=False),
    sa.Column("requests_per_minute", sa.BigInteger),
    sa.Column("tokens_per_minute", sa.BigInteger),
    sa.Column("concurrent_requests", sa.BigInteger),
    sa.Column("updated_at", sa.Double, nullable=False),
    sa.CheckConstraint("scope_type IN ('key', 'tenant')", name="scope_type"),
    sa.Index(None, "tenant_id"),
)
