"""Tenants and users that can be turned off, keys with two secrets for a while, sessions, OpenID identities."""

import sqlalchemy as sa
from alembic import op

revision = "0015"
down_revision = "0014"
branch_labels = None
depends_on = None


def upgrade() -> None:
    for table in ("tenant", "app_user"):
        op.add_column(table, sa.Column("name", sa.Text(), server_default=sa.text("''"), nullable=False))
        op.add_column(table, sa.Column("disabled_at", sa.Double(), nullable=True))
    op.create_index("ix_app_user_tenant_id_created_at_id", "app_user", ["tenant_id", "created_at", "id"])
    op.add_column("api_key", sa.Column("rotated_at", sa.Double(), nullable=True))
    op.add_column("api_key", sa.Column("previous_prefix", sa.Text(), nullable=True))
    op.add_column("api_key", sa.Column("previous_sha256", sa.Text(), nullable=True))
    op.add_column("api_key", sa.Column("previous_expires_at", sa.Double(), nullable=True))
    op.create_index("uq_api_key_previous_sha256", "api_key", ["previous_sha256"], unique=True)
    op.create_table(
        "access_session",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("secret_sha256", sa.Text(), nullable=False),
        sa.Column("tenant_id", sa.Text(), nullable=False),
        sa.Column("user_id", sa.Text(), nullable=False),
        sa.Column("key_id", sa.Text(), nullable=True),
        sa.Column("role", sa.Text(), nullable=True),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.Column("expires_at", sa.Double(), nullable=False),
        sa.ForeignKeyConstraint(
            ["tenant_id", "user_id"],
            ["app_user.tenant_id", "app_user.id"],
            name="fk_access_session_tenant_id",
        ),
        sa.ForeignKeyConstraint(["key_id"], ["api_key.id"], name="fk_access_session_key_id"),
        sa.CheckConstraint("role IN ('admin', 'member', 'reader')", name="ck_access_session_role"),
        sa.CheckConstraint("(key_id IS NULL) <> (role IS NULL)", name="ck_access_session_key_or_role"),
        sa.PrimaryKeyConstraint("id", name="pk_access_session"),
        sa.UniqueConstraint("secret_sha256", name="uq_access_session_secret_sha256"),
    )
    op.create_index("ix_access_session_expires_at", "access_session", ["expires_at"])
    op.create_index("ix_access_session_key_id", "access_session", ["key_id"])
    op.create_index("ix_access_session_tenant_id_user_id", "access_session", ["tenant_id", "user_id"])
    op.create_table(
        "user_identity",
        sa.Column("issuer", sa.Text(), nullable=False),
        sa.Column("subject", sa.Text(), nullable=False),
        sa.Column("tenant_id", sa.Text(), nullable=False),
        sa.Column("user_id", sa.Text(), nullable=False),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.ForeignKeyConstraint(
            ["tenant_id", "user_id"],
            ["app_user.tenant_id", "app_user.id"],
            name="fk_user_identity_tenant_id",
        ),
        sa.PrimaryKeyConstraint("issuer", "subject", "tenant_id", name="pk_user_identity"),
    )


def downgrade() -> None:
    op.drop_table("user_identity")
    op.drop_index("ix_access_session_tenant_id_user_id", "access_session")
    op.drop_index("ix_access_session_key_id", "access_session")
    op.drop_index("ix_access_session_expires_at", "access_session")
    op.drop_table("access_session")
    op.drop_index("uq_api_key_previous_sha256", "api_key")
    for column in ("previous_expires_at", "previous_sha256", "previous_prefix", "rotated_at"):
        op.drop_column("api_key", column)
    op.drop_index("ix_app_user_tenant_id_created_at_id", "app_user")
    for table in ("app_user", "tenant"):
        op.drop_column(table, "disabled_at")
        op.drop_column(table, "name")
