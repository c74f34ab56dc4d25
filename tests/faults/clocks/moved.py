"""A server in a process of its own whose machine's clock is moved while it serves."""

import mmap
import struct
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

from app.server.state import State
from tests.app.evaluation.application import SAYS
from tests.faults.metered import metered, scripted
from tests.faults.preloaded.server import PreloadedServer

_SOURCE = Path(__file__).with_name("machine.c")
_BILLION = 1_000_000_000


def remembering(data_dir: Path) -> AbstractContextManager[State]:
    """As `metered`, with conversations that are kept and a short answer."""
    return metered(data_dir, engine=scripted(says=SAYS), remembers=True)


class MovableClock:
    """The machine's clock of a server, as a file that the server reads at each look at its clock."""

    def __init__(self, path: Path) -> None:
        path.write_bytes(bytes(16))
        self.path = path
        self._file = path.open("r+b")
        self._shared = mmap.mmap(self._file.fileno(), 16)

    def move(self, seconds: float, *, flutter: float = 0.0) -> None:
        """So many seconds from the true time, and at every second reading `flutter` more."""
        self._shared[:] = struct.pack("qq", round(seconds * _BILLION), round(flutter * _BILLION))

    def close(self) -> None:
        """The file stays."""
        self._shared.close()
        self._file.close()


@contextmanager
def moved_server(folder: Path) -> Iterator[tuple[PreloadedServer, MovableClock]]:
    """A server that is not started yet, and its clock."""
    clock = MovableClock(folder / "clock")
    server = PreloadedServer(folder, _SOURCE, remembering, variables={"CLOCK_FILE": str(clock.path)})
    try:
        yield server, clock
    finally:
        server.close()
        clock.close()
