"""Restores a backup: verifies all of it first, unpacks it beside the old installation, then swaps the two."""

import os
import shutil
from dataclasses import dataclass
from pathlib import Path

import sqlalchemy as sa

from app.backup import data_dir as placement
from app.backup.archive import BackupUnusable, Member, read_archive
from app.backup.contents import MANIFEST, SUMMARY, Manifest, Summary, is_rows, original_of
from app.backup.data_dir import data_dir_lock
from app.backup.snapshot import Report
from app.db.migration import current_revision, knows, upgrade
from app.db.portable import RowLoader
from app.db.session import Database
from app.disk import is_full
from app.documents.originals import FileStore, read_blocks
from app.errors import Conflict, SetupError, StorageFull
from app.settings import ServerSettings

_SMALL = 64 << 20  # bytes; a larger manifest or summary is not one of ours


@dataclass(frozen=True, slots=True)
class Restored:
    """The result of a restore. `aside` is the folder of the previous installation, None if there was none."""

    manifest: Manifest
    summary: Summary
    aside: Path | None


def restore(
    settings: ServerSettings, source: Path, *, force: bool = False, report: Report = lambda *_: None
) -> Restored:
    """Restore the backup `source` into the data dir of `settings`.

    The database keeps the schema of the backup; the next start migrates it and builds the vector and word indexes. A
    database outside the data dir (`FOOTNOTE_DATABASE_URL`) must be empty. It is filled in one transaction just before
    the files are swapped in. It may be SQLite or PostgreSQL, whichever was backed up.

    Raises:
        BackupUnusable: `source` is not a backup, is damaged, or needs a newer Footnote. Nothing was changed.
        Conflict: There is an installation already, and `force` is false; or the outside database holds rows.
        SetupError: A running process holds the data dir, or `source` cannot be read.
        StorageFull: The disk is full. The old installation is unchanged.

    Example:
        >>> restore(settings, Path("footnote.backup"), force=True).aside
        PosixPath('/data/before-restore-1763600000')
    """
    manifest, summary, size = _verify(source, report)
    with data_dir_lock(settings.data_dir):
        if placement.is_used(settings.data_dir) and not force:
            raise Conflict(
                "There is an installation in this data dir. Restore --into another folder, or --force to move it aside."
            )
        folder = placement.prepare(settings.data_dir)
        try:
            if shutil.disk_usage(folder).free < size:
                raise StorageFull(f"There is no room: the backup needs {size >> 20} MiB on this disk.")
            _unpack(source, settings, manifest, folder, size=size, report=report)
            os.sync()  # once for all: thousands of originals were just written
            aside = placement.place(settings.data_dir)
        except BaseException as error:
            shutil.rmtree(folder, ignore_errors=True)
            if is_full(error):
                raise StorageFull("There is no room for the contents of the backup.") from error
            raise
    return Restored(manifest, summary, aside)


def read_manifest(source: Path) -> Manifest:
    """Read the manifest of a backup, without verifying the rest.

    Raises:
        BackupUnusable: The file is not a backup, or needs a newer Footnote.
        SetupError: The file cannot be read.
    """
    try:
        for member in read_archive(source):
            if member.name != MANIFEST or member.bytes > _SMALL:
                break
            return _usable(Manifest.decode(member.content.read()))
    except OSError as error:
        raise SetupError(f"The backup cannot be read: {error.strerror}.") from error
    raise BackupUnusable("The file is not a backup of Footnote: it does not begin with a manifest.")


def _usable(manifest: Manifest) -> Manifest:
    if not knows(manifest.schema):
        raise BackupUnusable(
            f"The backup was made by a newer Footnote (schema {manifest.schema} is unknown to this one); "
            "restore it with that version."
        )
    return manifest


def _verify(source: Path, report: Report) -> tuple[Manifest, Summary, int]:
    """The manifest, the summary and the bytes of all members. Reads the whole file once."""
    manifest, summary, size = read_manifest(source), None, 0
    total = source.stat().st_size >> 20
    for member in read_archive(source):
        if member.name == SUMMARY and member.bytes <= _SMALL:
            summary = Summary.decode(member.content.read())
        elif member.name != MANIFEST and not is_rows(member.name) and original_of(member.name) is None:
            raise BackupUnusable("The file is not a backup of Footnote: it has members of another kind.")
        size += member.bytes
        report("verifying (MiB)", min(size >> 20, total), total)
    if summary is None:
        raise BackupUnusable("The backup is damaged: it has no summary.")
    return manifest, summary, size


def _unpack(
    source: Path, settings: ServerSettings, manifest: Manifest, folder: Path, *, size: int, report: Report
) -> None:
    url = settings.database_url or f"sqlite:///{folder / 'footnote.db'}"
    files, done = FileStore(folder / "files"), 0
    database = Database.open(url)
    try:
        _refuse_filled(database, manifest)
        upgrade(database, manifest.schema)
        with database.write() as connection:
            loader = _loader(connection)
            for member in read_archive(source):
                if is_rows(member.name):
                    _load(loader, member)
                elif (original := original_of(member.name)) is not None:
                    _write(files.path(*original), member)
                done += member.bytes
                report("restoring (MiB)", done >> 20, size >> 20)
            loader.finish()
    finally:
        database.close()


def _refuse_filled(database: Database, manifest: Manifest) -> None:
    current = current_revision(database)
    if current is not None and current != manifest.schema:
        raise Conflict("The database has tables already; FOOTNOTE_DATABASE_URL must name an empty one.")


def _loader(connection: sa.Connection) -> RowLoader:
    try:
        return RowLoader(connection)
    except ValueError as error:
        raise Conflict("The database is not empty; FOOTNOTE_DATABASE_URL must name an empty one.") from error


def _load(loader: RowLoader, member: Member) -> None:
    try:
        loader.load(member.content.read())
    except ValueError as error:
        raise BackupUnusable("The backup holds rows that do not fit its schema.") from error


def _write(path: Path, member: Member) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as file:
        for block in read_blocks(member.content):
            file.write(block)
