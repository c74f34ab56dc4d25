"""Checks zip containers (OOXML, EPUB) without relying on the sizes they declare."""

import struct
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ingestion.errors import Encrypted, LimitExceeded, Malformed

MAX_MEMBERS = 10_000
_MAX_DIRECTORY_BYTES = 4 << 20  # 10,000 members of 400 bytes each
_END = b"PK\x05\x06"
_END_SIZE = 22
_LOCATOR64_SIZE = 20
_END64 = b"PK\x06\x06"
_END64_SIZE = 56
# Parts that are parsed as XML; entity declarations in them allow bombs and file reads (OWASP, XXE).
_XML_PARTS = (".xml", ".rels", ".opf", ".ncx", ".vml")
_ENTITY = tuple("<!ENTITY".encode(name) for name in ("utf-8", "utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be"))
_METHODS = frozenset({zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED})  # ECMA-376 part 2 and EPUB OCF allow no other
_STEP = 1 << 20


@contextmanager
def opened(path: Path) -> Iterator[zipfile.ZipFile]:
    """The zip file at `path`, its directory read, its members not.

    Raises:
        LimitExceeded: The directory is larger than any document's.
        Malformed: It is no readable zip file.
    """
    _check_directory(path)
    try:
        with _directory_read(path) as archive:
            if len(archive.infolist()) > MAX_MEMBERS:
                raise _too_many_members()
            yield archive
    except (zipfile.BadZipFile, NotImplementedError, EOFError, struct.error) as error:
        raise Malformed("The file is damaged: its zip container cannot be read.") from error


def _directory_read(path: Path) -> zipfile.ZipFile:
    try:
        return zipfile.ZipFile(path)
    except (ValueError, IndexError) as error:  # a name that is not the UTF-8 it claims, an offset before the file
        raise zipfile.BadZipFile from error


def check_members(path: Path, *, expanded_bytes: int) -> None:
    """Decompress every member once, counting real bytes; nothing is kept and nothing nested is opened.

    Sizes in a zip directory may be false, so they are not used. XML that declares entities is refused.

    Raises:
        Encrypted: A member is encrypted.
        LimitExceeded: More than `expanded_bytes` bytes come out, or too many members.
        Malformed: A member is damaged, or its XML declares entities.
    """
    import zlib

    left = expanded_bytes
    with opened(path) as archive:
        for member in archive.infolist():
            if member.flag_bits & 0x1:
                raise Encrypted("The file is protected by a password; remove the password and upload it again.")
            if member.compress_type not in _METHODS:
                raise Malformed("The file is packed in a way that documents are not; save it again and upload that.")
            try:
                left = _drain(archive, member, left)
            except (zlib.error, OSError, ValueError, RuntimeError) as error:
                raise Malformed("The file is damaged: a part of it cannot be decompressed.") from error
            if left < 0:
                raise LimitExceeded(f"The file expands to more than {_size(expanded_bytes)}, the most we unpack.")


def _drain(archive: zipfile.ZipFile, member: zipfile.ZipInfo, left: int) -> int:
    is_xml = member.filename.lower().endswith(_XML_PARTS)
    tail = b""
    with archive.open(member) as stream:
        while left >= 0 and (piece := stream.read(_STEP)):
            left -= len(piece)
            if is_xml:
                window = tail + piece
                if any(mark in window for mark in _ENTITY):
                    raise Malformed("The file declares XML entities, which documents have no use for; it was not read.")
                tail = window[-64:]
    return left


def _check_directory(path: Path) -> None:
    """Refuse a huge directory before `zipfile` builds an object per entry; finds it as `zipfile` does."""
    with path.open("rb") as file:
        size = file.seek(0, 2)
        file.seek(max(0, size - _END64_SIZE - _LOCATOR64_SIZE - _END_SIZE - 0xFFFF))
        tail = file.read()
    at = len(tail) - _END_SIZE
    if not (tail[max(at, 0) :].startswith(_END) and tail.endswith(b"\0\0")):
        at = tail.rfind(_END)
    if at < 0 or len(tail) - at < _END_SIZE:
        raise Malformed("The file is damaged: its zip container has no directory.")
    members, directory_bytes = struct.unpack_from("<HL", tail, at + 10)
    at64 = at - _LOCATOR64_SIZE - _END64_SIZE
    if at64 >= 0 and tail[at64:].startswith(_END64):
        members, directory_bytes = struct.unpack_from("<QQ", tail, at64 + 32)
    if members > MAX_MEMBERS or directory_bytes > _MAX_DIRECTORY_BYTES:
        raise _too_many_members()


def _too_many_members() -> LimitExceeded:
    return LimitExceeded(f"The file packs more than {MAX_MEMBERS:,} files, the most we unpack.")


def _size(count: int) -> str:
    return f"{count / (1 << 30):.3g} GiB" if count >= 1 << 30 else f"{count / (1 << 20):.3g} MiB"
