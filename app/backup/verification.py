"""Verifies a backup: its checksums, its manifest, its summary and the names of its members.

A restore verifies before it changes anything, and a backup before it reports success, so no backup succeeds that a
restore would refuse.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from app.backup.archive import BackupUnusable, read_archive
from app.backup.contents import MANIFEST, SUMMARY, BackupManifest, Summary, is_rows, original_of
from app.db.migration import knows
from app.errors import SetupError
from migrations.first_release import LAST_BEFORE, is_too_old

Report = Callable[[str, int, int], None]
"""Called with (label, done, total), for a progress bar."""

_SMALL = 64 << 20  # bytes; a larger manifest or summary is not one of ours


@dataclass(frozen=True, slots=True)
class Verified:
    """A backup that a restore accepts. `bytes` is the size of all its members, unpacked."""

    manifest: BackupManifest
    summary: Summary
    bytes: int


def verify(source: Path, report: Report) -> Verified:
    """Read the whole file once and check all of it.

    Raises:
        BackupUnusable: The file is not a backup, is damaged, or needs a newer or an older Footnote.
        SetupError: The file cannot be read.
    """
    manifest, summary, size, originals = _read_manifest(source), None, 0, 0
    total = source.stat().st_size >> 20
    for member in read_archive(source):
        if member.name == SUMMARY and member.bytes <= _SMALL:
            summary = Summary.decode(member.content.read())
        elif original_of(member.name) is not None:
            originals += 1
        elif member.name != MANIFEST and not is_rows(member.name):
            raise BackupUnusable("The file is not a backup of Footnote: it has members of another kind.")
        size += member.bytes
        report("verifying (MiB)", min(size >> 20, total), total)
    if summary is None:
        raise BackupUnusable("The backup is damaged: it has no summary.")
    if originals != summary.originals:
        raise BackupUnusable("The backup is damaged: it does not have the originals that its summary counts.")
    return Verified(manifest, summary, size)


def _read_manifest(source: Path) -> BackupManifest:
    """The manifest, which comes first, so that a backup of a newer Footnote is refused before gigabytes are read."""
    try:
        for member in read_archive(source):
            if member.name != MANIFEST or member.bytes > _SMALL:
                break
            return _usable(BackupManifest.decode(member.content.read()))
    except OSError as error:
        raise SetupError(f"The backup cannot be read: {error.strerror}.") from error
    raise BackupUnusable("The file is not a backup of Footnote: it does not begin with a manifest.")


def _usable(manifest: BackupManifest) -> BackupManifest:
    if is_too_old(manifest.schema):
        raise BackupUnusable(
            f"The backup is too old for this Footnote (schema {manifest.schema}). Restore it with the commit "
            f"{LAST_BEFORE}, run its `footnote migrate`, and make a new backup."
        )
    if not knows(manifest.schema):
        raise BackupUnusable(
            f"The backup was made by a newer Footnote (schema {manifest.schema} is unknown to this one); "
            "restore it with that version."
        )
    return manifest
