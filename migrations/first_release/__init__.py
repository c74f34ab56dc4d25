"""The schema of the first release, revision 0020: makes it, drops it, and compares a database with it.

The migrations before it were folded into one, whose SQL is beside this module, one file a dialect. That a database
records 0020 does not say that it has what 0020 makes; the next migrations need it, so it is compared first.
"""

import re
from collections.abc import Mapping
from importlib.resources import files
from typing import TypeAlias

import sqlalchemy as sa

FIRST = "0020"
"""The oldest revision from which the migrations go on."""

LAST_BEFORE = "c2f91f6 of 28 November 2026"
"""The last commit of Footnote whose migrations begin before `FIRST`."""

BRING_UP = f"Install the commit {LAST_BEFORE}, run its `footnote migrate`, then install this version again."
"""How a database that is too old can be brought up."""

_FOLDED = frozenset(f"{number:04}" for number in range(1, int(FIRST)))
_MADE = re.compile(r"CREATE (?:VIRTUAL )?(TABLE|FUNCTION) (\w+)")
_SPACE = re.compile(r"\s*([(),;])\s*|\s+")
_SCRATCH = "footnote_first_release"  # a schema of PostgreSQL that no other transaction sees

Objects: TypeAlias = Mapping[tuple[str, str], str]
"""The definition of each object, by the table that it belongs to and its kind and name."""

_PRINTED = {
    # What FTS5 makes beside its tables belongs to the version of SQLite.
    "sqlite": r"""
SELECT tbl_name, type || ' ' || name, sql FROM sqlite_master
WHERE tbl_name <> 'alembic_version' AND name NOT LIKE 'sqlite\_%' ESCAPE '\'
AND NOT (type = 'table' AND (name LIKE 'chunk\_fts\__%' ESCAPE '\' OR name LIKE 'chunk\_trigram\__%' ESCAPE '\'))
""",
    "postgresql": """
WITH ours AS (
    SELECT c.oid, c.relname, c.relkind, c.relpersistence FROM pg_class c
    WHERE c.relnamespace = (SELECT oid FROM pg_namespace WHERE nspname = current_schema())
    AND c.relkind IN ('r', 'p', 'v', 'm', 'f', 'S') AND c.relname <> 'alembic_version'
    AND NOT EXISTS (
        SELECT 1 FROM pg_depend d WHERE d.classid = 'pg_class'::regclass AND d.objid = c.oid AND d.deptype = 'e'
    )
)
SELECT relname, CASE relkind WHEN 'S' THEN 'sequence ' WHEN 'v' THEN 'view ' ELSE 'table ' END || relname,
    concat_ws(' ', relkind, relpersistence, (
        SELECT string_agg(
            concat_ws(' ', a.attname, format_type(a.atttypid, a.atttypmod), CASE WHEN a.attnotnull THEN 'NOT NULL' END,
                a.attidentity, a.attgenerated, pg_get_expr(e.adbin, e.adrelid, true)),
            ', ' ORDER BY a.attnum)
        FROM pg_attribute a LEFT JOIN pg_attrdef e ON e.adrelid = a.attrelid AND e.adnum = a.attnum
        WHERE a.attrelid = ours.oid AND a.attnum > 0 AND NOT a.attisdropped
    ))
FROM ours
UNION ALL
SELECT relname, 'index ' || i.indexrelid::regclass, concat_ws(' ', i.indisvalid, pg_get_indexdef(i.indexrelid, 0, true))
FROM pg_index i JOIN ours ON ours.oid = i.indrelid
UNION ALL
SELECT relname, 'constraint ' || conname, concat_ws(' ', convalidated, pg_get_constraintdef(c.oid, true))
FROM pg_constraint c JOIN ours ON ours.oid = c.conrelid WHERE c.contype <> 'n'
UNION ALL
SELECT relname, 'trigger ' || tgname, concat_ws(' ', tgenabled, pg_get_triggerdef(t.oid, true))
FROM pg_trigger t JOIN ours ON ours.oid = t.tgrelid WHERE NOT t.tgisinternal
UNION ALL
SELECT p.proname, 'function ' || p.proname,
    concat_ws(
        ' ', pg_get_function_arguments(p.oid), pg_get_function_result(p.oid), p.provolatile, p.prosecdef, p.prosrc
    )
FROM pg_proc p
WHERE p.pronamespace = (SELECT oid FROM pg_namespace WHERE nspname = current_schema())
AND NOT EXISTS (
    SELECT 1 FROM pg_depend d WHERE d.classid = 'pg_proc'::regclass AND d.objid = p.oid AND d.deptype = 'e'
)
""",
}
"""The query of each dialect for the table, the kind and name, and the definition of every object."""


def is_too_old(revision: str) -> bool:
    """Whether `revision` is one of those before the first release, from which no migration goes on."""
    return revision in _FOLDED


def make(connection: sa.Connection) -> None:
    """Create the first release's objects in an empty database, inside the caller's transaction."""
    for statement in _statements(connection):
        connection.execute(sa.text(statement))


def drop(connection: sa.Connection) -> None:
    """Drop all that `make` created, the last first; indexes and triggers go with their tables."""
    for statement in reversed(_statements(connection)):
        if made := _MADE.match(statement):
            connection.execute(sa.text(f"DROP {made[1]} {made[2]}"))


def differences(connection: sa.Connection) -> list[str]:
    """The differences of a database at revision 0020 from the first release, a part of a sentence each.

    `connection` is inside a transaction that may write, in which nothing is left changed. PostgreSQL's user needs the
    right to create schemas.
    """
    found, wanted = objects(connection), _wanted(connection)
    tables = {table for table, _ in found.keys() & wanted.keys()}
    said = []
    for each in sorted(found.keys() | wanted.keys()):
        table, named = each
        alone = table in tables or named.endswith(f" {table}")  # of a missing or foreign table, not its indexes too
        if each not in found and alone:
            said.append(f"{named} is missing")
        elif each not in wanted and alone:
            said.append(f"{named} is not of Footnote")
        elif each in found and each in wanted and found[each] != wanted[each]:
            said.append(f"{named} differs")
    return said


def _statements(connection: sa.Connection) -> list[str]:
    """The frozen SQL of the connection's dialect: one statement between blank lines."""
    script = files(__name__).joinpath(f"{connection.dialect.name}.sql").read_text(encoding="utf-8")
    return [statement.strip().removesuffix(";") for statement in script.split("\n\n")]


def _wanted(connection: sa.Connection) -> Objects:
    """The objects of the first release, made where nobody sees them and read back as the database prints them.

    Databases print expressions in words of their own, which differ between their versions; so both sides are printed.
    """
    if connection.dialect.name == "sqlite":
        engine = sa.create_engine("sqlite://")
        try:
            with engine.begin() as scratch:
                make(scratch)
                return objects(scratch)
        finally:
            engine.dispose()
    with connection.begin_nested() as savepoint:
        connection.exec_driver_sql(f"CREATE SCHEMA {_SCRATCH}")
        connection.exec_driver_sql(f"SET LOCAL search_path TO {_SCRATCH}")
        make(connection)
        wanted = objects(connection)
        savepoint.rollback()
        return wanted


def objects(connection: sa.Connection) -> Objects:
    """The definition of each object of the connection's schema that is not an extension's, FTS5's or Alembic's own."""
    return {
        (table, named): _SPACE.sub(lambda space: space[1] or " ", definition).strip()
        for table, named, definition in connection.execute(sa.text(_PRINTED[connection.dialect.name]))
    }
