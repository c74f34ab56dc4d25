"""Sums by one dimension alone, and which documents answers cite."""

import sqlalchemy as sa
from alembic import op

revision = "0014"
down_revision = "0013"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "usage_rollup_facet",
        sa.Column("tz", sa.Text(), nullable=False),
        sa.Column("tenant_id", sa.Text(), nullable=False),
        sa.Column("facet", sa.Text(), nullable=False),
        sa.Column("width", sa.Text(), nullable=False),
        sa.Column("bucket_start", sa.BigInteger(), nullable=False),
        sa.Column("operation", sa.Text(), nullable=False),
        sa.Column("value", sa.Text(), nullable=False),
        sa.Column("num_aborted", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("num_recovered", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("num_adjustments", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("num_calls", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("num_unpriced", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("tok_system", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("tok_history", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("tok_context", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("tok_question", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("tok_template", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("input_tokens", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("input_cached_tokens", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("output_tokens", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("output_delivered_tokens", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("cost_high", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("cost_low", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.CheckConstraint("facet IN ('user_id', 'model_id')", name="ck_usage_rollup_facet_facet"),
        sa.CheckConstraint("width IN ('day', 'month')", name="ck_usage_rollup_facet_width"),
        sa.PrimaryKeyConstraint(
            "tz",
            "tenant_id",
            "facet",
            "width",
            "bucket_start",
            "operation",
            "value",
            name="pk_usage_rollup_facet",
        ),
        sqlite_with_rowid=False,
    )
    op.execute("DELETE FROM usage_rollup_zone")  # the next start builds all sums of days and months again, these too
    op.create_table(
        "answer_citation",
        sa.Column("request_id", sa.Text(), nullable=False),
        sa.Column("document_id", sa.Text(), nullable=False),
        sa.Column("tenant_id", sa.Text(), nullable=False),
        sa.Column("num_citations", sa.BigInteger(), nullable=False),
        sa.Column("cited_at", sa.BigInteger(), nullable=False),
        sa.CheckConstraint("num_citations > 0", name="ck_answer_citation_num_citations"),
        sa.PrimaryKeyConstraint("request_id", "document_id", name="pk_answer_citation"),
    )
    op.create_index("ix_answer_citation_tenant_id_cited_at", "answer_citation", ["tenant_id", "cited_at"])


def downgrade() -> None:
    op.drop_index("ix_answer_citation_tenant_id_cited_at", "answer_citation")
    op.drop_table("answer_citation")
    op.drop_table("usage_rollup_facet")
