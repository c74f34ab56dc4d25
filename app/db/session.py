"""Connections to the database, SQLite by default or PostgreSQL, and translation of their errors.

SQLite before 3.51.3 can corrupt its write-ahead log when two connections write or checkpoint at the same moment. So
one connection, behind a lock, does all writing and checkpointing; all others are read-only and never checkpoint.
"""

import importlib.util
import json
import sqlite3
import threading
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import sqlalchemy as sa
from sqlalchemy import exc

from app.db.dialect import Kind, kind_of
from app.db.group_commit import GroupCommit
from app.errors import InvalidRequest, SetupError, StorageFull, StoreUnavailable

_BUSY_MS = 5_000  # how long SQLite waits for a lock another process holds
_WRITE_WAIT_S = 30.0  # how long a writer waits for the writers before it
_LOCK_MS = 30_000  # how long PostgreSQL waits for a row another transaction holds
_WAL_LIMIT_BYTES = 64 << 20  # a log grown beyond this shrinks at its next checkpoint
_SYNCHRONOUS = "synchronous = FULL"  # of SQLite's writer: a commit waits for the disk
_OLDEST_SQLITE = (3, 35, 0)  # RETURNING


class Database:
    """The database of one installation. Safe to use from any thread; one transaction per `with`.

    Example:
        >>> database = Database.open("sqlite:////data/footnote.db")
        >>> with database.write() as connection:
        ...     connection.execute(sa.delete(table))
    """

    def __init__(self, reader: sa.Engine, writer: sa.Engine) -> None:
        self._reader = reader
        self._writer = writer
        self._single_writer = self.kind == "sqlite"
        self._lock = threading.Lock()
        self._holder: int | None = None
        self._group = GroupCommit(writer, turn=self._turn, errors=_domain_errors)

    @classmethod
    def open(cls, url: str, *, session_name: str = "") -> "Database":
        """Open `sqlite:///path/to/file` or `postgresql://user@host/name`; creates a missing SQLite file, no tables.

        `session_name` is what PostgreSQL lists its connections under; empty means as its URL says.

        Raises:
            SetupError: The URL, the driver or the SQLite library is unsuitable; the message says what to change.
        """
        try:
            parsed = sa.make_url(url)
        except exc.ArgumentError as error:
            raise SetupError("The database URL cannot be read; write sqlite:///file or postgresql://…") from error
        match parsed.get_backend_name():
            case "sqlite":
                return cls(*_open_sqlite(parsed))
            case "postgresql" | "postgres":
                return cls(*_open_postgresql(parsed, session_name))
            case other:
                raise SetupError(f"Footnote keeps its data in SQLite or PostgreSQL; the URL asks for {other}.")

    @classmethod
    def in_memory(cls) -> "Database":
        """An empty SQLite database that no file holds; it is gone with the object. One transaction at a time."""
        engine = sa.create_engine(
            "sqlite+pysqlite://",
            connect_args={"isolation_level": None, "check_same_thread": False},
            json_serializer=to_json,
            hide_parameters=True,
            poolclass=sa.pool.QueuePool,
            pool_size=1,
            max_overflow=0,
            pool_timeout=_WRITE_WAIT_S,
        )
        _on_connect(engine, pragmas=("temp_store = MEMORY", "foreign_keys = ON"), begin="BEGIN")
        database = cls(engine, engine)
        weakref.finalize(database, engine.dispose)
        return database

    @property
    def kind(self) -> Kind:
        """The database product: `sqlite` or `postgresql`."""
        return kind_of(self._writer)

    @property
    def waiting_writers(self) -> int:
        """The number of `write_shortly` calls that wait for their turn; 0 on PostgreSQL, where none waits here."""
        return self._group.coming

    @contextmanager
    def read(self) -> Iterator[sa.Connection]:
        """One read-only transaction on a snapshot of the database.

        Raises:
            StoreUnavailable: The database is locked, unreachable or out of connections.
        """
        with _domain_errors(), self._reader.connect() as connection, connection.begin():
            yield connection

    @contextmanager
    def write(self) -> Iterator[sa.Connection]:
        """One transaction, committed durably at exit, rolled back when the body raises.

        On SQLite writers take turns, and the lock is taken before the first statement: nothing
        read inside can change before the commit. Must not be nested.

        Raises:
            StoreUnavailable: The database is locked or unreachable; nothing was written.
            StorageFull: The disk has no room; nothing was written.
        """
        with self._turn():
            self._group.end()
            with _domain_errors(), self._writer.connect() as connection, connection.begin():
                yield connection

    @contextmanager
    def write_unflushed(self) -> Iterator[sa.Connection]:
        """As `write`, without waiting for the disk: the commit outlives this process, and not always the machine.

        Only where losing it changes nothing that anyone was told. A later transaction that is kept keeps this one too.

        Raises:
            StoreUnavailable, StorageFull: As `write`.
        """
        with self._turn():
            self._group.end()
            with _domain_errors(), self._writer.connect() as connection, _unflushed(connection):
                yield connection

    @contextmanager
    def write_shortly(self) -> Iterator[sa.Connection]:
        """As `write`, for a few statements: on SQLite waiting writers share one commit (`app.db.group_commit`).

        Raises:
            StoreUnavailable, StorageFull: As `write`; also where the shared commit fails.
        """
        with self._group.member() if self._single_writer else self.write() as connection:
            yield connection

    @contextmanager
    def session(self) -> Iterator[sa.Connection]:
        """One connection in autocommit mode, for locks that last as long as a connection.

        Raises:
            StoreUnavailable: The database is unreachable or out of connections.
        """
        with _domain_errors(), self._writer.connect() as connection:
            yield connection.execution_options(isolation_level="AUTOCOMMIT")

    def connections(self) -> dict[str, int]:
        """The number of connections in use by pool: `reader` and `writer`, which are the same pool on PostgreSQL."""
        pools = {"reader": self._reader.pool, "writer": self._writer.pool}
        return {name: pool.checkedout() for name, pool in pools.items() if isinstance(pool, sa.pool.QueuePool)}

    def close(self) -> None:
        """Close every connection; readers first, so that the writer does the last checkpoint."""
        with self._turn():
            self._group.end()
        self._reader.dispose()
        self._writer.dispose()

    @contextmanager
    def _turn(self) -> Iterator[None]:
        if not self._single_writer:
            yield
            return
        assert self._holder != threading.get_ident(), "a write transaction was opened inside another"
        if not self._lock.acquire(timeout=_WRITE_WAIT_S):
            raise StoreUnavailable("The database is busy; try again in a moment.")
        self._holder = threading.get_ident()
        try:
            yield
        finally:
            self._holder = None
            self._lock.release()


