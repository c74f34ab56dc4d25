"""Putting a restored installation in the place of the old one, so that a crash leaves one of the two.

A restore is prepared in a folder inside the data dir. One rename declares it ready: before that rename nothing
has changed, after it every start (and every restore) goes on where the last was cut off. Old things are moved
aside, never deleted. Inside the data dir and not beside it, because a data dir may be a volume of its own.
"""

import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from app.disk import sync_folder
from app.errors import SetupError

_PREPARING = "restore.part"
_READY = "restore.ready-"
_PLACING = "restore.placing-"
_ASIDE = "before-restore-"
_OURS = ("footnote.db", "files", "index", "lexical")  # and what begins so: -wal, .corrupt-…


def prepare(data_dir: Path) -> Path:
    """An empty folder to restore into; what a restore that was cut off left there goes. The caller holds the lock."""
    folder = data_dir / _PREPARING
    if folder.exists():
        shutil.rmtree(folder)
    folder.mkdir()
    return folder


def is_used(data_dir: Path) -> bool:
    """Whether an installation lies in the data dir."""
    return any(entry.name.startswith(_OURS) for entry in data_dir.iterdir())


def place(data_dir: Path) -> Path | None:
    """Put what `prepare`'s folder holds, already synced, in place; where the old installation is now, if there was one.

    The caller holds the lock.
    """
    stamp = int(time.time())
    while (aside := data_dir / f"{_ASIDE}{stamp}").exists():
        stamp += 1
    (data_dir / _PREPARING).rename(data_dir / f"{_READY}{stamp}")
    sync_folder(data_dir)
    finish(data_dir)
    return aside if aside.exists() else None


def finish(data_dir: Path) -> bool:
    """Go on with a placement that was cut off; whether there was one. The caller holds the lock."""
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


@contextmanager
def data_dir_lock(data_dir: Path) -> Iterator[None]:
    """Hold the data dir for this process; the operating system lets go when the process dies, however it dies.

    A restore that was cut off while it put things in place is finished first.

    Raises:
        SetupError: Another process has it.
    """
    data_dir.mkdir(parents=True, exist_ok=True)
    lock = FileLock(data_dir / "footnote.lock")
    try:
        lock.acquire(timeout=0)
    except Timeout:
        raise SetupError(
            "Another Footnote process is using this data dir. Stop it, point FOOTNOTE_DATA_DIR elsewhere, "
            "or talk to the running server with --url and --key."
        ) from None
    try:
        finish(data_dir)
        yield
    finally:
        lock.release()
