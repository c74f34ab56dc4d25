"""Bringing the schema to this version of Footnote.

A whole upgrade is one transaction on both databases: one that is killed half way leaves the old
schema, and the next start does it again.
"""

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
    """Migrate up to `revision`; nothing to do is fine.

    Args:
        database: Of any older revision.
        revision: The one to end at.
        copies: Folder that a copy of a SQLite database goes into, before its tables are changed.

    Returns:
        The copy that was made, if any.

    Raises:
        SetupError: The database was made by a newer Footnote, cannot be copied, or cannot be migrated; it is as before.
    """
    refuse_newer(database)
    before, copy = current_revision(database), None
    changes = before is not None and before != head_revision()
    if copies is not None and before is not None and changes:
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
            f"The database could not be brought from revision {before} to {head_revision()}; it is as it was.{where}"
        ) from error
    return copy


def downgrade(database: Database, revision: str) -> None:
    """Migrate down to `revision`; `base` removes every table and what is in them.

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
    """The revision this version of Footnote works with."""
    head = ScriptDirectory.from_config(_config()).get_current_head()
    assert head is not None, "there are migrations"
    return head


def knows(revision: str) -> bool:
    """Whether `revision` is one of this version's, or of one before it."""
    return revision in {script.revision for script in ScriptDirectory.from_config(_config()).walk_revisions()}


def is_mapped(_: object, name: str | None, kind: str, reflected: bool, __: object) -> bool:
    """Whether autogeneration compares an object with the metadata: all but the full-text indexes."""
    search = name is not None and name.startswith(("chunk_fts", "chunk_trigram", "search_vector", "ix_chunk_search"))
    return not (reflected and kind in ("table", "column", "index") and search)


def refuse_newer(database: Database) -> None:
    """Check that the schema is one this version knows, its own or an older one.

    Raises:
        SetupError: It is not.
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
