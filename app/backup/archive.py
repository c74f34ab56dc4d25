"""The file a backup is: a gzipped tar whose last member lists the SHA-256 of all others.

Tar (POSIX.1-2001) and not ZIP: it is written and read as a stream, so memory does not grow with the
number of originals, and `tar xzf FILE && sha256sum -c SHA256SUMS` needs no Footnote.
"""

import gzip
import hashlib
import tarfile
import tempfile
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, TypeVar

from app.documents.originals import Readable
from app.errors import SetupError

SUMS = "SHA256SUMS"
_BLOCK = 1 << 20
_LEVEL = 1  # text shrinks to a third; vectors and office files do not shrink at any level
_SPOOL_BYTES = 8 << 20
_Result = TypeVar("_Result")
_DAMAGE = (tarfile.TarError, zlib.error, EOFError, gzip.BadGzipFile, UnicodeError, ValueError, OverflowError)


class BackupUnusable(SetupError):
    """The file is no backup, is damaged, or is of a newer Footnote."""


@dataclass(frozen=True, slots=True)
class Member:
    """One file inside a backup. `content` must be read before the next member is asked for."""

    name: str
    bytes: int
    content: Readable


class ArchiveWriter:
    """Writes members one after the other, in a `with`; the archive is whole when that ends without an error."""

    def __init__(self, file: BinaryIO) -> None:
        """Begin an archive in `file`, which stays the caller's to sync and close."""
        self._zip = gzip.GzipFile(filename="", fileobj=file, mode="wb", compresslevel=_LEVEL, mtime=0)
        self._tar = tarfile.open(fileobj=self._zip, mode="w", format=tarfile.PAX_FORMAT)  # noqa: SIM115 - closed at exit
        self._sums = tempfile.SpooledTemporaryFile(_SPOOL_BYTES)  # noqa: SIM115 - closed at exit

    def __enter__(self) -> "ArchiveWriter":
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        try:
            if kind is None:
                size = self._sums.tell()
                self._sums.seek(0)
                self._append(SUMS, self._sums, size)
                self._tar.close()
                self._zip.close()
        finally:
            self._sums.close()

    def add(self, name: str, content: Readable, *, size: int) -> str:
        """Append a member of exactly `size` bytes; its SHA-256 in hex.

        Raises:
            OSError: The content ends early or cannot be read, or there is no room.
        """
        hashed = _Hashed(content)
        self._append(name, hashed, size)
        digest = hashed.hexdigest()
        self._sums.write(_sum_line(digest, name))
        return digest

    def _append(self, name: str, content: Readable, size: int) -> None:
        about = tarfile.TarInfo(name)
        about.size, about.mode = size, 0o600
        self._tar.addfile(about, content)
        _forget_members(self._tar)


def read_archive(path: Path) -> Iterator[Member]:
    """The members in order, the checksums left out; what was yielded is vouched for when the iteration ends.

    Raises:
        BackupUnusable: The file is no archive, is cut off, or differs from its checksums.
        OSError: It cannot be read.
    """
    with gzip.open(path, "rb") as unzipped, tempfile.SpooledTemporaryFile(_SPOOL_BYTES) as sums:
        tar = _damage_named(lambda: tarfile.open(fileobj=unzipped, mode="r|", bufsize=_BLOCK))  # noqa: SIM115 - no file of its own
        while True:
            about = _damage_named(tar.next)
            _forget_members(tar)
            if about is None or not about.isreg():
                raise BackupUnusable("The backup is damaged: it ends before its checksums.")
            extracted = tar.extractfile(about)
            assert extracted is not None, "a regular file has content"
            content = _Hashed(extracted)
            if about.name == SUMS:
                _compare(sums, content)
                break
            yield Member(about.name, about.size, content)
            content.drain()
            sums.write(_sum_line(content.hexdigest(), about.name))
        while _damage_named(lambda: unzipped.read(_BLOCK)):  # gzip checks its own sum at the end
            continue


class _Hashed:
    """Content that is hashed while it is read."""

    def __init__(self, content: Readable) -> None:
        self._content = content
        self._digest = hashlib.sha256()

    def read(self, size: int = -1, /) -> bytes:
        block = _damage_named(lambda: self._content.read(size))
        self._digest.update(block)
        return block

    def drain(self) -> None:
        while self.read(_BLOCK):
            continue

    def hexdigest(self) -> str:
        return self._digest.hexdigest()


def _compare(computed: "tempfile.SpooledTemporaryFile[bytes]", listed: _Hashed) -> None:
    computed.seek(0)
    while True:
        ours, theirs = computed.read(_BLOCK), listed.read(_BLOCK)
        if ours != theirs:
            raise BackupUnusable("The backup is damaged: it differs from its checksums.")
        if not ours:
            return


def _forget_members(tar: tarfile.TarFile) -> None:
    """It remembers every member it met, for random access that a stream does not have."""
    tar.members.clear()  # type: ignore[attr-defined]  # its type stubs lack the list


def _sum_line(digest: str, name: str) -> bytes:
    """As `sha256sum` writes it."""
    return f"{digest}  {name}\n".encode()


def _damage_named(read: Callable[[], _Result]) -> _Result:
    """What `read` returns; what a damaged file makes the libraries raise becomes one error."""
    try:
        return read()
    except _DAMAGE as error:
        raise BackupUnusable("The file is damaged, or it is no backup of Footnote's.") from error
