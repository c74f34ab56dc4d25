"""Copies a SQLite database before a migration changes it, and keeps the newest three copies."""

import os
import shutil
import sqlite3
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from app.db.session import Database
from app.errors import SetupError

KEPT = 3
_SPARE_BYTES = 16 << 20  # the migration itself needs room as well


def copy_before(database: Database, revision: str, *, folder: Path) -> Path | None:
    """Copy the database into `folder` as `before-REVISION-DATE.db`, durably; None for PostgreSQL.

    Uses SQLite's online backup (sqlite.org/backup.html), which includes the write-ahead log.

    Raises:
        SetupError: The disk is full, or the copy could not be written; nothing was changed.
    """
    if database.kind != "sqlite":
        return None
    name = f"before-{revision}-{datetime.now(UTC):%Y%m%dT%H%M%S.%fZ}.db"
    unfinished = folder / f"{name}.unfinished"
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        for left in folder.glob("before-*.unfinished"):  # of an interrupted copy
            left.unlink()
        os.close(os.open(unfinished, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        _copy(database, unfinished)
        unfinished.replace(folder / name)
        _sync(folder)
    except (OSError, sqlite3.Error) as error:
        with suppress(OSError):
            unfinished.unlink()
        reason = error.strerror if isinstance(error, OSError) else type(error).__name__
        raise SetupError(
            f"The database must be upgraded, and the copy that is made of it before cannot be written ({reason}). "
            "Nothing was changed."
        ) from error
    for old in sorted(folder.glob("before-*.db"), key=lambda path: path.stat().st_mtime_ns)[:-KEPT]:
        old.unlink()
    return folder / name


def _copy(database: Database, path: Path) -> None:
    with database.read() as connection:
        source = connection.connection.driver_connection
        assert isinstance(source, sqlite3.Connection), "checked in copy_before"
        (pages,), (page_bytes,) = (source.execute(f"PRAGMA {name}").fetchone() for name in ("page_count", "page_size"))
        needed = pages * page_bytes + _SPARE_BYTES
        if shutil.disk_usage(path.parent).free < needed:
            raise SetupError(
                f"The database must be upgraded, and there is no room for a copy of it before: {needed >> 20} MiB are "
                "needed in the data dir. Nothing was changed."
            )
        target = sqlite3.connect(path)
        try:
            source.backup(target)
            if target.execute("PRAGMA quick_check(1)").fetchone() != ("ok",):
                raise sqlite3.DatabaseError("the copy is damaged")
        finally:
            target.close()
    _sync(path)


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
