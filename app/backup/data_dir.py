"""One process per data dir."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from app.backup.placement import finish
from app.errors import SetupError


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
