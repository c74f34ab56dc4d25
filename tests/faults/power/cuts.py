"""Cuts the power at any change of a recording, starts the server on what is left, and holds it to what it had said."""

import hashlib
import random
import shutil
import sqlite3
from bisect import bisect_right
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from app.settings import Settings
from tests.backups import restore
from tests.faults.forked import ForkedServer
from tests.faults.ledger import look
from tests.faults.library import Library
from tests.faults.metered import metered
from tests.faults.power.disk import Disk, Event, Unsynced, events_of
from tests.faults.power.recording import BACKUP, Note, RecordedServer, record
from tests.faults.preloaded.server import DATA


@dataclass(frozen=True, slots=True)
class Cut:
    """The power fails after so many changes; `seed` decides what the mode leaves open."""

    changes: int
    unsynced: Unsynced
    seed: int


class Recording:
    """The changes of one run, and what was acknowledged meanwhile."""

    def __init__(self, root: Path, events: list[Event], notes: list[Note]) -> None:
        self.root, self.events, self.notes = root, events, notes
        self._ends = [event.end for event in events]

    @classmethod
    def made_in(cls, folder: Path) -> "Recording":
        """Run a server and record it; what was replayed must be what lies on disk, or the recorder missed something."""
        folder.mkdir(exist_ok=True)
        server = RecordedServer(folder)
        try:
            notes = record(server)
        finally:
            server.close()
        made = cls(server.root, events_of(server.log_path), notes)
        made.disk(len(made.events)).write(folder / "replayed", Unsynced.KEPT, random.Random(0))
        assert _files(folder / "replayed") == _files(server.root), "the recorder missed a change"
        return made

    def changes_at(self, note: Note) -> int:
        """How many changes had been made when it was noted."""
        return bisect_right(self._ends, note.log_bytes)

    def disk(self, changes: int, *, unsynced: Callable[[str], bool] = lambda path: False) -> Disk:
        """The disk after so many changes."""
        disk = Disk(self.root, unsynced=unsynced)
        for event in self.events[:changes]:
            disk.apply(event)
        return disk

    def around(self, changes: int) -> tuple[Note | None, Note]:
        """What was acknowledged by then, None for nothing, and the next note."""
        before = [note for note in self.notes if self.changes_at(note) <= changes]
        return (before[-1] if before else None), self.notes[min(len(before), len(self.notes) - 1)]

    def cuts(self, count: int, *, seed: int) -> list[Cut]:
        """So many at random; every second just after something was acknowledged, where a missing fsync shows."""
        chance = random.Random(seed)
        modes = (Unsynced.DROPPED, Unsynced.KEPT_AT_RANDOM, Unsynced.TORN)
        found = []
        for number in range(count):
            at = chance.randrange(len(self.events) + 1)
            if number % 2:
                at = self.changes_at(chance.choice(self.notes))
            found.append(Cut(at, modes[number % len(modes)], chance.randrange(1 << 30)))
        return found


def survives(
    recording: Recording, cut: Cut, folder: Path, *, unsynced: Callable[[str], bool] = lambda path: False
) -> None:
    """Cut the power, start the server on what is left, and compare it with what was acknowledged.

    Args:
        unsynced: Paths whose fsync is taken for nothing, to prove that the check would notice.

    Raises:
        AssertionError: Something acknowledged is lost or half there, or the server does not start.
    """
    acknowledged, later = recording.around(cut.changes)
    disk = recording.disk(cut.changes, unsynced=unsynced)
    disk.write(folder, cut.unsynced, random.Random(cut.seed))
    before = Library(ForkedServer(folder / DATA)) if acknowledged is None else acknowledged.library
    backup, backed_up = folder / BACKUP, later.backed_up
    if acknowledged is not None and acknowledged.backed_up is not None:
        assert backup.exists(), "the backup is lost"
    (folder / DATA).mkdir(exist_ok=True)
    server = ForkedServer(folder / DATA, metered)
    try:
        server.start()
        before.until(later.library, server).check()
        if acknowledged is not None and acknowledged.prepared and _has_rows(server.data_dir):
            look(server, acknowledged.accounts)
        _assert_whole(server.data_dir)
        server.kill()
        if backup.exists():
            assert backed_up is not None
            _assert_restores(backup, backed_up, folder / "restored")
    finally:
        server.close()


def _assert_restores(backup: Path, held: Library, into: Path) -> None:
    restore(Settings(data_dir=into, _env_file=None), backup)
    server = ForkedServer(into, metered)
    try:
        server.start()
        held.until(held, server).check()
        _assert_whole(into)
    finally:
        server.close()


def _has_rows(data_dir: Path) -> bool:
    with closing(sqlite3.connect(f"file:{data_dir / 'footnote.db'}?mode=ro", uri=True)) as connection:
        return connection.execute("SELECT 1 FROM usage_event").fetchone() is not None


def _assert_whole(data_dir: Path) -> None:
    """The database is sound, and every original is the file that its row describes."""
    with closing(sqlite3.connect(f"file:{data_dir / 'footnote.db'}?mode=ro", uri=True)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        rows = connection.execute("SELECT document_id, object, sha256 FROM document_version").fetchall()
    for document_id, name, sha256 in rows:
        path = data_dir / "files" / name
        assert path.exists(), f"the original {path.name} of {document_id} is lost"
        assert hashlib.sha256(path.read_bytes()).hexdigest() == sha256, f"the original of {document_id} differs"


def _files(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not path.name.endswith("-shm")
    }


def losses(
    recording: Recording, cuts: list[Cut], folder: Path, *, report: Callable[[int, Cut], None] = lambda *_: None
) -> Iterator[str]:
    """What was lost after each cut that lost something; the other cuts' folders are deleted."""
    for number, cut in enumerate(cuts):
        try:
            survives(recording, cut, folder / str(number))
        except Exception as error:  # noqa: BLE001 - whatever a server says that does not start any more
            yield f"after {cut}: {error}"
        else:
            shutil.rmtree(folder / str(number))
        report(number, cut)


def all_survive(recording: Recording, cuts: list[Cut], folder: Path) -> None:
    """`survives` for each.

    Raises:
        AssertionError: The first that does not; its message names the cut.
    """
    for lost in losses(recording, cuts, folder):
        raise AssertionError(lost)
