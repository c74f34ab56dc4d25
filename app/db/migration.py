"""Migrates the database to the schema of this version of Footnote.

An upgrade is one transaction on both databases: when it is interrupted, the old schema stays, and the next start
repeats the upgrade. Words that it leaves chunks without are written after it, in small transactions.
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

from app.db.lexical import complete_words
from app.db.safety_copy import copy_before
from app.db.session import Database
from app.errors import SetupError
from app.telemetry.logs import logger
from migrations.first_release import BRING_UP, FIRST, differences, is_too_old

_NAMED = 10  # objects that a refusal names


def upgrade(database: Database, revision: str = "head", *, copies: Path | None = None) -> Path | None:
    """Migrate up to `revision`, if the database is older. At the newest one, complete the words of its chunks.

    Args:
        database: Of any revision from the first release on; without tables it gets them all.
        revision: The target.
        copies: The folder for a copy of a SQLite database, made before its tables are changed; None makes no copy.

    Returns:
        The copy, or None when none was made.

    Raises:
        SetupError: A newer Footnote made the database, it is older than the first release, it is not as the first
            release made it, or it cannot be copied or migrated. It is unchanged.
    """
    copy = _upgraded(database, revision, copies)
    if revision in {"head", head_revision()}:
        complete_words(database)
    return copy


def _upgraded(database: Database, revision: str, copies: Path | None) -> Path | None:
    refuse_unknown(database)
    before, copy = current_revision(database), None
    if before == (head_revision() if revision == "head" else revision):
        return None
    if before == FIRST:
        _require_first_release(database)
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
    refuse_unknown(database)
    if current_revision(database) != head_revision():
        raise SetupError(
            "The database has an older schema, or none. Stop all processes that use it and run `footnote migrate`; "
            "a process beside others changes no schema."
        )


def downgrade(database: Database, revision: str) -> None:
    """Migrate down to `revision`; `base` drops every table.

    Raises:
        SetupError: The database was made by a newer Footnote, or is older than the first release.
    """
    refuse_unknown(database)
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
    search = name is not None and name.startswith(("chunk_fts", "chunk_trigram", "chunk_words"))
    return not (reflected and kind in ("table", "column", "index") and search)


def refuse_unknown(database: Database) -> None:
    """Check that the schema is of this version of Footnote or of one from the first release on.

    Raises:
        SetupError: A newer version made it, or one before the first release.
    """
    current = current_revision(database)
    if current is not None and is_too_old(current):
        raise SetupError(
            f"The database is too old for this Footnote: it is at revision {current}, and the oldest that can be "
            f"brought up is {FIRST}. {BRING_UP} Nothing was changed."
        )
    if current is not None and not knows(current):
        raise SetupError(
            f"The database was made by a newer Footnote (revision {current} is unknown to this one); "
            "install that version again, or restore a backup from before it."
        )


def _require_first_release(database: Database) -> None:
    """Check that a database at the first release's revision has exactly its objects: the next migrations need them.

    Raises:
        SetupError: One is missing, differs, or is not of Footnote, and is named; or the database does not let us look.
    """
    try:
        with database.write() as connection:
            differing = differences(connection)
    except sa.exc.ProgrammingError as error:
        raise SetupError(
            f"The database is at revision {FIRST} and is compared with what that revision makes, for which its user "
            "needs the right to create schemas (GRANT CREATE ON DATABASE). Nothing was changed."
        ) from error
    if differing:
        more = f"; and {len(differing) - _NAMED} more" if len(differing) > _NAMED else ""
        raise SetupError(
            f"The database records revision {FIRST}, and is not as that revision makes it: "
            f"{'; '.join(differing[:_NAMED])}{more}. Put right what is named, or restore a backup. Nothing was changed."
        )


def _config(connection: sa.Connection | None = None) -> Config:
    config = Config()
    config.set_main_option("script_location", str(files("migrations")).replace("%", "%%"))
    attributes: dict[str, Any] = config.attributes
    attributes["connection"] = connection
    return config
