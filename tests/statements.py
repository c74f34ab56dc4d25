"""Collects the SQL that one database executes; other databases of the same process do not count."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import sqlalchemy as sa

from app.db.session import Database


@contextmanager
def executions_of(database: Database) -> Iterator[list[tuple[str, Any]]]:
    """The statements and parameters that `database` executes inside the block, in any thread.

    Servers that other tests share may work in threads of this process meanwhile: their databases are not listened to.
    """
    executed: list[tuple[str, Any]] = []

    def note(_connection: Any, _cursor: Any, statement: str, parameters: Any, *_: Any) -> None:
        executed.append((statement, parameters))

    with database.read() as connection:
        engines = {connection.engine}
    with database.write() as connection:
        engines.add(connection.engine)
    with ExitStack() as listening:
        for engine in engines:
            sa.event.listen(engine, "before_cursor_execute", note)
            listening.callback(sa.event.remove, engine, "before_cursor_execute", note)
        yield executed
