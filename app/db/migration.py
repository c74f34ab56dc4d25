"""Migrates the database to the schema of this version of Footnote.

An upgrade is one transaction on both databases: when it is interrupted, the old schema stays, and the next start
repeats the upgrade.
"""

from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory

from app.db.safety_copy import copy_before
from app.db.session import Database
from app.errors import SetupError
from app.telemetry.logs import logger


def upgrade(database: Database, revision: str = "head", *, copies: Path | None = None) -> Path | None:
    """Migrate up to `revision`, if the database is older.

    Args:
        database: Of any older revision.
        revision: The target.
        copies: The folder for a copy of a SQLite database, made before its tables are changed; None makes no copy.

    Returns:
        The copy, or None when none was made.

    Raises:
        SetupError: A newer Footnote made the database, or it cannot be copied or migrated. It is unchanged.
    """
    refuse_newer(database)
    before, copy = current_revision(database), None
    if before == head_revision() and revision == "head":
        return None
    if copies is not None and before is not None:
        copy = copy_before(database, before, folder=copies)
        kept = copy.name if copy is not None else "none: PostgreSQL is copied by pg_dump"
        logger().info("schema.upgrade", before=before, after=head_revision(), copy=kept)
    try:
        with database.write() as connection:
            command.upgrade(_config(connection), revision)
    except sa.exc.DBAPIError as error:
        if copies is None:
            raise
        where = f" A copy from before is {copy.name} in the data dir's folder {copy.parent.name}." if copy else ""
        raise SetupError(
            f"The database could not be brought from revision {before} to {head_revision()}; it is unchanged.{where}"
        ) from error
    return copy


def require_newest(database: Database) -> None:
    """Check that the schema is of this version of Footnote, without changing it.

    Raises:
        SetupError: It is older or newer.
    """
    refuse_newer(database)
    if current_revision(database) != head_revision():
        raise SetupError(
            "The database has an older schema, or none. Stop all processes that use it and run `footnote migrate`; "
            "a process beside others changes no schema."
        )


def downgrade(database: Database, revision: str) -> None:
    """Migrate down to `revision`; `base` drops every table.

    Raises:
        SetupError: The database was made by a newer Footnote.
    """
    refuse_newer(database)
    with database.write() as connection:
        command.downgrade(_config(connection), revision)


def current_revision(database: Database) -> str | None:
    """The revision of the database's schema; None before the first migration."""
    with database.read() as connection:
        return MigrationContext.configure(connection).get_current_revision()


def head_revision() -> str:
    """The revision that this version of Footnote needs."""
    head, _ = _revisions()
    return head


def knows(revision: str) -> bool:
    """Whether this version of Footnote has the revision `revision`."""
    _, known = _revisions()
    return revision in known


@cache
def _revisions() -> tuple[str, frozenset[str]]:
    """The newest revision and all of them. Alembic reads every file of `migrations/versions` to tell."""
    scripts = ScriptDirectory.from_config(_config())
    head = scripts.get_current_head()
    assert head is not None, "there are migrations"
    return head, frozenset(script.revision for script in scripts.walk_revisions())


def is_mapped(_: object, name: str | None, kind: str, reflected: bool, __: object) -> bool:
    """Whether Alembic compares an object with the metadata: all but the full-text indexes."""
    search = name is not None and name.startswith(("chunk_fts", "chunk_trigram", "search_vector", "ix_chunk_search"))
    return not (reflected and kind in ("table", "column", "index") and search)


def refuse_newer(database: Database) -> None:
    """Check that the schema is of this version of Footnote or an older one.

    Raises:
        SetupError: A newer version made it.
    """
    current = current_revision(database)
    if current is not None and not knows(current):
        raise SetupError(
            f"The database was made by a newer Footnote (revision {current} is unknown to this one); "
            "install that version again, or restore a backup from before it."
        )


def _config(connection: sa.Connection | None = None) -> Config:
    config = Config()
    config.set_main_option("script_location", str(files("migrations")).replace("%", "%%"))
    attributes: dict[str, Any] = config.attributes
    attributes["connection"] = connection
    return config
