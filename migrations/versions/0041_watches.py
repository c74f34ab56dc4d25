"""Watched questions: each with its last answer, its events, and changes of documents not yet looked at."""

import sqlalchemy as sa
from alembic import op

revision = "0041"
down_revision = "0040"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "watch",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("tenant_id", sa.Text(), nullable=False),
        sa.Column("user_id", sa.Text(), nullable=False),
        sa.Column("key_id", sa.Text(), nullable=False),
        sa.Column("question", sa.Text(), nullable=False),
        sa.Column("scope", sa.JSON(), nullable=False),
        sa.Column("every_s", sa.Integer(), nullable=True),
        sa.Column("on_change", sa.Boolean(), nullable=False),
        sa.Column("budget_tokens", sa.BigInteger(), nullable=True),
        sa.Column("budget_period", sa.Text(), nullable=True),
        sa.Column("used_tokens", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("used_since", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("paused", sa.Boolean(), server_default=sa.false(), nullable=False),
        sa.Column("state", sa.Text(), server_default=sa.text("'waiting'"), nullable=False),
        sa.Column("state_detail", sa.Text(), nullable=True),
        sa.Column("due_at", sa.Double(), nullable=True),
        sa.Column("changed", sa.Boolean(), server_default=sa.false(), nullable=False),
        sa.Column("boot_id", sa.Text(), nullable=True),
        sa.Column("claim", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("failures", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("presented", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("answer", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("looked_at", sa.Double(), nullable=True),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.Column("updated_at", sa.Double(), nullable=False),
        sa.ForeignKeyConstraint(
            ["tenant_id", "user_id"], ["app_user.tenant_id", "app_user.id"], name="fk_watch_tenant_id"
        ),
        sa.CheckConstraint(
            "state IN ('waiting', 'current', 'no_access', 'over_budget', 'failing')", name="ck_watch_state"
        ),
        sa.CheckConstraint("(budget_tokens IS NULL) = (budget_period IS NULL)", name="ck_watch_budget"),
        sa.CheckConstraint("budget_period IN ('day', 'month')", name="ck_watch_period"),
        sa.CheckConstraint("every_s IS NOT NULL OR on_change", name="ck_watch_schedule"),
        sa.PrimaryKeyConstraint("id", name="pk_watch"),
    )
    op.create_index("ix_watch_due_at", "watch", ["due_at"])
    op.create_index("ix_watch_tenant_id_created_at_id", "watch", ["tenant_id", "created_at", "id"])
    op.create_table(
        "watch_event",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("watch_id", sa.Text(), nullable=False),
        sa.Column("question", sa.Text(), nullable=False),
        sa.Column("before", sa.JSON(), nullable=False),
        sa.Column("after", sa.JSON(), nullable=False),
        sa.Column("differences", sa.JSON(), nullable=False),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.Column("delivery", sa.Text(), nullable=False),
        sa.Column("attempts", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("next_attempt_at", sa.Double(), nullable=True),
        sa.ForeignKeyConstraint(["watch_id"], ["watch.id"], name="fk_watch_event_watch_id"),
        sa.CheckConstraint("delivery IN ('none', 'waiting', 'delivered', 'failed')", name="ck_watch_event_delivery"),
        sa.PrimaryKeyConstraint("id", name="pk_watch_event"),
    )
    op.create_index("ix_watch_event_watch_id_created_at_id", "watch_event", ["watch_id", "created_at", "id"])
    op.create_index("ix_watch_event_next_attempt_at", "watch_event", ["next_attempt_at"])
    op.create_table(
        "scope_change",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("tenant_id", sa.Text(), nullable=False),
        sa.Column("collection_id", sa.Text(), nullable=False),
        sa.Column("document_id", sa.Text(), nullable=False),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_scope_change"),
    )


def downgrade() -> None:
    op.drop_table("scope_change")
    op.drop_table("watch_event")
    op.drop_table("watch")
