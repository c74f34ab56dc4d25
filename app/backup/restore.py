"""Restores a backup: verifies all of it first, unpacks it beside the old installation, then swaps the two."""

import hashlib
import os
import shutil
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import sqlalchemy as sa

from app.backup import data_dir as placement
from app.backup.archive import BackupMember, BackupUnusable, read_archive
from app.backup.contents import BackupManifest, Summary, is_rows, original_of
from app.backup.data_dir import data_dir_lock
from app.backup.verification import Report, Verified, verify
from app.db.lexical import complete_words
from app.db.migration import current_revision, head_revision, upgrade
from app.db.portable import RowLoader
from app.db.session import Database
from app.disk import is_full
from app.documents.ports import ObjectName, Originals
from app.documents.spool import Spool, read_blocks
from app.errors import Conflict, StorageFull, StoreUnavailable
from app.ids import new_id
from app.settings import ServerSettings

OriginalsIn = Callable[[Path], tuple[Spool, Originals]]
"""Opens an empty spool and store in a folder; what they hold need not be flushed to disk one by one."""


@dataclass(frozen=True, slots=True)
class Restored:
    """The result of a restore. `aside` is the folder of the previous installation, None if there was none."""

    manifest: BackupManifest
    summary: Summary
    aside: Path | None


def restore(
    settings: ServerSettings,
    source: Path,
    *,
    originals_in: OriginalsIn,
    force: bool = False,
    report: Report = lambda *_: None,
) -> Restored:
    """Restore the backup `source` into the data dir of `settings`.

    The database keeps the schema of the backup; the next start migrates it and builds the vector and word indexes. A
    database outside the data dir (`FOOTNOTE_DATABASE_URL`) must be empty. It is filled in one transaction just before
    the files are swapped in. It may be SQLite or PostgreSQL, whichever was backed up.

    A store of originals outside the data dir is added to. What it has with the same bytes is left as it is, and what it
    has with others is replaced; the originals that a failed restore added are deleted.

    Raises:
        BackupUnusable: `source` is not a backup, is damaged, or needs a newer or an older Footnote. Nothing was
            changed.
        Conflict: There is an installation already, and `force` is false; or the outside database holds rows.
        SetupError: A running process holds the data dir, or `source` cannot be read.
        StorageFull: The disk is full. The old installation is unchanged.

    Example:
        >>> restore(settings, Path("footnote.backup"), originals_in=opened, force=True).aside
        PosixPath('/data/before-restore-1763600000')
    """
    verified = verify(source, report)
    with data_dir_lock(settings.data_dir):
        if placement.is_used(settings.data_dir) and not force:
            raise Conflict(
                "There is an installation in this data dir. Restore --into another folder, or --force to move it aside."
            )
        folder = placement.prepare(settings.data_dir)
        try:
            needed = verified.bytes - (verified.summary.original_bytes if settings.originals else 0)
            if shutil.disk_usage(folder).free < needed:
                raise StorageFull(f"There is no room: the backup needs {needed >> 20} MiB on this disk.")
            _unpack(source, settings, verified, folder, originals_in(folder), report)
            os.sync()  # once for all: thousands of originals were just written
            aside = placement.place(settings.data_dir)
        except BaseException as error:
            shutil.rmtree(folder, ignore_errors=True)
            if is_full(error):
                raise StorageFull("There is no room for the contents of the backup.") from error
            raise
    return Restored(verified.manifest, verified.summary, aside)


def _unpack(
    source: Path,
    settings: ServerSettings,
    verified: Verified,
    folder: Path,
    originals: tuple[Spool, Originals],
    report: Report,
) -> None:
    url = settings.database_url or f"sqlite:///{folder / 'footnote.db'}"
    added: list[ObjectName] = []
    done = 0
    database = Database.open(url)
    try:
        _refuse_filled(database, verified.manifest)
        upgrade(database, verified.manifest.schema)
        with database.write() as connection:
            loader = _loader(connection)
            for member in read_archive(source):
                if is_rows(member.name):
                    _load(loader, member)
                elif (original := original_of(member.name)) is not None and _put(*originals, original, member):
                    added.append(original)
                done += member.bytes
                report("restoring (MiB)", done >> 20, verified.bytes >> 20)
            loader.finish()
        if verified.manifest.schema == head_revision():  # else the upgrade does
            complete_words(database)
    except BaseException:
        if settings.originals:  # no row will name them
            with suppress(StoreUnavailable):
                originals[1].delete(*added)
        raise
    finally:
        database.close()


def _put(spool: Spool, store: Originals, name: ObjectName, member: BackupMember) -> bool:
    """Store an original; returns whether the store had none of this name."""
    received = spool.receive(read_blocks(member.content), name=new_id("in"), limit=member.bytes)
    try:
        store.put(name, received)
    except FileExistsError:
        digest = hashlib.sha256()
        with store.open(name) as blocks:
            for block in blocks:
                digest.update(block)
        if digest.hexdigest() != received.sha256:
            store.delete(name)
            store.put(name, received)
        return False
    finally:
        spool.discard(received)
    return True


def _refuse_filled(database: Database, manifest: BackupManifest) -> None:
    current = current_revision(database)
    if current is not None and current != manifest.schema:
        raise Conflict("The database has tables already; FOOTNOTE_DATABASE_URL must name an empty one.")


def _loader(connection: sa.Connection) -> RowLoader:
    try:
        return RowLoader(connection)
    except ValueError as error:
        raise Conflict("The database is not empty; FOOTNOTE_DATABASE_URL must name an empty one.") from error


def _load(loader: RowLoader, member: BackupMember) -> None:
    try:
        loader.load(member.content.read())
    except ValueError as error:
        raise BackupUnusable("The backup holds rows that do not fit its schema.") from error
