"""Makes a backup: one snapshot of the database, then the originals it lists. The server may run meanwhile.

Rows come first. Originals never change and are on disk before their row exists, so every original that the snapshot
lists existed when it was taken. An original deleted before it is copied is listed as missing; its text is in the rows.
The vector and word indexes are not included: they are rebuilt from the rows.
"""

import io
import os
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib.metadata import version as distribution_version
from pathlib import Path

import sqlalchemy as sa

from app.backup.archive import ArchiveWriter, BackupUnusable
from app.backup.contents import (
    FORMAT,
    MANIFEST,
    SUMMARY,
    BackupManifest,
    NotRestorable,
    Summary,
    original_name,
    rows_name,
)
from app.backup.verification import Report, verify
from app.db.dialect import sqlite_file
from app.db.migration import current_revision, refuse_unknown
from app.db.portable import count_rows, dump_rows
from app.db.session import Database
from app.db.tables.documents import document_version, unattached_file
from app.disk import disk_refusal, sync_folder
from app.documents.ports import ObjectName, Originals
from app.errors import Conflict, SetupError
from app.settings import ServerSettings

_SETTINGS = ("embedder", "embedder_dtype", "embedder_dimensions", "generator", "chunk_tokens", "chunk_overlap")


@dataclass(frozen=True, slots=True)
class _Original:
    version: str
    name: ObjectName
    sha256: str


def back_up(
    settings: ServerSettings,
    target: Path,
    *,
    originals: Originals,
    force: bool = False,
    report: Report = lambda *_: None,
) -> Summary:
    """Write a backup of the installation to `target`, durable and verified by the rules of a restore when this returns.

    Until then `target` is unchanged: the file is written next to it. Only its owner can read it,
    since it holds the documents and the hashes of the API keys. While it is written, SQLite cannot shrink its
    write-ahead log, which grows with every write.

    Raises:
        Conflict: `target` exists, and `force` is false.
        NotRestorable: A restore would refuse the backup; none was written.
        SetupError: There is no database, it has no tables, a newer Footnote made it, or it is older than the first
            release.
        StoreUnavailable: The database cannot be read, or the disk fails.
        StorageFull: The disk is full.

    Example:
        >>> back_up(settings, Path("footnote.backup"), originals=store).originals
        1204
    """
    _refuse_existing(target, force=force)
    require_database(settings)
    database = Database.open(settings.resolved_database_url)
    try:
        refuse_unknown(database)  # tables of a newer version would be missing, and none restores what is too old
        return _write_beside(database, settings, target, originals=originals, force=force, report=report)
    finally:
        database.close()


def require_database(settings: ServerSettings) -> None:
    """Check that SQLite's file exists, since opening a missing one would create it.

    Raises:
        SetupError: It does not exist.
    """
    file = sqlite_file(settings.resolved_database_url)
    if file is not None and not file.is_file():
        raise SetupError("There is no database in this data dir: nothing to back up. Is FOOTNOTE_DATA_DIR set?")


def _write_beside(
    database: Database, settings: ServerSettings, target: Path, *, originals: Originals, force: bool, report: Report
) -> Summary:
    try:
        descriptor, name = tempfile.mkstemp(prefix=f".{target.name}.", suffix=".part", dir=target.parent)
    except OSError as error:
        raise SetupError(f"The backup cannot be written there: {error.strerror}.") from error
    partial = Path(name)
    try:
        with os.fdopen(descriptor, "wb") as file:
            with ArchiveWriter(file) as archive:
                summary = _fill(archive, database, settings, originals, report)
            file.flush()
            os.fsync(file.fileno())
        _verify(partial, report)
        _refuse_existing(target, force=force)
        partial.replace(target)
        sync_folder(target.parent)
    except BaseException as error:
        with suppress(OSError):  # a disk that fails may refuse this too
            partial.unlink(missing_ok=True)
        if (refusal := disk_refusal(error)) is not None:
            raise refusal from error
        raise
    return summary


