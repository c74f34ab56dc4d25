"""Bringing the schema to this version of Footnote.

A whole upgrade is one transaction on both databases: one that is killed half way leaves the old
schema, and the next start does it again.
"""

from importlib.resources import files
from typing import Any

import sqlalchemy as sa
from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory

from app.db.session import Database
from app.errors import SetupError


def upgrade(database: Database, revision: str = "head") -> None:
    """Migrate up to `revision`; nothing to do is fine.

    Raises:
        SetupError: The database was made by a newer Footnote.
    """
    _refuse_unknown(database)
    with database.write() as connection:
        command.upgrade(_config(connection), revision)


def downgrade(database: Database, revision: str) -> None:
    """Migrate down to `revision`; `base` removes every table and what is in them.

    Raises:
        SetupError: The database was made by a newer Footnote.
    """
    _refuse_unknown(database)
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


def check_schema(database: Database) -> None:
    """Check that the schema is the one this version of Footnote works with.

    Raises:
        SetupError: It is missing, older or newer; the message says what to do.
    """
    _refuse_unknown(database)
    current = current_revision(database)
    if current is None:
        raise SetupError("The database has no tables yet; run `footnote migrate`.")
    if current != head_revision():
        raise SetupError(f"The database is at revision {current}, before {head_revision()}; run `footnote migrate`.")


def is_mapped(_: object, name: str | None, kind: str, reflected: bool, __: object) -> bool:
    """Whether autogeneration compares an object with the metadata: all but the full-text indexes."""
    search = name is not None and name.startswith(("chunk_fts", "chunk_trigram", "search_vector", "ix_chunk_search"))
    return not (reflected and kind in ("table", "column", "index") and search)


def _refuse_unknown(database: Database) -> None:
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
