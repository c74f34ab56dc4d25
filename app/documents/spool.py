"""Files that must be local: uploads as they are received, before a store has them, and what is unpacked."""

import errno
import hashlib
import os
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from app.disk import disk_refusal, sync_folder
from app.errors import StorageFull, TooLarge
from app.telemetry.logs import logger

_BLOCK = 1 << 20
_RESERVED_BYTES = 64 << 20  # of the disk: the database writes a log of this size before it shrinks it


@dataclass(frozen=True, slots=True)
class Spooled:
    """An upload on disk (fsynced) under a temporary name, not yet part of a document. `bytes` is its size."""

    path: Path
    bytes: int
    sha256: str


def too_large_file(limit: int) -> TooLarge:
    """The error for a file of more than `limit` bytes: in megabytes of a million bytes, as the page and disks count.

    Example:
        >>> str(too_large_file(100 << 20))
        'The file is larger than 104.8 MB, the most that this server takes.'
    """
    # rounded down: a file of the size that is named is taken
    return TooLarge(f"The file is larger than {limit // 100_000 / 10:g} MB, the most that this server takes.")


class Spool:
    """Temporary files in the folder `incoming` of the originals' folder, on the disk of the data dir.

    Example:
        >>> spool = Spool(data_dir / "files")
        >>> spooled = spool.receive(blocks, name=new_id("in"), limit=100 << 20)
        >>> spool.discard(spooled)
    """

    def __init__(
        self, folder: Path, *, sync: Callable[[int], None] = os.fsync, reserved_bytes: int = _RESERVED_BYTES
    ) -> None:
        """Create the folder, durably, if it is missing.

        Args:
            folder: Inside the data dir.
            sync: Flushes an open file or folder, given by its descriptor, to disk.
            reserved_bytes: Of the disk, which uploads leave free.
        """
        self._incoming = folder / "incoming"
        self._sync = sync
        self._reserved_bytes = reserved_bytes
        if not self._incoming.is_dir():
            self._incoming.mkdir(parents=True, exist_ok=True)
            for made_in in (folder, folder.parent):
                sync_folder(made_in, sync=sync)

    def require_room(self) -> None:
        """Check that documents leave room on the disk for the ledger, without whose rows nobody can ask.

        Raises:
            StorageFull: Less than `reserved_bytes` are free.
        """
        if shutil.disk_usage(self._incoming).free < self._reserved_bytes:
            raise StorageFull("The disk is almost full: the room that is left is kept for questions.")

    def receive(self, blocks: Iterable[bytes], *, name: str, limit: int) -> Spooled:
        """Write `blocks` to a temporary file called `name`, at most `limit` bytes.

        Raises:
            TooLarge: There are more than `limit` bytes; no file is left.
            StorageFull, StoreUnavailable: The disk is full or fails; no file is left.
        """
        path = self._incoming / name
        digest, size = hashlib.sha256(), 0
        try:
            with path.open("wb") as file:
                for block in blocks:
                    self.require_room()
                    size += len(block)
                    if size > limit:
                        raise too_large_file(limit)
                    digest.update(block)
                    file.write(block)
                file.flush()
                self._sync(file.fileno())
        except BaseException as error:
            _unlink(path)
            if (refusal := disk_refusal(error)) is not None:
                raise refusal from error
            raise
        return Spooled(path=path, bytes=size, sha256=digest.hexdigest())

    def discard(self, received: Spooled) -> None:
        """Delete an upload that did not become a document. One that cannot be deleted is, at the next start."""
        _unlink(received.path)

    def clear(self) -> int:
        """Delete the temporary files of unfinished uploads; returns their number. Only at start, before any upload."""
        left = list(self._incoming.iterdir())
        for path in left:
            if path.is_dir():
                shutil.rmtree(path)
            else:
                path.unlink(missing_ok=True)
        return len(left)

    @contextmanager
    def workplace(self) -> Iterator[Path]:
        """A temporary folder on the same disk, deleted with its contents at exit."""
        with tempfile.TemporaryDirectory(prefix="work_", dir=self._incoming) as folder:
            yield Path(folder)


def _unlink(path: Path) -> None:
    """Delete a file that nothing refers to; a failure is logged."""
    try:
        path.unlink(missing_ok=True)
    except OSError as error:
        not_deleted(error)


def not_deleted(error: BaseException) -> None:
    """Log that a file which nothing refers to could not be deleted."""
    code = errno.errorcode.get(getattr(error, "errno", None) or 0)
    logger().warning("original.not_deleted", error=type(error).__name__, code=code)


class Readable(Protocol):
    """A binary file, or anything else with its `read`."""

    def read(self, size: int = -1, /) -> bytes:
        """At most `size` bytes; empty at the end."""
        ...


def read_blocks(file: Readable, *, most: int | None = None) -> Iterator[bytes]:
    """The file's bytes in blocks of 1 MiB, at most `most` bytes."""
    left = most
    while block := file.read(_BLOCK if left is None else min(_BLOCK, left)):
        yield block
        if left is not None:
            left -= len(block)
