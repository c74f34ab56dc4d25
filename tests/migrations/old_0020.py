"""Databases as the migrations before the first release left them at 0020: their dumps, and rows in every table.

In `dumps_of_0020`, `sqlite.sql` is the text of `sqlite_master`, and `postgresql.sql` what `pg_dump` wrote, both of
databases that were migrated from 0001 to 0020, one migration after the other. `rows.jsonl` holds the same rows for
both: an open job and an open call, and turns that were worded, quoted, refused, replied to, and stored before there
was a record.
"""

import itertools
import json
import sqlite3
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from app.db.portable import RowLoader, dump_rows
from app.db.session import Database, to_json

_FOLDER = Path(__file__).with_name("dumps_of_0020")

Rows = dict[str, list[dict[str, Any]]]
"""The rows by table, sorted; each by column."""


def build(database: Database) -> Rows:
    """Make the tables of an empty database as they were, with rows in each; return the rows."""
    script = (_FOLDER / f"{database.kind}.sql").read_text(encoding="utf-8")
    with database.write() as connection:
        driver = connection.connection.driver_connection
        assert driver is not None
        if isinstance(driver, sqlite3.Connection):
            statement = ""
            for line in script.splitlines():
                statement += f"{line}\n"
                if sqlite3.complete_statement(statement):
                    driver.execute(statement)
                    statement = ""
        else:
            driver.execute(script)
        loader = RowLoader(connection)
        for part in _parts():
            loader.load(part)
        loader.finish()
    return rows_of(database)


def rows_of(database: Database) -> Rows:
    """All rows that are not derived, as they are backed up."""
    found: Rows = {}
    with database.read() as connection:
        for table, _, part in dump_rows(connection):
            lines = [json.loads(line) for line in part.splitlines()]
            rows = (dict(zip(lines[0]["columns"], row, strict=True)) for row in lines[1:])
            found.setdefault(table, []).extend(rows)
    return {table: sorted(rows, key=to_json) for table, rows in found.items()}


def tables_of(database: Database) -> set[str]:
    with database.read() as connection:
        return set(sa.inspect(connection).get_table_names())


def _parts() -> list[bytes]:
    """A part for each table, in the form that `app.db.portable` loads."""
    lines = (_FOLDER / "rows.jsonl").read_bytes().splitlines()
    heads = itertools.accumulate(line.startswith(b"{") for line in lines)
    return [
        b"\n".join(line for _, line in group)
        for _, group in itertools.groupby(zip(heads, lines, strict=True), key=lambda one: one[0])
    ]
