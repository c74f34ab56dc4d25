"""Unpacks an archive of documents into files without trusting its declared names and sizes."""

import zipfile
import zlib
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from ingestion.container import opened
from ingestion.errors import Encrypted, LimitExceeded, Malformed
from ingestion.types import ExtractionLimits

_STEP = 1 << 20
_NAME_CHARS = 1024  # a path longer than this was not made by a person
_FOREIGN = frozenset({"__macosx", "thumbs.db", "desktop.ini"})  # files that systems add to archives
_METHODS = frozenset({zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED})  # the others take memory as they like
_AES = 99  # the number of a method with AES encryption (WinZip AE-x)
_DAMAGED = (zipfile.BadZipFile, zlib.error, OSError, EOFError, ValueError, RuntimeError)  # the last: a wrong password


@dataclass(frozen=True, slots=True)
class Member:
    """An unpacked file: its `name` in the archive, its path now, and its size in `bytes`."""

    name: str
    path: Path
    bytes: int


def expand(path: Path, into: Path, *, limits: ExtractionLimits, most: int, password: str | None = None) -> list[Member]:
    """Write the documents in the zip file at `path` to the folder `into`, in the archive's order.

    The files are named by number: a member's name is metadata, relative, with `/` between its parts, and
    never a path of Footnote's. Folders, hidden files and system files are skipped. An
    archive in the archive is a member like any other and is not opened. Sizes are counted as they come
    out, `limits.expanded_bytes` in all. Memory stays at one MiB and the decompressor's state.

    `password` opens members by the archive's own encryption (PKWARE APPNOTE §6.1). On an error, files
    written so far are removed.

    Raises:
        Malformed: It is no readable zip file, a member is damaged, or a name leads out of the archive.
        LimitExceeded: More than `most` documents, or more bytes than `limits` allow.
        Encrypted: A member is behind a password, and none or another was given.
    """
    members: list[Member] = []
    left = limits.expanded_bytes
    try:
        with opened(path) as archive:
            for entry in archive.infolist():
                name = _name(entry)
                if name is None:
                    continue
                if len(members) >= most:
                    raise LimitExceeded(f"The archive holds more than {most:,} documents, the most we take at once.")
                to = into / f"{len(members):06d}"
                members.append(Member(name, to, 0))  # so that it is removed, should writing it fail
                size = _write(archive, entry, to, most=left, password=password)
                members[-1] = Member(name, to, size)
                left -= size
    except BaseException:
        for member in members:
            member.path.unlink(missing_ok=True)
        raise
    return members


def _name(entry: zipfile.ZipInfo) -> str | None:
    """The member's name, `None` where it is no document.

    Raises:
        Malformed: It leads out of the archive, or is no name at all.
    """
    name = entry.filename.replace("\\", "/")
    parts = PurePosixPath(name).parts
    if name.startswith("/") or ".." in parts or (parts and parts[0].endswith(":")) or len(name) > _NAME_CHARS:
        raise Malformed("The archive names a file outside of itself; it was not unpacked.")
    if not parts or entry.is_dir() or any(part.startswith(".") or part.lower() in _FOREIGN for part in parts):
        return None
    is_link = entry.external_attr >> 28 == 0xA  # S_IFLNK in the upper half, where archives from Unix keep it
    return None if is_link else "/".join(parts)


def _write(archive: zipfile.ZipFile, entry: zipfile.ZipInfo, to: Path, *, most: int, password: str | None) -> int:
    is_encrypted = bool(entry.flag_bits & 0x1)
    if is_encrypted and password is None:
        raise Encrypted("The archive is protected by a password; upload it with the password, or without one.")
    if entry.compress_type == _AES:
        raise Encrypted("The archive is encrypted by AES, which we cannot open; pack it without a password.")
    if entry.compress_type not in _METHODS:
        raise Malformed("The archive is packed in a way we do not read; pack it as an ordinary zip file.")
    size = 0
    try:
        with (
            archive.open(entry, pwd=password.encode() if password is not None else None) as member,
            to.open("xb") as out,
        ):
            while piece := member.read(_STEP):
                size += len(piece)
                if size > most:
                    raise LimitExceeded("The archive expands to more bytes than we unpack.")
                out.write(piece)
    except _DAMAGED as error:
        if is_encrypted:  # it checks one byte of a password; the others that are wrong come out as noise
            raise Encrypted("The password is wrong, or the archive is damaged; it stays closed.") from None
        raise Malformed("The archive is damaged: a file in it cannot be unpacked.") from error
    return size
