"""What a disk needs to be asked: whether it is full or fails, and that the names of files survive power loss."""

import errno
import os
from collections.abc import Callable
from pathlib import Path

from app.errors import StorageFull, StoreUnavailable

_FAILING = {errno.EIO, errno.EROFS, errno.EMFILE, errno.ENFILE, errno.ESTALE}


def is_full(error: BaseException) -> bool:
    """Whether an error means that the disk or the user's quota is exhausted."""
    return isinstance(error, OSError) and error.errno in {errno.ENOSPC, errno.EDQUOT}


def disk_refusal(error: BaseException) -> StorageFull | StoreUnavailable | None:
    """The error to tell a caller when a disk is full, fails, is read-only, or no more files can be open.

    None for an error with another cause.
    """
    if is_full(error):
        return StorageFull("The disk has no room for this.")
    if isinstance(error, OSError) and error.errno in _FAILING:
        return StoreUnavailable("The disk cannot be read or written; try again in a moment.")
    return None


def sync_folder(folder: Path, *, sync: Callable[[int], None] = os.fsync) -> None:
    """Flush a folder's directory entries to disk, so that new and renamed files survive power loss (fsync(2))."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        sync(descriptor)
    finally:
        os.close(descriptor)


def make_folder(folder: Path) -> None:
    """Create a folder and the missing ones above it, so that all of them survive power loss.

    Each new folder's name is flushed in the folder above it. Otherwise a power loss may take a new folder away with
    everything that was flushed inside it.
    """
    missing = [one for one in (folder, *folder.parents) if not one.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    for made in reversed(missing):
        sync_folder(made.parent)
