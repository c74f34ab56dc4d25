"""Every row of a database in a form that SQLite and PostgreSQL both take in.

JSON lines, one table a part (RFC 8259): a first line `{"table", "columns"}`, then one array a row; bytes are base64.
Indexes, full-text rows and generated columns are left out: a migrated database makes them itself. Tables
and columns are read from the database and not from `app.db.tables.documents`, so rows of an older schema are
written and read by its own columns.
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
_DERIVED = ("chunk_fts", "chunk_trigram", "alembic_version", "sqlite_")
_GENERATED = frozenset({"search_vector"})
_SEEDED = frozenset({"key_counter"})  # the migrations put a row into it


def count_rows(connection: sa.Connection) -> dict[str, int]:
    """How many rows each table has, tables in the order in which they can be filled."""
    return {
        table.name: int(connection.execute(sa.select(sa.func.count()).select_from(table)).scalar_one())
        for table in _tables(connection)
    }


def dump_rows(connection: sa.Connection) -> Iterator[tuple[str, int, bytes]]:
    """(table, rows, part) for every table that has rows, in the order in which `RowLoader` wants them.

    A part is at most about 8 MiB, or one row that is larger. The connection's transaction is what
    makes the parts one moment of the database.
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
    """Fills a database that was just migrated, inside the caller's transaction."""

    def __init__(self, connection: sa.Connection) -> None:
        """Look at the tables there are.

        Raises:
            ValueError: One of them holds rows already.
        """
        self._connection = connection
        self._tables = {table.name: table for table in _tables(connection)}
        for name, table in self._tables.items():
            if name in _SEEDED:
                connection.execute(sa.delete(table))
            elif connection.execute(sa.select(sa.literal(1)).select_from(table).limit(1)).scalar() is not None:
                raise ValueError(f"the table {name} holds rows")

    def load(self, part: bytes) -> int:
        """Insert the rows of a part `dump_rows` made; how many.

        Raises:
            ValueError: There is no such table or column here.
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
        """Let PostgreSQL's sequences go on behind the numbers that were inserted."""
        advance_sequences(self._connection, self._tables.values())


def _tables(connection: sa.Connection) -> list[sa.TableClause]:
    """The tables that hold what cannot be derived, each behind those its foreign keys name."""
    inspector = sa.inspect(connection)
    found = []
    for name, _ in inspector.get_sorted_table_and_fkc_names():
        if name is None or name.startswith(_DERIVED):
            continue
        columns = [
            sa.column(column["name"], _null_is_null(column["type"]))
            for column in inspector.get_columns(name)
            if column["name"] not in _GENERATED
        ]
        found.append(sa.table(name, *columns))
    return found


def _null_is_null(kind: sa.types.TypeEngine[Any]) -> sa.types.TypeEngine[Any]:
    """JSON columns here keep SQL's NULL and never JSON's."""
    return type(kind)(none_as_null=True) if isinstance(kind, sa.JSON) else kind


def _portable(value: Any) -> Any:
    return base64.b64encode(value).decode("ascii") if isinstance(value, bytes | memoryview) else value


def _stored(value: Any, column: sa.ColumnClause[Any]) -> Any:
    if value is not None and isinstance(column.type, sa.LargeBinary):
        return base64.b64decode(value, validate=True)
    return value
