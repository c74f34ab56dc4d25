"""Kept answers have a tenant, and are forgotten when it deletes something. Earlier ones have no tenant."""

import sqlalchemy as sa
from alembic import op

revision = "0021"
down_revision = "0020"
branch_labels = None
depends_on = None

_INDEX = "ix_idempotent_request_tenant_id"


def upgrade() -> None:
    tenant_id = sa.Column("tenant_id", sa.Text(), nullable=False, server_default=sa.text("''"))
    forgotten: sa.Column[bool] = sa.Column("forgotten", sa.Boolean(), nullable=False, server_default=sa.false())
    op.add_column("idempotent_request", tenant_id)
    op.add_column("idempotent_request", forgotten)
    op.create_index(_INDEX, "idempotent_request", ["tenant_id", "forgotten"])
    op.execute(sa.text("UPDATE idempotent_request SET body = NULL"))


def downgrade() -> None:
    op.drop_index(_INDEX, "idempotent_request")
    op.drop_column("idempotent_request", "forgotten")
    op.drop_column("idempotent_request", "tenant_id")
