"""The tables of questions × documents: each question is asked of each document by itself. Times are Unix seconds."""

import sqlalchemy as sa

from app.db.tables.documents import metadata

# Questions asked of many documents. No foreign key to the key: users whom an OpenID provider signs in have none.
answer_table = sa.Table(
    "answer_table",
    metadata,
    sa.Column("id", sa.Text, primary_key=True),
    sa.Column("tenant_id", sa.Text, nullable=False),
    sa.Column("user_id", sa.Text, nullable=False),
    sa.Column("key_id", sa.Text, nullable=False),  # made it, and pays
    sa.Column("questions", sa.JSON, nullable=False),  # the columns: name, question
    sa.Column("length", sa.Text, nullable=False),  # of its answers
    sa.Column("row_count", sa.Integer, nullable=False),
    sa.Column("state", sa.Text, nullable=False, server_default=sa.text("'running'")),
    sa.Column("state_detail", sa.Text),  # why it is stopped, or waits
    sa.Column("due_at", sa.Double, nullable=False),  # none of its cells is asked before
    sa.Column("created_at", sa.Double, nullable=False),
    sa.Column("updated_at", sa.Double, nullable=False),
    sa.ForeignKeyConstraint(["tenant_id", "user_id"], ["app_user.tenant_id", "app_user.id"]),
    sa.CheckConstraint("state IN ('running', 'stopped', 'finished')", name="state"),
    sa.CheckConstraint("length IN ('short', 'normal', 'long')", name="length"),
    sa.Index(None, "tenant_id", "created_at", "id"),
    sa.Index(None, "state", "id"),
)

# A row: one document, by its name at that time. Documents may be deleted, their rows stay.
answer_table_row = sa.Table(
    "answer_table_row",
    metadata,
    sa.Column("table_id", sa.Text, sa.ForeignKey("answer_table.id"), primary_key=True),
    sa.Column("row_no", sa.Integer, primary_key=True),
    sa.Column("document_id", sa.Text, nullable=False),
    sa.Column("filename", sa.Text, nullable=False),
)

# A cell: one question, asked of one document.
answer_table_cell = sa.Table(
    "answer_table_cell",
    metadata,
    sa.Column("table_id", sa.Text, sa.ForeignKey("answer_table.id"), primary_key=True),
    sa.Column("row_no", sa.Integer, primary_key=True),
    sa.Column("column_no", sa.Integer, primary_key=True),
    sa.Column("state", sa.Text, nullable=False, server_default=sa.text("'waiting'")),
    sa.Column("due_at", sa.Double, nullable=False),  # while it waits
    sa.Column("boot_id", sa.Text),  # the process that asks it
    sa.Column("claim", sa.Integer, nullable=False, server_default=sa.text("0")),  # rises with each claim
    sa.Column("attempts", sa.Integer, nullable=False, server_default=sa.text("0")),  # that ended without an answer
    sa.Column("answer", sa.JSON(none_as_null=True)),
    sa.Column("error", sa.Text),  # why it failed, in one sentence
    sa.CheckConstraint("state IN ('waiting', 'asking', 'answered', 'unsure', 'refused', 'failed')", name="state"),
    sa.CheckConstraint("(state IN ('answered', 'unsure', 'refused')) = (answer IS NOT NULL)", name="answer"),
    sa.Index(None, "table_id", "state", "row_no", "column_no"),
)

# Each time that a cell was asked, by the request id of the ledger: its bill, also of what ended without an answer.
answer_table_request = sa.Table(
    "answer_table_request",
    metadata,
    sa.Column("request_id", sa.Text, primary_key=True),
    sa.Column("table_id", sa.Text, sa.ForeignKey("answer_table.id"), nullable=False),
    sa.Column("row_no", sa.Integer, nullable=False),
    sa.Column("column_no", sa.Integer, nullable=False),
    sa.Index(None, "table_id", "row_no"),
)