@contextmanager
def _unflushed(connection: sa.Connection) -> Iterator[None]:
    """A transaction whose commit returns before it is on disk; the connection's next one waits for the disk again."""
    if kind_of(connection) == "postgresql":
        with connection.begin():
            connection.exec_driver_sql("SET LOCAL synchronous_commit = off")
            yield
        return
    driver = connection.connection.dbapi_connection
    assert driver is not None, "it is connected"
    driver.execute("PRAGMA synchronous = NORMAL")  # it does nothing inside a transaction
    try:
        with connection.begin():
            yield
    finally:
        driver.execute(f"PRAGMA {_SYNCHRONOUS}")


def require_driver(module: str, *, extra: str) -> None:
    """Check that a driver is installed.

    Raises:
        SetupError: It is missing; the message names the extra to install.
    """
    if importlib.util.find_spec(module) is None:
        raise SetupError(f"The driver {module} is not installed; install footnote-rag[{extra}].")


def check_sqlite(version: tuple[int, ...], options: set[str]) -> None:
    """Check the SQLite library this Python carries, by its version and compile options.

    Raises:
        SetupError: It is too old or was built without full-text search.
    """
    if version < _OLDEST_SQLITE:
        found, needed = (".".join(map(str, numbers)) for numbers in (version, _OLDEST_SQLITE))
        raise SetupError(f"This Python carries SQLite {found}; Footnote needs {needed} or newer.")
    if "ENABLE_FTS5" not in options:
        raise SetupError("This Python's SQLite was built without full-text search (FTS5); use another Python build.")


