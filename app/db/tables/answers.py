"""The tables of what belongs to answers: cited passages, questions without an answer yet, and feedback.

Times are Unix seconds.
"""

import sqlalchemy as sa

from app.db.tables.documents import metadata

# A passage that kept answers cite, and what became of it in `place_version`, the last version in which it was looked
# for, or that of the answer. No foreign key: a turn is stored although its document is being deleted.
cited_passage = sa.Table(
    "cited_passage",
    metadata,
    sa.Column("document_id", sa.Text, primary_key=True),
    sa.Column("version", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("start_char", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("end_char", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("place_version", sa.Integer, nullable=False),
    sa.Column("state", sa.Text),  # NULL while `place_version` is `version`
    sa.Column("place_start", sa.Integer),
    sa.Column("place_end", sa.Integer),
    sa.Column("page_start", sa.Integer),
    sa.Column("page_end", sa.Integer),
    sa.Column("text", sa.Text),  # the new wording of an altered one
    sa.CheckConstraint("state IN ('current', 'moved', 'altered', 'gone')", name="state"),
)

# Versions with cited passages that are no longer live, until the passages are looked for in the live one. `text` is
# that of a version that was deleted with the swap.
superseded_version = sa.Table(
    "superseded_version",
    metadata,
    sa.Column("document_id", sa.Text, primary_key=True),
    sa.Column("version", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("text", sa.Text),
)

# Gone when the answer ends: a row of another process is of a question that was interrupted.
asked_question = sa.Table(
    "asked_question",
    metadata,
    sa.Column("request_id", sa.Text, primary_key=True),
    sa.Column("conversation_id", sa.Text, sa.ForeignKey("conversation.id"), nullable=False, index=True),
    sa.Column("boot_id", sa.Text, nullable=False),  # the process that answers it
    sa.Column("question", sa.Text, nullable=False),
    sa.Column("created_at", sa.Double, nullable=False),
)

# No foreign key to a request: an answer for which no model was called has no row in the ledger.
feedback = sa.Table(
    "feedback",
    metadata,
    sa.Column("request_id", sa.Text, primary_key=True),
    sa.Column("user_id", sa.Text, primary_key=True),
    sa.Column("tenant_id", sa.Text, nullable=False),
    sa.Column("score", sa.Double, nullable=False),
    sa.Column("comment", sa.Text),
    sa.Column("created_at", sa.Double, nullable=False),
    sa.Column("updated_at", sa.Double, nullable=False),
    sa.ForeignKeyConstraint(["tenant_id", "user_id"], ["app_user.tenant_id", "app_user.id"]),
    sa.CheckConstraint("score BETWEEN -1 AND 1", name="score"),
    sa.Index(None, "tenant_id", "created_at", "request_id", "user_id"),
)
