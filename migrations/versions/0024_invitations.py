"""Invitations, which let people in by a link, and the time at which a key was last used."""

import sqlalchemy as sa
from alembic import op

revision = "0024"
down_revision = "0023"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "invitation",
        sa.Column("id", sa.Text, primary_key=True),
        sa.Column("tenant_id", sa.Text, sa.ForeignKey("tenant.id"), nullable=False),
        sa.Column("token_sha256", sa.Text, nullable=False, unique=True),
        sa.Column("for_user_id", sa.Text),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("email", sa.Text, nullable=False, server_default=sa.text("''")),
        sa.Column("role", sa.Text, nullable=False),
        sa.Column("collections", sa.JSON(none_as_null=True)),
        sa.Column("budget", sa.JSON(none_as_null=True)),
        sa.Column("mail", sa.Text, nullable=False, server_default=sa.text("'off'")),
        sa.Column("created_by", sa.Text, nullable=False),
        sa.Column("created_by_key", sa.Text, nullable=False),
        sa.Column("created_at", sa.Double, nullable=False),
        sa.Column("expires_at", sa.Double, nullable=False),
        sa.Column("revoked_at", sa.Double),
        sa.Column("accepted_at", sa.Double),
        sa.Column("user_id", sa.Text),
        sa.Column("key_id", sa.Text, sa.ForeignKey("api_key.id")),
        sa.ForeignKeyConstraint(
            ["tenant_id", "for_user_id"], ["app_user.tenant_id", "app_user.id"], name="fk_invitation_for_user_id"
        ),
        sa.ForeignKeyConstraint(
            ["tenant_id", "user_id"], ["app_user.tenant_id", "app_user.id"], name="fk_invitation_user_id"
        ),
        sa.CheckConstraint("role IN ('admin', 'member', 'reader')", name="role"),
        sa.CheckConstraint("mail IN ('off', 'sent', 'failed')", name="mail"),
        sa.CheckConstraint("(accepted_at IS NULL) = (user_id IS NULL)", name="accepted_by_somebody"),
    )
    op.create_index("ix_invitation_tenant_id_created_at_id", "invitation", ["tenant_id", "created_at", "id"])
    op.add_column("api_key", sa.Column("last_used_at", sa.Double))


def downgrade() -> None:
    op.drop_column("api_key", "last_used_at")
    op.drop_table("invitation")
