"""Two properties of a disk: whether it is full, and making a folder's names durable."""

import errno
import os
from collections.abc import Callable
from pathlib import Path


def is_full(error: BaseException) -> bool:
    """Whether an error means that the disk or the user's quota is exhausted."""
    return isinstance(error, OSError) and error.errno in {errno.ENOSPC, errno.EDQUOT}


def sync_folder(folder: Path, *, sync: Callable[[int], None] = os.fsync) -> None:
    """Flush a folder's directory entries to disk, so that new and renamed files survive power loss (fsync(2))."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        sync(descriptor)
    finally:
        os.close(descriptor)
