"""Generations of vectors that are built beside the one searched."""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None

_TABLE = "index_generation"
_KEPT = "id, model, revision, dim, metric, status, created_at"
_ADDED = ("source", "activated_at", "replaced_at", "rejected_at", "purged_at")
_STATUSES = "status IN ('building', 'ready', 'active', 'previous', 'retired')"
_STATUSES_BEFORE = "status IN ('active', 'retired')"


def upgrade() -> None:
    if _on_sqlite():
        _rebuild(added=True)
    else:
        op.drop_constraint("ck_index_generation_status", _TABLE, type_="check")
        op.create_check_constraint("ck_index_generation_status", _TABLE, _STATUSES)
        for column in _columns():
            op.add_column(_TABLE, column)
    _unique("active")
    _unique("building")


def downgrade() -> None:
    for status in ("active", "building"):
        op.drop_index(f"uq_index_generation_{status}", table_name=_TABLE)
    # their vectors stay and are in nobody's way: the version before looks at the active ones alone
    op.execute("UPDATE index_generation SET status = 'retired' WHERE status <> 'active'")
    if _on_sqlite():
        _rebuild(added=False)
    else:
        op.drop_constraint("ck_index_generation_status", _TABLE, type_="check")
        op.create_check_constraint("ck_index_generation_status", _TABLE, _STATUSES_BEFORE)
        for name in _ADDED:
            op.drop_column(_TABLE, name)
    _unique("active")


def _columns() -> list[sa.Column[object]]:
    source: sa.Column[object] = sa.Column("source", sa.Text(), server_default=sa.text("''"), nullable=False)
    return [source, *(sa.Column(name, sa.Double(), nullable=True) for name in _ADDED[1:])]


def _rebuild(*, added: bool) -> None:
    """The table anew, since SQLite changes no CHECK in place, under its name at once: rows of other tables point at it.

    Their foreign keys are looked at when the transaction commits; by then every row is back.
    """
    op.execute("PRAGMA defer_foreign_keys = ON")
    op.execute(f"CREATE TEMPORARY TABLE generation_kept AS SELECT {_KEPT} FROM {_TABLE}")  # noqa: S608 - our own names
    op.drop_table(_TABLE)
    op.create_table(
        _TABLE,
        sa.Column("id", sa.Integer(), autoincrement=True, nullable=False),
        sa.Column("model", sa.Text(), nullable=False),
        sa.Column("revision", sa.Text(), nullable=False),
        sa.Column("dim", sa.Integer(), nullable=False),
        sa.Column("metric", sa.Text(), nullable=False),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("created_at", sa.Double(), nullable=False),
        *(_columns() if added else ()),
        sa.CheckConstraint(_STATUSES if added else _STATUSES_BEFORE, name="ck_index_generation_status"),
        sa.CheckConstraint("dim > 0", name="ck_index_generation_dim"),
        sa.PrimaryKeyConstraint("id", name="pk_index_generation"),
    )
    op.execute(f"INSERT INTO {_TABLE} ({_KEPT}) SELECT {_KEPT} FROM generation_kept")  # noqa: S608 - our own names
    op.execute("DROP TABLE generation_kept")


def _unique(status: str) -> None:
    name, one = f"uq_index_generation_{status}", sa.text(f"status = '{status}'")
    if status == "active" and not _on_sqlite():
        op.execute(f"DROP INDEX IF EXISTS {name}")
    op.create_index(name, _TABLE, ["status"], unique=True, sqlite_where=one, postgresql_where=one)


def _on_sqlite() -> bool:
    return bool(op.get_bind().dialect.name == "sqlite")