def _verify(written: Path, report: Report) -> None:
    """Read the written file as a restore would."""
    try:
        verify(written, report)
    except BackupUnusable as error:
        raise NotRestorable(str(error)) from error


def _fill(
    archive: ArchiveWriter, database: Database, settings: ServerSettings, store: Originals, report: Report
) -> Summary:
    schema = current_revision(database)
    if schema is None:
        raise SetupError("The database has no tables yet: nothing to back up.")
    manifest = BackupManifest(
        format=FORMAT,
        footnote=distribution_version("footnote-rag"),
        created_at=time.time(),
        schema=schema,
        dialect=database.kind,
        settings={name: getattr(settings, name) for name in _SETTINGS},
    )
    _add(archive, MANIFEST, manifest.encode())
    rows, originals = _add_rows(archive, database, report)
    summary = _add_originals(archive, store, originals, rows=rows, report=report)
    _add(archive, SUMMARY, summary.encode())
    return summary


def _add_rows(archive: ArchiveWriter, database: Database, report: Report) -> tuple[dict[str, int], Sequence[_Original]]:
    """Add all rows, read in one transaction; returns the rows by table, and the originals that they list."""
    parts: dict[str, int] = {}
    with database.read() as connection:
        rows = count_rows(connection)
        done, total = 0, sum(rows.values())
        for table, count, part in dump_rows(connection):
            parts[table] = parts.get(table, 0) + 1
            _add(archive, rows_name(table, parts[table]), part)
            done += count
            report("rows", done, total)
        return rows, _originals(connection)


def _originals(connection: sa.Connection) -> list[_Original]:
    """The originals that the rows list; of versions with the same original the first. An older schema has no names."""
    inspector = sa.inspect(connection)
    found: dict[ObjectName, _Original] = {}
    for table, document_id, version in (
        (document_version, document_version.c.document_id, sa.cast(document_version.c.version, sa.Text)),
        (unattached_file, unattached_file.c.id, sa.literal("0")),
    ):
        if not inspector.has_table(table.name):
            continue
        placed = document_id + "/" + version
        has_names = any(column["name"] == "object" for column in inspector.get_columns(table.name))
        query = sa.select(placed, table.c.object if has_names else placed, table.c.sha256).order_by(
            document_id, version
        )
        for row in connection.execute(query):
            original = _Original(*row)
            found.setdefault(original.name, original)
    return list(found.values())


def _add_originals(
    archive: ArchiveWriter, store: Originals, originals: Sequence[_Original], *, rows: dict[str, int], report: Report
) -> Summary:
    missing, altered, size = [], [], 0
    for done, original in enumerate(originals, start=1):
        member, length = original_name(original.name), store.size(original.name)
        try:
            with store.open(original.name) as blocks:
                assert length is not None, "it was there before it was opened"
                digest = archive.add(member, _Stream(blocks), size=length)
        except FileNotFoundError:
            missing.append(original.version)
            continue
        size += length
        if digest != original.sha256:
            altered.append(original.version)
        report("originals", done, len(originals))
    return Summary(rows, len(originals) - len(missing), size, tuple(missing), tuple(altered))


class _Stream:
    """Blocks of bytes, to be read in pieces of any size."""

    def __init__(self, blocks: Iterator[bytes]) -> None:
        self._blocks = blocks
        self._rest = b""

    def read(self, size: int = -1, /) -> bytes:
        """As `Readable.read`; fewer than `size` bytes only at the end."""
        while (size < 0 or len(self._rest) < size) and (block := next(self._blocks, b"")):
            self._rest += block
        count = len(self._rest) if size < 0 else size
        piece, self._rest = self._rest[:count], self._rest[count:]
        return piece


def _add(archive: ArchiveWriter, name: str, content: bytes) -> None:
    archive.add(name, io.BytesIO(content), size=len(content))


def _refuse_existing(target: Path, *, force: bool) -> None:
    if target.is_dir():
        raise Conflict("There is a folder of that name; give the backup a file name.")
    if target.exists() and not force:
        raise Conflict("There is a file of that name already; take another name, or --force to replace it.")
