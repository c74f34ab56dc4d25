"""The data dir: its lock, and the crash-safe swap of a restored installation for the old one.

A restore is prepared in a folder inside the data dir. One rename marks it as ready. Before that rename nothing has
changed; after it every start and every restore completes an interrupted swap. The old installation is moved aside,
never deleted. The folders lie inside the data dir, because a data dir may be a volume of its own.
"""

import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from app.disk import make_folder, sync_folder
from app.errors import SetupError
from app.local_server import forget

_LOCK = "footnote.lock"
_PREPARING = "restore.part"
_READY = "restore.ready-"
_PLACING = "restore.placing-"
_ASIDE = "before-restore-"
_OURS = ("footnote.db", "files", "index", "lexical")  # and names that begin with them: -wal, .corrupt-…


def prepare(data_dir: Path) -> Path:
    """Create an empty folder to restore into, replacing that of an interrupted restore. The caller holds the lock."""
    folder = data_dir / _PREPARING
    if folder.exists():
        shutil.rmtree(folder)
    folder.mkdir()
    return folder


def is_used(data_dir: Path) -> bool:
    """Whether the data dir holds an installation."""
    return any(entry.name.startswith(_OURS) for entry in data_dir.iterdir())


def place(data_dir: Path) -> Path | None:
    """Swap in the restored files in the folder of `prepare`, which are synced; returns the old installation's folder.

    None when there was no old installation. The caller holds the lock.
    """
    stamp = int(time.time())
    while (aside := data_dir / f"{_ASIDE}{stamp}").exists():
        stamp += 1
    (data_dir / _PREPARING).rename(data_dir / f"{_READY}{stamp}")
    sync_folder(data_dir)
    finish(data_dir)
    return aside if aside.exists() else None


def finish(data_dir: Path) -> bool:
    """Complete an interrupted swap; returns whether there was one. The caller holds the lock."""
    for ready in data_dir.glob(f"{_READY}*"):
        stamp = ready.name.removeprefix(_READY)
        _move_aside(data_dir, data_dir / f"{_ASIDE}{stamp}")
        ready.rename(data_dir / f"{_PLACING}{stamp}")
        sync_folder(data_dir)
    found = False
    for placing in data_dir.glob(f"{_PLACING}*"):
        found = True
        for entry in sorted(placing.iterdir()):
            entry.rename(data_dir / entry.name)
        sync_folder(data_dir)
        placing.rmdir()
    return found


def _move_aside(data_dir: Path, aside: Path) -> None:
    for entry in sorted(data_dir.iterdir()):
        if entry.name.startswith(_OURS):
            aside.mkdir(exist_ok=True)
            entry.rename(aside / entry.name)
    if aside.exists():
        sync_folder(aside)
    sync_folder(data_dir)


def is_locked(data_dir: Path) -> bool:
    """Whether another process holds the data dir's lock."""
    lock = FileLock(data_dir / _LOCK)
    try:
        lock.acquire(timeout=0)
    except Timeout:
        return True
    except OSError:
        return False
    lock.release()
    return False


@contextmanager
def data_dir_lock(data_dir: Path) -> Iterator[None]:
    """Lock the data dir for this process; the operating system unlocks it when the process dies.

    An interrupted swap of a restore is completed first.

    Raises:
        SetupError: Another process holds the lock, or the data dir cannot be written.

    Example:
        >>> with data_dir_lock(settings.data_dir):
        ...     serve()
    """
    lock = FileLock(data_dir / _LOCK)
    try:
        make_folder(data_dir)
        lock.acquire(timeout=0)
    except Timeout:
        raise SetupError(
            "Another Footnote process is using this data dir. Stop it, point FOOTNOTE_DATA_DIR elsewhere, "
            "or talk to the running server with --url and --key."
        ) from None
    except OSError as error:
        raise SetupError(f"The data dir cannot be written: {error.strerror}.") from error
    try:
        forget(data_dir)
        finish(data_dir)
        yield
    finally:
        lock.release()
