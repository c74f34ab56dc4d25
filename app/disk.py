"""Two questions about the disk: is it full, and are a folder's names safe from power loss."""

import errno
import os
from collections.abc import Callable
from pathlib import Path


def is_full(error: BaseException) -> bool:
    """Whether the disk, or somebody's share of it, has no room."""
    return isinstance(error, OSError) and error.errno in {errno.ENOSPC, errno.EDQUOT}


def sync_folder(folder: Path, *, sync: Callable[[int], None] = os.fsync) -> None:
    """Make the names inside `folder` survive power loss."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        sync(descriptor)
    finally:
        os.close(descriptor)
