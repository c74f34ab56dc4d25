"""Limits of keys and tenants that administrators set."""

import sqlalchemy as sa
from alembic import op

revision = "0016"
down_revision = "0015"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "quota_override",
        sa.Column("scope_type", sa.Text(), nullable=False),
        sa.Column("scope_id", sa.Text(), nullable=False),
        sa.Column("tenant_id", sa.Text(), nullable=False),
        sa.Column("requests_per_minute", sa.BigInteger(), nullable=True),
        sa.Column("tokens_per_minute", sa.BigInteger(), nullable=True),
        sa.Column("concurrent_requests", sa.BigInteger(), nullable=True),
        sa.Column("updated_at", sa.Double(), nullable=False),
        sa.CheckConstraint("scope_type IN ('key', 'tenant')", name="ck_quota_override_scope_type"),
        sa.ForeignKeyConstraint(["tenant_id"], ["tenant.id"], name="fk_quota_override_tenant_id"),
        sa.PrimaryKeyConstraint("scope_type", "scope_id", name="pk_quota_override"),
    )
    op.create_index("ix_quota_override_tenant_id", "quota_override", ["tenant_id"])


def downgrade() -> None:
    op.drop_table("quota_override")
