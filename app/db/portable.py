"""Dumps and loads all rows of a database in a format that suits both SQLite and PostgreSQL.

The format is JSON lines (RFC 8259), one table per part: a first line `{"table", "columns"}`, then one array per row;
bytes are base64. Indexes, full-text rows and generated columns are left out, since a migrated database builds them.
Tables and columns are read from the database and not from `app.db.tables`, so an older schema keeps its own columns.
"""

import base64
import json
from collections.abc import Iterator
from typing import Any

import sqlalchemy as sa

from app.db.dialect import advance_sequences
from app.db.session import to_json

_PART_BYTES = 8 << 20
_AT_ONCE = 500  # rows fetched at a time
_DERIVED = ("chunk_fts", "chunk_trigram", "chunk_words", "alembic_version", "sqlite_")
_SECRET = ("job_secret",)  # none outlives its job
_GENERATED = frozenset({"search_vector"})  # of schemas before 0036
_SEEDED = frozenset({"key_counter"})  # the migrations insert its row


def count_rows(connection: sa.Connection) -> dict[str, int]:
    """The number of rows by table, in the order in which tables can be loaded."""
    return {
        table.name: int(connection.execute(sa.select(sa.func.count()).select_from(table)).scalar_one())
        for table in _tables(connection)
    }


def dump_rows(connection: sa.Connection) -> Iterator[tuple[str, int, bytes]]:
    """Iterate over (table, rows, part) of every table with rows, in the order in which `RowLoader` loads them.

    A part is at most about 8 MiB, or one larger row. All parts are of one snapshot: that of the connection's
    transaction.
    """
    for table in _tables(connection):
        columns = [column.name for column in table.columns]
        head = to_json({"table": table.name, "columns": columns}).encode() + b"\n"
        part, rows = bytearray(head), 0
        for row in connection.execute(sa.select(table), execution_options={"yield_per": _AT_ONCE}):
            part += to_json([_portable(value) for value in row]).encode() + b"\n"
            rows += 1
            if len(part) >= _PART_BYTES:
                yield table.name, rows, bytes(part)
                part, rows = bytearray(head), 0
        if rows:
            yield table.name, rows, bytes(part)


class RowLoader:
    """Loads dumped rows into a freshly migrated database, inside the caller's transaction.

    Example:
        >>> loader = RowLoader(connection)
        >>> sum(loader.load(part) for _, _, part in dump_rows(other))
        1204
        >>> loader.finish()
    """

    def __init__(self, connection: sa.Connection) -> None:
        """Read the tables of the database.

        Raises:
            ValueError: One of them has rows already.
        """
        self._connection = connection
        self._tables = {table.name: table for table in _tables(connection)}
        for name, table in self._tables.items():
            if name in _SEEDED:
                connection.execute(sa.delete(table))
            elif connection.execute(sa.select(sa.literal(1)).select_from(table).limit(1)).scalar() is not None:
                raise ValueError(f"the table {name} holds rows")

    def load(self, part: bytes) -> int:
        """Insert the rows of a part from `dump_rows`; returns their number.

        Raises:
            ValueError: The database does not have the table or a column.
        """
        lines = part.splitlines()
        head = json.loads(lines[0])
        table = self._tables.get(head["table"])
        if table is None or not set(head["columns"]) <= set(table.columns.keys()):
            raise ValueError("rows of a table this schema does not have")
        columns = [table.columns[name] for name in head["columns"]]
        rows = [
            {column.name: _stored(value, column) for column, value in zip(columns, json.loads(line), strict=True)}
            for line in lines[1:]
        ]
        if rows:
            self._connection.execute(sa.insert(table), rows)
        return len(rows)

    def finish(self) -> None:
        """Advance PostgreSQL's sequences past the inserted keys."""
        advance_sequences(self._connection, self._tables.values())


def _tables(connection: sa.Connection) -> list[sa.TableClause]:
    """The tables with data that cannot be derived, each after those its foreign keys refer to."""
    inspector = sa.inspect(connection)
    found = []
    for name, _ in inspector.get_sorted_table_and_fkc_names():
        if name is None or name.startswith(_DERIVED + _SECRET):
            continue
        columns = [
            sa.column(column["name"], _null_is_null(column["type"]))
            for column in inspector.get_columns(name)
            if column["name"] not in _GENERATED
        ]
        found.append(sa.table(name, *columns))
    return found


def _null_is_null(kind: sa.types.TypeEngine[Any]) -> sa.types.TypeEngine[Any]:
    """The column type, for JSON with SQL's NULL instead of JSON's."""
    return type(kind)(none_as_null=True) if isinstance(kind, sa.JSON) else kind


def _portable(value: Any) -> Any:
    return base64.b64encode(value).decode("ascii") if isinstance(value, bytes | memoryview) else value


def _stored(value: Any, column: sa.ColumnClause[Any]) -> Any:
    if value is not None and isinstance(column.type, sa.LargeBinary):
        return base64.b64decode(value, validate=True)
    return value
