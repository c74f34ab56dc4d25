"""Tables of answers: questions asked of many documents, each of each."""

import sqlalchemy as sa
from alembic import op

revision = "0045"
down_revision = "0044"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "answer_table",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("tenant_id", sa.Text(), nullable=False),
        sa.Column("user_id", sa.Text(), nullable=False),
        sa.Column("key_id", sa.Text(), nullable=False),
        sa.Column("questions", sa.JSON(), nullable=False),
        sa.Column("length", sa.Text(), nullable=False),
        sa.Column("row_count", sa.Integer(), nullable=False),
        sa.Column("state", sa.Text(), server_default=sa.text("'running'"), nullable=False),
        sa.Column("state_detail", sa.Text(), nullable=True),
        sa.Column("due_at", sa.Double(), nullable=False),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.Column("updated_at", sa.Double(), nullable=False),
        sa.ForeignKeyConstraint(
            ["tenant_id", "user_id"], ["app_user.tenant_id", "app_user.id"], name="fk_answer_table_tenant_id"
        ),
        sa.CheckConstraint("state IN ('running', 'stopped', 'finished')", name="ck_answer_table_state"),
        sa.CheckConstraint("length IN ('short', 'normal', 'long')", name="ck_answer_table_length"),
        sa.PrimaryKeyConstraint("id", name="pk_answer_table"),
    )
    op.create_index("ix_answer_table_tenant_id_created_at_id", "answer_table", ["tenant_id", "created_at", "id"])
    op.create_index("ix_answer_table_state_id", "answer_table", ["state", "id"])
    op.create_table(
        "answer_table_row",
        sa.Column("table_id", sa.Text(), nullable=False),
        sa.Column("row_no", sa.Integer(), nullable=False),
        sa.Column("document_id", sa.Text(), nullable=False),
        sa.Column("filename", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["table_id"], ["answer_table.id"], name="fk_answer_table_row_table_id"),
        sa.PrimaryKeyConstraint("table_id", "row_no", name="pk_answer_table_row"),
    )
    op.create_table(
        "answer_table_cell",
        sa.Column("table_id", sa.Text(), nullable=False),
        sa.Column("row_no", sa.Integer(), nullable=False),
        sa.Column("column_no", sa.Integer(), nullable=False),
        sa.Column("state", sa.Text(), server_default=sa.text("'waiting'"), nullable=False),
        sa.Column("due_at", sa.Double(), nullable=False),
        sa.Column("boot_id", sa.Text(), nullable=True),
        sa.Column("claim", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("attempts", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("answer", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("error", sa.Text(), nullable=True),
        sa.ForeignKeyConstraint(["table_id"], ["answer_table.id"], name="fk_answer_table_cell_table_id"),
        sa.CheckConstraint(
            "state IN ('waiting', 'asking', 'answered', 'unsure', 'refused', 'failed')",
            name="ck_answer_table_cell_state",
        ),
        sa.CheckConstraint(
            "(state IN ('answered', 'unsure', 'refused')) = (answer IS NOT NULL)", name="ck_answer_table_cell_answer"
        ),
        sa.PrimaryKeyConstraint("table_id", "row_no", "column_no", name="pk_answer_table_cell"),
    )
    op.create_index(
        "ix_answer_table_cell_table_id_state_row_no_column_no",
        "answer_table_cell",
        ["table_id", "state", "row_no", "column_no"],
    )
    op.create_table(
        "answer_table_request",
        sa.Column("request_id", sa.Text(), nullable=False),
        sa.Column("table_id", sa.Text(), nullable=False),
        sa.Column("row_no", sa.Integer(), nullable=False),
        sa.Column("column_no", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(["table_id"], ["answer_table.id"], name="fk_answer_table_request_table_id"),
        sa.PrimaryKeyConstraint("request_id", name="pk_answer_table_request"),
    )
    op.create_index("ix_answer_table_request_table_id_row_no", "answer_table_request", ["table_id", "row_no"])


def downgrade() -> None:
    op.drop_table("answer_table_request")
    op.drop_table("answer_table_cell")
    op.drop_table("answer_table_row")
    op.drop_table("answer_table")
