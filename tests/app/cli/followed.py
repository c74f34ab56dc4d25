"""A folder that `footnote ingest --watch` follows, without a server and without waiting."""

import os
from pathlib import Path

from app.cli.folder import Folder
from app.cli.mirror import Mirror
from app.cli.retries import Patience
from app.cli.tally import Tally
from app.cli.watch import SETTLE_S, Follower
from tests.app.cli.memory_collection import MemoryCollection, Notes


class Followed:
    """A folder, a collection, and the follower between them, with a clock of its own."""

    def __init__(
        self,
        root: Path,
        collection: MemoryCollection | None = None,
        *,
        keep_removed: bool = False,
        prefix: str = "",
    ) -> None:
        self.root = root
        root.mkdir(exist_ok=True)
        self.collection = collection or MemoryCollection()
        self.notes = Notes()
        self.now = 1000.0
        self.folder = Folder(root, prefix=prefix)
        self.mirror = Mirror(
            self.collection,
            scope="col_1",
            patience=Patience(limit_s=None, say=self.notes.say, sleep=self.pass_time),
            tally=Tally(clock=self.clock),
            observer=self.notes,
            sleep=self.pass_time,
        )
        self.follower = Follower(
            self.folder, self.mirror, keep_removed=keep_removed, say=self.notes.say, clock=self.clock
        )
        self.writes = 0

    def clock(self) -> float:
        return self.now

    def pass_time(self, seconds: float) -> None:
        self.now += seconds

    def write(self, name: str, content: str) -> Path:
        """Write with a time of its own: a test writes faster than the file system's clock ticks."""
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
        self.writes += 1
        os.utime(path, ns=(self.writes * 10**9, self.writes * 10**9))
        return path

    def touch(self, *names: str) -> None:
        self.follower.touch(self.root / name for name in names)

    def settle(self) -> None:
        """Ticks until nothing moves."""
        for _ in range(4):
            self.follower.tick()
            self.now += SETTLE_S
        assert self.follower.idle
        self.mirror.drain()

    def start(self) -> "Followed":
        self.follower.rescan()
        self.settle()
        return self

    def files(self) -> dict[str, bytes]:
        return {
            path.relative_to(self.root).as_posix(): path.read_bytes() for path in self.root.rglob("*") if path.is_file()
        }
