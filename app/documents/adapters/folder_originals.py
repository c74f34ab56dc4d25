"""The store of originals in a folder: of the data dir, or of another disk, which several machines may mount."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from app.disk import disk_refusal, sync_folder
from app.documents.ports import ObjectName, is_object_name
from app.documents.spool import Spooled, read_blocks
from app.errors import StoreUnavailable


class FolderOriginals:
    """Files named as their objects. Those from before objects had names lie in a folder for each document.

    Where the spool lies on the same disk, a put is a rename. Else it is a copy beside, and then a rename; of one that
    was broken off, the rest goes when the original is deleted.

    Example:
        >>> originals = FolderOriginals(data_dir / "files")
        >>> originals.put(new_object_name(), spool.receive(blocks, name=new_id("in"), limit=100 << 20))
    """

    def __init__(self, folder: Path, *, apart: bool = False, sync: Callable[[int], None] = os.fsync) -> None:
        """`folder` exists, with `apart` on another disk than the spool. `sync` flushes what a descriptor has open."""
        self._folder = folder
        self._apart = apart
        self._sync = sync

    def put(self, name: ObjectName, file: Spooled) -> None:
        """See `Originals.put`."""
        path = self._path(name)
        if path.exists():  # names are random: no other put comes in between
            raise FileExistsError(f"There is an original named {name}.")
        try:
            if path.parent != self._folder:
                path.parent.mkdir(exist_ok=True)
            if self._apart:
                self._copy(file.path, path)
            else:
                file.path.replace(path)
            sync_folder(path.parent, sync=self._sync)
            if path.parent != self._folder:
                sync_folder(self._folder, sync=self._sync)
        except OSError as error:
            with suppress(OSError):
                path.unlink(missing_ok=True)
                _rest(path).unlink(missing_ok=True)
            raise disk_refusal(error) or error from error

    @contextmanager
    def open(self, name: ObjectName, *, start: int = 0, end: int | None = None) -> Iterator[Iterator[bytes]]:
        """See `Originals.open`."""
        with _opened(self._path(name)) as file:
            yield _part(file, start, end)

    @contextmanager
    def local_copy(self, name: ObjectName) -> Iterator[Path]:
        """See `Originals.local_copy`."""
        path = self._path(name)
        _opened(path).close()  # an original that cannot be read is told here, not by whoever reads it
        yield path

    def size(self, name: ObjectName) -> int | None:
        """See `Originals.size`."""
        try:
            return self._path(name).stat().st_size
        except (FileNotFoundError, NotADirectoryError):
            return None

    def delete(self, *names: ObjectName) -> None:
        """See `Originals.delete`."""
        changed: set[Path] = set()
        refused: OSError | None = None
        for name in names:
            path = self._path(name)
            try:
                path.unlink(missing_ok=True)
                if self._apart:
                    _rest(path).unlink(missing_ok=True)
                changed.add(self._without_empty(path.parent))
            except OSError as error:
                refused = error
        try:
            for folder in changed:  # or a power loss may bring the files back, which no row would name
                with suppress(FileNotFoundError):  # another deletion has removed it, and flushes the folder above
                    sync_folder(folder, sync=self._sync)
        except OSError as error:
            refused = error
        if refused is not None:
            raise StoreUnavailable("The disk does not delete an original.") from refused

    def _copy(self, source: Path, path: Path) -> None:
        rest = _rest(path)
        with source.open("rb") as read, rest.open("wb") as written:
            for block in read_blocks(read):
                written.write(block)
            written.flush()
            self._sync(written.fileno())
        rest.replace(path)

    def _without_empty(self, folder: Path) -> Path:
        """Remove the folder of a document from before, if it is empty; returns the folder that is changed."""
        if folder == self._folder:
            return folder
        try:
            if any(folder.iterdir()):
                return folder
            folder.rmdir()
        except FileNotFoundError:
            pass  # another deletion was faster
        return self._folder

    def put_before(self, moment: float) -> set[ObjectName]:
        """See `Listing.put_before`."""
        found = set()
        for name in self._names():
            try:
                put = self._path(name).stat().st_ctime  # a rename changes ctime, not mtime
            except FileNotFoundError:
                continue  # deleted since it was listed
            if put < moment:
                found.add(name)
        return found

    def _names(self) -> Iterator[ObjectName]:
        for entry in self._folder.iterdir():
            if is_object_name(entry.name):
                yield entry.name
            elif entry.is_dir():
                with suppress(FileNotFoundError):  # deleted since it was listed
                    names = [f"{entry.name}/{file.name}" for file in entry.iterdir()]
                    yield from filter(is_object_name, names)

    def _path(self, name: ObjectName) -> Path:
        assert is_object_name(name), "names of originals are made here"
        return self._folder / name


def _rest(path: Path) -> Path:
    """The file that a copy is written to; its name is none of an original."""
    return path.with_name(f"{path.name}.part")


def _opened(path: Path) -> BinaryIO:
    try:
        return path.open("rb")
    except NotADirectoryError as error:
        raise FileNotFoundError(error.errno, error.strerror, str(path)) from error
    except FileNotFoundError:
        raise
    except OSError as error:
        raise disk_refusal(error) or error from error


def _part(file: BinaryIO, start: int, end: int | None) -> Iterator[bytes]:
    file.seek(start)
    left = None if end is None else max(end - start, 0)
    try:
        yield from read_blocks(file, most=left)
    except OSError as error:
        raise disk_refusal(error) or error from error
