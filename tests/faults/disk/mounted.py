"""A real small disk: a file system in memory that one server sees, which a test fills and empties from outside."""

import errno
import os
import subprocess
from functools import cache
from pathlib import Path

from tests.faults.disk.server import FailingServer
from tests.faults.forked import Application

_MOUNT = 'mount -t tmpfs -o size="$1" disk "$2" && mkdir "$2/tmp" && shift 2 && exec "$@"'
_FILLER = "filler"
_BLOCK = 1 << 20


@cache
def namespace() -> tuple[str, ...] | None:
    """A command that runs a command with mounts of its own; None where this machine allows that to nobody."""
    for command in (("unshare", "--mount"), ("unshare", "--user", "--map-root-user", "--mount")):
        try:
            probe = subprocess.run([*command, "mount", "-t", "tmpfs", "disk", "/mnt"], capture_output=True, check=False)
        except FileNotFoundError:
            return None
        if probe.returncode == 0:
            return command
    return None


class SmallDisk(FailingServer):
    """A server whose `root` is a file system of so many bytes."""

    def __init__(self, folder: Path, application: Application, *, size: int) -> None:
        within = namespace()
        assert within is not None, "the test is skipped"
        root = folder / "disk"
        super().__init__(folder, application, within=(*within, "sh", "-c", _MOUNT, "sh", str(size), str(root)))

    @property
    def inside(self) -> Path:
        """`root` as the server sees it."""
        assert self._served is not None
        return Path(f"/proc/{self._served.pid}/root{self.root}")

    @property
    def free(self) -> int:
        """Bytes that are free on the disk."""
        about = os.statvfs(self.inside)
        return about.f_bavail * about.f_frsize

    def fill(self, *, leave: int) -> None:
        """Take room until so many bytes are free, or fewer: the server takes some too."""
        with (self.inside / _FILLER).open("ab", buffering=0) as file:
            while (surplus := self.free - leave) > 0:
                try:
                    file.write(bytes(min(surplus, _BLOCK)))
                except OSError as error:
                    if error.errno != errno.ENOSPC:
                        raise
                    return

    def empty(self) -> None:
        """Give the room back that `fill` took."""
        (self.inside / _FILLER).unlink()

    def log(self) -> str:
        return (self.inside / "forked.log").read_text(errors="replace") if self.serves() else ""
