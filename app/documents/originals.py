"""The store of uploaded files (originals) on disk, by document id and version."""

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
_MOST_MOVES = 8  # a folder can be removed between being made and being used, by each deletion that runs at once


@dataclass(frozen=True, slots=True)
class Received:
    """An upload on disk (fsynced) under a temporary name, not yet part of a document."""

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


class FileStore:
    """Files by document id and version. A user's file name never becomes a path.

    Example:
        >>> files = FileStore(data_dir / "files")
        >>> received = files.receive(blocks, name=new_id("in"), limit=100 << 20)
        >>> files.place(received, document_id="doc_1", version=1)
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
        self._folder = folder
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
        if shutil.disk_usage(self._folder).free < self._reserved_bytes:
            raise StorageFull("The disk is almost full: the room that is left is kept for questions.")

    def receive(self, blocks: Iterable[bytes], *, name: str, limit: int) -> Received:
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
        return Received(path=path, bytes=size, sha256=digest.hexdigest())

    def place(self, received: Received, *, document_id: str, version: int) -> None:
        """Move an upload to its final name, durably. Idempotent.

        Raises:
            StorageFull, StoreUnavailable: The disk is full or fails; no file is left.
        """
        final = self.path(document_id, version)
        try:
            if final.exists() and not received.path.exists():
                return
            _move(received.path, final)
            for folder in (final.parent, self._folder):
                sync_folder(folder, sync=self._sync)
        except OSError as error:
            self.remove(document_id, version)
            raise disk_refusal(error) or error from error

    def repeat(self, document_id: str, *, version: int, of: int) -> None:
        """Link the original of version `of` as the original of `version` too, durably, without a copy.

        Raises:
            FileNotFoundError: There is no such original.
        """
        final = self.path(document_id, version)
        final.unlink(missing_ok=True)
        os.link(self.path(document_id, of), final)  # originals never change
        sync_folder(final.parent, sync=self._sync)

    def again(self, document_id: str, version: int, *, name: str, sha256: str) -> Received:
        """Link an original to a temporary `name`, as if it had just been received, without a copy.

        Raises:
            FileNotFoundError: There is no such original.
        """
        path = self._incoming / name
        os.link(self.path(document_id, version), path)  # originals never change
        return Received(path=path, bytes=path.stat().st_size, sha256=sha256)

    def discard(self, received: Received) -> None:
        """Delete an upload that did not become a document. One that cannot be deleted is, at the next start."""
        _unlink(received.path)

    def path(self, document_id: str, version: int) -> Path:
        """The path of a version's original."""
        assert not {"/", "."} & set(document_id), "document ids are generated here"
        return self._folder / document_id / str(version)

    def readable(self, document_id: str, version: int) -> Path | None:
        """The path of a version's original, which can be opened now; None when it does not exist.

        Raises:
            StoreUnavailable: The disk fails, or too many files are open.
        """
        path = self.path(document_id, version)
        try:
            path.open("rb").close()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise disk_refusal(error) or error from error
        return path

    def remove(self, document_id: str, version: int) -> None:
        """Delete a version's original, if it exists.

        It has no row any more. So a disk that refuses the deletion fails no request: the next start or reconciliation
        deletes the file.
        """
        path = self.path(document_id, version)
        _unlink(path)
        try:
            if path.parent.exists() and not any(path.parent.iterdir()):
                path.parent.rmdir()
        except OSError as error:
            _not_deleted(error)

    def document_versions(self) -> set[tuple[str, int]]:
        """Every (document id, version) on disk, to compare with SQL."""
        return {version for version, _ in self._stored()}

    def placed_before(self, moment: float) -> set[tuple[str, int]]:
        """The members of `document_versions` that were placed before `moment` (Unix seconds).

        A file placed a moment ago may belong to a row that is not committed yet.
        """
        found = set()
        for version, path in self._stored():
            try:
                placed = path.stat().st_ctime  # a rename changes ctime, not mtime
            except FileNotFoundError:
                continue  # deleted since it was listed
            if placed < moment:
                found.add(version)
        return found

    def size(self, document_id: str, version: int) -> int | None:
        """The size in bytes of a version's original; None when it does not exist."""
        try:
            return self.path(document_id, version).stat().st_size
        except FileNotFoundError:
            return None

    def _stored(self) -> Iterator[tuple[tuple[str, int], Path]]:
        for folder in self._folder.iterdir():
            if folder == self._incoming or not folder.is_dir():
                continue
            try:
                files = list(folder.iterdir())
            except FileNotFoundError:
                continue  # deleted since it was listed
            for file in files:
                if file.name.isdigit():
                    yield (folder.name, int(file.name)), file

    def clear_incoming(self) -> int:
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


def _move(path: Path, final: Path) -> None:
    """Rename `path` to `final`, in a folder that is made, and made again where a deletion removes it meanwhile."""
    for left in reversed(range(_MOST_MOVES)):
        try:
            final.parent.mkdir(parents=True, exist_ok=True)  # raises where the folder was there and is gone
            path.replace(final)
            return
        except (FileExistsError, FileNotFoundError):
            if not left or not path.exists():
                raise


def _unlink(path: Path) -> None:
    """Delete a file that nothing refers to; a failure is logged."""
    try:
        path.unlink(missing_ok=True)
    except OSError as error:
        _not_deleted(error)


def _not_deleted(error: OSError) -> None:
    logger().warning("original.not_deleted", error=type(error).__name__, code=errno.errorcode.get(error.errno or 0))


class Readable(Protocol):
    """A binary file, or anything else with its `read`."""

    def read(self, size: int = -1, /) -> bytes:
        """At most `size` bytes; empty at the end."""
        ...


def read_blocks(file: Readable) -> Iterable[bytes]:
    """The file's bytes in blocks of 1 MiB."""
    while block := file.read(_BLOCK):
        yield block
