"""The file format of a backup: a gzipped tar whose last member lists the SHA-256 of all others.

Tar (POSIX.1-2001) and not ZIP, because it is written and read as a stream: memory does not grow with the
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

from app.documents.spool import Readable
from app.errors import SetupError

SUMS = "SHA256SUMS"
_BLOCK = 1 << 20
_LEVEL = 1  # text shrinks to a third; vectors and office files do not shrink at any level
_SPOOL_BYTES = 8 << 20
_Result = TypeVar("_Result")
_DAMAGE = (tarfile.TarError, zlib.error, EOFError, gzip.BadGzipFile, UnicodeError, ValueError, OverflowError)


class BackupUnusable(SetupError):
    """The file is not a backup, is damaged, or was made by a newer Footnote."""


@dataclass(frozen=True, slots=True)
class BackupMember:
    """One file inside a backup. Read `content` before the next member."""

    name: str
    bytes: int
    content: Readable


class ArchiveWriter:
    """Writes a backup file, member by member, in a `with`; it is complete when the `with` ends without an error.

    Example:
        >>> with ArchiveWriter(file) as archive:
        ...     archive.add("manifest.json", io.BytesIO(content), size=len(content))
    """

    def __init__(self, file: BinaryIO) -> None:
        """Begin an archive in `file`, which the caller syncs and closes."""
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
        """Append a member of exactly `size` bytes; returns its SHA-256 in hex.

        Raises:
            OSError: The content ends early or cannot be read, or the disk is full.
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


def read_archive(path: Path) -> Iterator[BackupMember]:
    """Iterate over the members in order, without the checksums, which are verified when the iteration ends.

    Raises:
        BackupUnusable: The file is not an archive, is cut off, or does not match its checksums.
        OSError: It cannot be read.
    """
    with gzip.open(path, "rb") as unzipped, tempfile.SpooledTemporaryFile(_SPOOL_BYTES) as sums:
        tar = _or_unusable(lambda: tarfile.open(fileobj=unzipped, mode="r|", bufsize=_BLOCK))  # noqa: SIM115 - no file of its own
        while True:
            about = _or_unusable(tar.next)
            _forget_members(tar)
            if about is None or not about.isreg():
                raise BackupUnusable("The backup is damaged: it ends before its checksums.")
            extracted = tar.extractfile(about)
            assert extracted is not None, "a regular file has content"
            content = _Hashed(extracted)
            if about.name == SUMS:
                _compare(sums, content)
                break
            yield BackupMember(about.name, about.size, content)
            content.drain()
            sums.write(_sum_line(content.hexdigest(), about.name))
        while _or_unusable(lambda: unzipped.read(_BLOCK)):  # gzip verifies its own checksum at the end
            continue


class _Hashed:
    """A stream that is hashed while it is read."""

    def __init__(self, content: Readable) -> None:
        self._content = content
        self._digest = hashlib.sha256()

    def read(self, size: int = -1, /) -> bytes:
        block = _or_unusable(lambda: self._content.read(size))
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
            raise BackupUnusable("The backup is damaged: it does not match its checksums.")
        if not ours:
            return


def _forget_members(tar: tarfile.TarFile) -> None:
    """Free the list of members that `tarfile` keeps for random access, which a stream does not have."""
    tar.members.clear()  # type: ignore[attr-defined]  # its type stubs lack the list


def _sum_line(digest: str, name: str) -> bytes:
    """A line as `sha256sum` writes it."""
    return f"{digest}  {name}\n".encode()


def _or_unusable(read: Callable[[], _Result]) -> _Result:
    """Call `read`; raises BackupUnusable for the errors that a damaged file causes in tar, gzip and zlib."""
    try:
        return read()
    except _DAMAGE as error:
        raise BackupUnusable("The file is damaged, or it is not a backup of Footnote.") from error
