"""The differences between SQLite and PostgreSQL; other modules do not depend on which of the two is used.

Holds upserts, locks, JSON columns, sequences and other small differences. Connections are
opened in `app.db.session`, metadata filters are compiled in `app.db.filters` and full-text search is in
`app.db.lexical`. `tests/contracts/test_dialects.py` counts the modules that distinguish them.
"""

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, Literal, TypeAlias, TypeVar

import sqlalchemy as sa
from sqlalchemy import exc
from sqlalchemy.dialects import postgresql, sqlite

from app.errors import SetupError

Kind: TypeAlias = Literal["sqlite", "postgresql"]
LockMode: TypeAlias = Literal["ROW EXCLUSIVE", "SHARE ROW EXCLUSIVE", "EXCLUSIVE", "ACCESS EXCLUSIVE"]

_T = TypeVar("_T")
_Excluded: TypeAlias = sa.sql.base.ReadOnlyColumnCollection[str, Any]
_Change: TypeAlias = Callable[[_Excluded], Mapping[str, Any]]
_Source: TypeAlias = tuple[Sequence[str], sa.Select[Any]]


@dataclass(frozen=True, slots=True)
class PerDialect(Generic[_T]):
    """Two values of which a connection takes one. Statements are composed once: composing takes longer than running.

    Example:
        >>> NEW_TENANT = insert_or_ignore(tenant)
        >>> connection.execute(NEW_TENANT.on(connection), {"id": "acme", "created_at": now})
    """

    sqlite: _T
    postgresql: _T

    def on(self, connection: sa.Connection) -> _T:
        """The value for the connection's database."""
        return self.sqlite if kind_of(connection) == "sqlite" else self.postgresql


def by_writers(*, one: _T, many: _T) -> PerDialect[_T]:
    """A value for the database with one writer at a time, and one for that with many, which lock rows."""
    return PerDialect(sqlite=one, postgresql=many)


def kind_of(connection: sa.Connection | sa.Engine) -> Kind:
    """The database behind a connection or an engine."""
    return "sqlite" if connection.dialect.name == "sqlite" else "postgresql"


def insert_or_ignore(table: sa.Table) -> PerDialect[sa.Insert]:
    """INSERT that leaves an existing row with the same key as it is."""
    return PerDialect(
        sqlite=sqlite.insert(table).on_conflict_do_nothing(),
        postgresql=postgresql.insert(table).on_conflict_do_nothing(),
    )


def upsert(
    table: sa.Table, *, change: _Change, keys: Iterable[str] | None = None, source: _Source | None = None
) -> PerDialect[sa.Insert]:
    """INSERT that updates the row with the same key instead, where there is one.

    Args:
        table: The table to write to.
        change: Gets the columns of the row that was to be inserted; returns the new values by column name.
        keys: The columns of the unique key; `None` means the primary key.
        source: Column names and the SELECT of the rows to insert; `None` means the statement's parameters.
    """
    names = [column.name for column in table.primary_key] if keys is None else list(keys)

    def compose(insert: Any) -> sa.Insert:  # the two Insert classes share no base with these methods
        statement = insert if source is None else insert.from_select(*source)
        composed = statement.on_conflict_do_update(index_elements=names, set_=change(statement.excluded))
        assert isinstance(composed, sa.Insert)
        return composed

    return PerDialect(sqlite=compose(sqlite.insert(table)), postgresql=compose(postgresql.insert(table)))


_PGVECTOR = sa.text(
    "SELECT installed_version AS installed, default_version AS available FROM pg_available_extensions "
    "WHERE name = 'vector'"
)
_OLDEST_PGVECTOR = (0, 8)  # the first with iterative scans of an index
_LOCK = sa.text("SELECT pg_advisory_xact_lock(:number)")
_LOCK_SHARED = sa.text("SELECT pg_advisory_xact_lock_shared(:number)")
_TRY_SHARED = sa.text("SELECT pg_try_advisory_xact_lock_shared(:number)")
_END_SESSIONS = sa.text(
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = :name AND pid <> pg_backend_pid()"
)


def advisory_lock(connection: sa.Connection, name: str, *, shared: bool = False) -> bool:
    """Take PostgreSQL's advisory lock `name` and hold it until the transaction ends.

    Transactions that take the lock with `shared` do not wait for each other. SQLite needs no lock: it has one writer.

    Returns:
        Whether another transaction may have written between this one's start and the lock: always False on SQLite.
    """
    if kind_of(connection) == "sqlite":
        return False
    connection.execute(_LOCK_SHARED if shared else _LOCK, {"number": lock_number(name)})
    return True


def share_lock(connection: sa.Connection, name: str) -> bool:
    """Share PostgreSQL's advisory lock `name` until the transaction ends; False where a session holds it alone."""
    return kind_of(connection) == "sqlite" or bool(connection.scalar(_TRY_SHARED, {"number": lock_number(name)}))


def end_sessions(connection: sa.Connection, name: str) -> int:
    """End the other sessions that call themselves `name` on PostgreSQL, which rolls back what they have open.

    Returns:
        How many; 0 on SQLite, where a process that died has no session left.
    """
    if kind_of(connection) == "sqlite":
        return 0
    return len(connection.execute(_END_SESSIONS, {"name": name}).all())


def lock_number(name: str) -> int:
    """PostgreSQL's 64-bit number of the advisory lock `name`."""
    digest = hashlib.blake2b(f"footnote.{name}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big", signed=True)


