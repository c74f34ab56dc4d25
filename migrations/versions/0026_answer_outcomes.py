"""How each question ended, the indexes that the overview reads by, and the weekly summaries that were sent."""

import sqlalchemy as sa
from alembic import op

revision = "0026"
down_revision = "0025"
branch_labels = None
depends_on = None

_EMPTY = sa.text("''")


def upgrade() -> None:
    op.create_table(
        "answer_outcome",
        sa.Column("request_id", sa.Text(), nullable=False),
        sa.Column("tenant_id", sa.Text(), nullable=False),
        sa.Column("user_id", sa.Text(), server_default=_EMPTY, nullable=False),
        sa.Column("endpoint", sa.Text(), nullable=False),
        sa.Column("result", sa.Text(), nullable=False),
        sa.Column("reason", sa.Text(), server_default=_EMPTY, nullable=False),
        sa.Column("confirmed", sa.Boolean(), nullable=True),
        sa.Column("total_us", sa.BigInteger(), nullable=True),
        sa.Column("ended_at", sa.BigInteger(), nullable=False),
        sa.CheckConstraint(
            "result IN ('answered', 'unsure', 'refused', 'failed', 'cancelled')", name="ck_answer_outcome_result"
        ),
        sa.CheckConstraint("total_us >= 0", name="ck_answer_outcome_total_us"),
        sa.PrimaryKeyConstraint("request_id", name="pk_answer_outcome"),
    )
    op.create_index("ix_answer_outcome_tenant_id_ended_at", "answer_outcome", ["tenant_id", "ended_at"])
    op.create_index("ix_api_request_tenant_id_accepted_at", "api_request", ["tenant_id", "accepted_at"])
    op.create_index(
        "ix_answer_citation_tenant_id_document_id_cited_at", "answer_citation", ["tenant_id", "document_id", "cited_at"]
    )
    op.create_table(
        "weekly_summary",
        sa.Column("tenant_id", sa.Text(), nullable=False),
        sa.Column("week_start", sa.BigInteger(), nullable=False),
        sa.Column("delivery", sa.Text(), server_default=sa.text("'waiting'"), nullable=False),
        sa.Column("attempts", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("next_attempt_at", sa.BigInteger(), nullable=False),
        sa.Column("delivered_at", sa.BigInteger(), nullable=True),
        sa.CheckConstraint("delivery IN ('waiting', 'delivered', 'failed')", name="ck_weekly_summary_delivery"),
        sa.PrimaryKeyConstraint("tenant_id", "week_start", name="pk_weekly_summary"),
    )


def downgrade() -> None:
    op.drop_table("weekly_summary")
    op.drop_index("ix_answer_citation_tenant_id_document_id_cited_at", "answer_citation")
    op.drop_index("ix_api_request_tenant_id_accepted_at", "api_request")
    op.drop_index("ix_answer_outcome_tenant_id_ended_at", "answer_outcome")
    op.drop_table("answer_outcome")
