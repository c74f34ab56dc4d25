"""The originals people uploaded, on disk under names we make."""

import errno
import hashlib
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from app.errors import StorageFull, TooLarge

_BLOCK = 1 << 20


@dataclass(frozen=True, slots=True)
class Received:
    """Bytes that are on disk (fsynced) under a temporary name, not yet a document's."""

    path: Path
    bytes: int
    sha256: str


class FileStore:
    """Files by document id and version. A user's file name never becomes a path."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._incoming = folder / "incoming"
        self._incoming.mkdir(parents=True, exist_ok=True)

    def receive(self, blocks: Iterable[bytes], *, name: str, limit: int) -> Received:
        """Write `blocks` to a temporary file called `name`, at most `limit` bytes.

        Raises:
            TooLarge: There are more than `limit` bytes; nothing is left behind.
            StorageFull: The disk is full; nothing is left behind.
        """
        path = self._incoming / name
        digest, size = hashlib.sha256(), 0
        try:
            with path.open("wb") as file:
                for block in blocks:
                    size += len(block)
                    if size > limit:
                        raise TooLarge(f"The file is larger than the limit of {limit >> 20} MiB.")
                    digest.update(block)
                    file.write(block)
                file.flush()
                os.fsync(file.fileno())
        except BaseException as error:
            path.unlink(missing_ok=True)
            if isinstance(error, OSError) and error.errno in {errno.ENOSPC, errno.EDQUOT}:
                raise StorageFull("There is no room to store the file.") from error
            raise
        return Received(path=path, bytes=size, sha256=digest.hexdigest())

    def place(self, received: Received, *, document_id: str, version: int) -> None:
        """Give received bytes their final name, durably. Doing it twice is harmless."""
        final = self.path(document_id, version)
        if final.exists() and not received.path.exists():
            return
        final.parent.mkdir(parents=True, exist_ok=True)
        received.path.replace(final)
        for folder in (final.parent, self._folder):
            _sync_folder(folder)

    def discard(self, received: Received) -> None:
        """Forget bytes that became no document."""
        received.path.unlink(missing_ok=True)

    def path(self, document_id: str, version: int) -> Path:
        """Where a version's original lies."""
        assert not {"/", "."} & set(document_id), "document ids are made by us"
        return self._folder / document_id / str(version)

    def remove(self, document_id: str, version: int) -> None:
        """Delete a version's original; one that is gone already is fine."""
        path = self.path(document_id, version)
        path.unlink(missing_ok=True)
        if path.parent.exists() and not any(path.parent.iterdir()):
            path.parent.rmdir()

    def document_versions(self) -> set[tuple[str, int]]:
        """Every (document id, version) on disk, for reconciliation with SQL."""
        return {
            (folder.name, int(file.name))
            for folder in self._folder.iterdir()
            if folder.is_dir() and folder != self._incoming
            for file in folder.iterdir()
            if file.name.isdigit()
        }

    def clear_incoming(self) -> int:
        """Remove temporary files of uploads that never finished; only at start, before any upload."""
        left = list(self._incoming.iterdir())
        for path in left:
            path.unlink(missing_ok=True)
        return len(left)


def read_blocks(file: BinaryIO) -> Iterable[bytes]:
    """The file's bytes in blocks of 1 MiB."""
    while block := file.read(_BLOCK):
        yield block


def _sync_folder(folder: Path) -> None:
    """Make a rename inside `folder` survive power loss."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