def _open_sqlite(url: sa.URL) -> tuple[sa.Engine, sa.Engine]:
    if not url.database or url.database == ":memory:":
        raise SetupError("The SQLite database needs a file: sqlite:///path/to/footnote.db")
    url = url.set(drivername="sqlite+pysqlite")
    # isolation_level None: the driver opens no transaction of its own, BEGIN is ours
    arguments = {"isolation_level": None, "check_same_thread": False, "timeout": _BUSY_MS / 1000}
    writer = sa.create_engine(
        url,
        connect_args=arguments,
        json_serializer=to_json,
        hide_parameters=True,  # an error's message must not quote documents
        poolclass=sa.pool.QueuePool,
        pool_size=1,
        max_overflow=0,
        pool_timeout=_WRITE_WAIT_S,
    )
    reader = sa.create_engine(
        url,
        connect_args=arguments,
        json_serializer=to_json,
        hide_parameters=True,
        poolclass=sa.pool.QueuePool,
        pool_size=8,
        max_overflow=32,
    )
    on_both = ("foreign_keys = ON", f"busy_timeout = {_BUSY_MS}")
    on_writer = ("journal_mode = WAL", _SYNCHRONOUS, f"journal_size_limit = {_WAL_LIMIT_BYTES}")
    on_reader = ("wal_autocheckpoint = 0", "query_only = ON")
    _on_connect(writer, pragmas=(*on_both, *on_writer), begin="BEGIN IMMEDIATE")
    _on_connect(reader, pragmas=(*on_both, *on_reader), begin="BEGIN")
    try:
        with writer.connect() as connection:
            options = {row[0] for row in connection.exec_driver_sql("PRAGMA compile_options")}
    except exc.DBAPIError as error:
        writer.dispose()
        raise SetupError("The SQLite file cannot be opened; check its folder, its permissions and the file.") from error
    check_sqlite(sqlite3.sqlite_version_info, options)
    return reader, writer


def _on_connect(engine: sa.Engine, *, pragmas: tuple[str, ...], begin: str) -> None:
    def configure(connection: sqlite3.Connection, _: object) -> None:
        for pragma in pragmas:
            connection.execute(f"PRAGMA {pragma}")

    def start(connection: sa.Connection) -> None:
        driver = connection.connection.dbapi_connection
        assert driver is not None, "it is connected"
        try:
            driver.execute(begin)  # directly: SQLAlchemy takes ten times as long as SQLite
        except sqlite3.Error as error:
            raise exc.DBAPIError.instance(begin, None, error, sqlite3.Error, dialect=engine.dialect) from error

    sa.event.listen(engine, "connect", configure)
    sa.event.listen(engine, "begin", start)


def _open_postgresql(url: sa.URL, session_name: str) -> tuple[sa.Engine, sa.Engine]:
    require_driver("psycopg", extra="postgres")
    named = {"application_name": session_name} if session_name else {}
    engine = sa.create_engine(
        url.set(drivername="postgresql+psycopg"),
        connect_args={"options": f"-c lock_timeout={_LOCK_MS}", "connect_timeout": 5, **named},
        json_serializer=to_json,
        hide_parameters=True,
        pool_pre_ping=True,
        pool_size=10,
        max_overflow=20,
    )
    # REPEATABLE READ: all statements of a read see one snapshot, as on SQLite
    reader = engine.execution_options(isolation_level="REPEATABLE READ", postgresql_readonly=True)
    return reader, engine


def to_json(value: Any) -> str:
    """Compact JSON. Raises ValueError for NaN and infinities, which are not JSON."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


@contextmanager
def _domain_errors() -> Iterator[None]:
    try:
        yield
    except (exc.DataError, OverflowError, UnicodeEncodeError) as error:
        raise InvalidRequest("A number is too large, or a text holds a character that cannot be stored.") from error
    except exc.TimeoutError as error:
        raise StoreUnavailable("The database is busy; try again in a moment.") from error
    except exc.DBAPIError as error:
        match _trouble(error):
            case "full":
                raise StorageFull("The disk has no room for this write.") from error
            case "unavailable":
                raise StoreUnavailable("The database cannot be reached or is locked; try again in a moment.") from error
        raise


def _trouble(error: exc.DBAPIError) -> str | None:
    """The cause of an error: `full`, `unavailable`, or None when the statement is at fault."""
    primary = getattr(error.orig, "sqlite_errorcode", None)
    if primary is not None:
        match primary & 0xFF:  # the low byte is the primary result code
            case sqlite3.SQLITE_FULL:
                return "full"
            case (
                sqlite3.SQLITE_BUSY
                | sqlite3.SQLITE_LOCKED
                | sqlite3.SQLITE_READONLY
                | sqlite3.SQLITE_IOERR
                | sqlite3.SQLITE_CANTOPEN
            ):
                return "unavailable"
        return None
    if getattr(error.orig, "sqlstate", None) == "53100":  # disk_full
        return "full"
    return "unavailable" if isinstance(error, exc.OperationalError) or error.connection_invalidated else None