def lock_tables(connection: sa.Connection, *tables: sa.Table, mode: LockMode, timeout_ms: int | None = None) -> None:
    """Lock PostgreSQL tables until the transaction ends; on SQLite its own write lock has the same effect.

    Args:
        connection: In a write transaction.
        tables: Locked in this order.
        mode: As in PostgreSQL's LOCK TABLE (postgresql.org/docs/current/explicit-locking.html).
        timeout_ms: Longest wait for a lock from here to the end of the transaction; `None` keeps the connection's.
    """
    if kind_of(connection) == "sqlite":
        return
    if timeout_ms is not None:
        wait_for_locks(connection, timeout_ms=timeout_ms)
    connection.exec_driver_sql(f"LOCK TABLE {', '.join(table.name for table in tables)} IN {mode} MODE")


def clock_of(connection: sa.Connection) -> float:
    """The Unix time of the database's machine, in seconds, at this moment of the transaction."""
    sqlite_now, now = "(julianday('now') - 2440587.5) * 86400.0", "extract(epoch FROM clock_timestamp())"
    query = f"SELECT {sqlite_now if kind_of(connection) == 'sqlite' else now}"
    return float(connection.exec_driver_sql(query).scalar_one())


def locked_clock(connection: sa.Connection, names: Sequence[str]) -> float:
    """Take the advisory locks `names` in this order, each as `advisory_lock`, and return `clock_of` after the last.

    The next statement sees what every transaction wrote that held one of them before. On PostgreSQL this is one
    statement.
    """
    if not names or kind_of(connection) == "sqlite":
        return clock_of(connection)
    locks = (sa.func.pg_advisory_xact_lock(lock_number(name)) for name in names)
    *_, now = connection.execute(sa.select(*locks, sa.extract("epoch", sa.func.clock_timestamp()))).one()
    return float(now)


def wait_for_locks(connection: sa.Connection, *, timeout_ms: int) -> None:
    """Wait for a lock at most `timeout_ms` from here to the end of the transaction; SQLite's writer has all locks."""
    if kind_of(connection) == "postgresql":
        connection.exec_driver_sql(f"SET LOCAL lock_timeout = {timeout_ms}")


def with_implied_bounds(
    query: sa.Select[Any], connection: sa.Connection, bounds: Callable[[], sa.ColumnElement[bool]]
) -> sa.Select[Any]:
    """Add conditions to `query` that its joins imply already; on PostgreSQL only.

    PostgreSQL's planner does not derive them and would read the whole table. SQLite's would start an index search at
    them, and not at the narrower bounds of the join.
    """
    return query if kind_of(connection) == "sqlite" else query.where(bounds())


def json_column() -> sa.types.TypeEngine[Any]:
    """The type of a JSON column that queries look into: JSONB on PostgreSQL; None is SQL's NULL."""
    return sa.JSON(none_as_null=True).with_variant(postgresql.JSONB(none_as_null=True), "postgresql")


def advance_sequences(connection: sa.Connection, tables: Iterable[sa.TableClause]) -> None:
    """Set PostgreSQL's sequences behind the highest key of each table, after rows came with keys of their own."""
    if kind_of(connection) == "sqlite":
        return
    inspector = sa.inspect(connection)
    for table in tables:
        for column in inspector.get_pk_constraint(table.name)["constrained_columns"]:
            sequence = connection.execute(
                sa.select(sa.func.pg_get_serial_sequence(table.name, column))
            ).scalar_one_or_none()
            if sequence is not None:
                highest = sa.select(sa.func.max(table.columns[column])).scalar_subquery()
                connection.execute(sa.select(sa.func.setval(sequence, highest)))


def server_version(connection: sa.Connection) -> str:
    """The version of SQLite or of the PostgreSQL server, as `17.2`."""
    return ".".join(map(str, connection.dialect.server_version_info or ()))


def require_pgvector(connection: sa.Connection) -> None:
    """Check that PostgreSQL has pgvector, and create the extension in this database where it is not yet.

    Raises:
        SetupError: On SQLite, without pgvector or with an older one, or where this user may not create extensions.
    """
    setting = "FOOTNOTE_VECTOR_STORE=pgvector"
    if kind_of(connection) == "sqlite":
        raise SetupError(
            f"{setting} keeps vectors in PostgreSQL, and the data are in SQLite: set FOOTNOTE_DATABASE_URL, or leave "
            "FOOTNOTE_VECTOR_STORE=faiss."
        )
    found = connection.execute(_PGVECTOR).one_or_none()
    if found is None:
        raise SetupError(f"{setting} needs the extension pgvector, and this PostgreSQL has none: install its package.")
    if found.installed is None:
        try:
            connection.exec_driver_sql("CREATE EXTENSION vector")
        except exc.ProgrammingError as error:
            raise SetupError(
                f"{setting} needs the extension vector in this database, and this user may not create it: run "
                "`CREATE EXTENSION vector` as an administrator of PostgreSQL."
            ) from error
    version = found.installed or found.available
    if tuple(map(int, version.split(".")[:2])) < _OLDEST_PGVECTOR:
        raise SetupError(
            f"{setting} needs pgvector 0.8 or newer; this database has {version}: update the package, and run "
            "`ALTER EXTENSION vector UPDATE`."
        )


def sqlite_file(url: str) -> Path | None:
    """The file of a SQLite URL; None when the URL is of a PostgreSQL database."""
    parsed = sa.make_url(url)
    return Path(parsed.database or "") if parsed.get_backend_name() == "sqlite" else None
