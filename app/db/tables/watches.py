"""The tables of watched questions: each with its last answer, its events, and changes of documents not yet looked at.

Times are Unix seconds.
"""

import sqlalchemy as sa

from app.db.tables.documents import metadata

# A question that is asked again. No foreign key to the key: users whom an OpenID provider signs in have none.
watch = sa.Table(
    "watch",
    metadata,
    sa.Column("id", sa.Text, primary_key=True),
    sa.Column("tenant_id", sa.Text, nullable=False),
    sa.Column("user_id", sa.Text, nullable=False),
    sa.Column("key_id", sa.Text, nullable=False),  # made it, and pays
    sa.Column("question", sa.Text, nullable=False),
    sa.Column("scope", sa.JSON, nullable=False),  # as the request named it: collection_ids, document_ids, filter
    sa.Column("every_s", sa.Integer),  # NULL: only when the scope changes
    sa.Column("on_change", sa.Boolean, nullable=False),
    sa.Column("budget_tokens", sa.BigInteger),
    sa.Column("budget_period", sa.Text),
    sa.Column("used_tokens", sa.BigInteger, nullable=False, server_default=sa.text("0")),
    sa.Column("used_since", sa.BigInteger, nullable=False, server_default=sa.text("0")),  # microseconds: the period
    sa.Column("paused", sa.Boolean, nullable=False, server_default=sa.false()),
    sa.Column("state", sa.Text, nullable=False, server_default=sa.text("'waiting'")),
    sa.Column("state_detail", sa.Text),  # why it does not run
    sa.Column("due_at", sa.Double),  # NULL: paused
    sa.Column("changed", sa.Boolean, nullable=False, server_default=sa.false()),  # the scope, since it was claimed
    sa.Column("boot_id", sa.Text),  # the process that runs it
    sa.Column("claim", sa.Integer, nullable=False, server_default=sa.text("0")),  # rises with each claim and change
    sa.Column("failures", sa.Integer, nullable=False, server_default=sa.text("0")),  # in a row
    sa.Column("presented", sa.JSON(none_as_null=True)),  # the passages of the last answer
    sa.Column("answer", sa.JSON(none_as_null=True)),  # the last answer
    sa.Column("looked_at", sa.Double),  # the last run, whether it asked or not
    sa.Column("created_at", sa.Double, nullable=False),
    sa.Column("updated_at", sa.Double, nullable=False),
    sa.ForeignKeyConstraint(["tenant_id", "user_id"], ["app_user.tenant_id", "app_user.id"]),
    sa.CheckConstraint("state IN ('waiting', 'current', 'no_access', 'over_budget', 'failing')", name="state"),
    sa.CheckConstraint("(budget_tokens IS NULL) = (budget_period IS NULL)", name="budget"),
    sa.CheckConstraint("budget_period IN ('day', 'month')", name="period"),
    sa.CheckConstraint("every_s IS NOT NULL OR on_change", name="schedule"),
    sa.Index(None, "due_at"),
    sa.Index(None, "tenant_id", "created_at", "id"),
)

# The evidence of a watched question changed: both answers, and what differs.
watch_event = sa.Table(
    "watch_event",
    metadata,
    sa.Column("id", sa.Text, primary_key=True),
    sa.Column("watch_id", sa.Text, sa.ForeignKey("watch.id"), nullable=False),
    sa.Column("question", sa.Text, nullable=False),
    sa.Column("before", sa.JSON, nullable=False),
    sa.Column("after", sa.JSON, nullable=False),
    sa.Column("differences", sa.JSON, nullable=False),
    sa.Column("created_at", sa.Double, nullable=False),
    sa.Column("delivery", sa.Text, nullable=False),
    sa.Column("attempts", sa.Integer, nullable=False, server_default=sa.text("0")),
    sa.Column("next_attempt_at", sa.Double),  # while it waits to be delivered
    sa.Column("claimed_by", sa.Text),  # the process, of several, that delivers it
    sa.CheckConstraint("delivery IN ('none', 'waiting', 'delivered', 'failed')", name="delivery"),
    sa.Index(None, "watch_id", "created_at", "id"),
    sa.Index(None, "next_attempt_at"),
)

# A document that was published, changed or deleted, noted where the tenant watches for changes. A row for each change:
# one that is noted while another is looked at must not be taken for it.
scope_change = sa.Table(
    "scope_change",
    metadata,
    sa.Column("id", sa.Text, primary_key=True),
    sa.Column("tenant_id", sa.Text, nullable=False),
    sa.Column("collection_id", sa.Text, nullable=False),
    sa.Column("document_id", sa.Text, nullable=False),
    sa.Column("created_at", sa.Double, nullable=False),
)
