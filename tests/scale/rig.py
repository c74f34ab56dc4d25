"""Several processes on one PostgreSQL, a client that remembers what was acknowledged to it, and time that it lets pass.

The client is one of the processes: it uploads, beats, and buries nobody. The others judge the dead by a monotonic clock
that they read from a file. So nobody dies because the machine is slow, and nobody waits 15 s.
"""

import itertools
import json
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from zoneinfo import ZoneInfo

import sqlalchemy as sa

from app.db.dialect import require_pgvector
from app.db.originals import OriginalRepository
from app.db.presence import STILL_SECONDS, OwnProcess, Presence, living, not_living
from app.db.session import Database
from app.db.tables.documents import chunk, chunk_vector, document, document_version, job
from app.db.tables.ledger import cancel_request, process, usage_event
from app.documents.adapters.folder_originals import FolderOriginals
from app.documents.files import DocumentFiles
from app.documents.ports import new_object_name
from app.documents.spool import Spool
from app.ids import new_id
from app.telemetry.metrics import Metrics
from app.types import Document
from app.usage.reconciliation.reconciliation import LedgerReconciliation
from tests.app.db.samples import Library
from tests.faults.forked import ForkedServer, KillPoint
from tests.scale.member import HALT, application, vectors_in

PATIENCE_SECONDS = 90.0
_TURN_SECONDS = 3.0  # of the clock, for each of which every living process beats twice


def eventually(condition: Callable[[], bool], what: str) -> None:
    """Wait until it holds."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        assert time.monotonic() < deadline, what
        time.sleep(0.01)


class Member:
    """A process beside others that ingests, or answers requests; start it, stop it, kill it."""

    def __init__(self, rig: "Rig", name: str, *, role: str, settings: Mapping[str, object]) -> None:
        self.rig = rig
        self.folder = rig.folder / name
        self.folder.mkdir()
        given: dict[str, object] = {"url": rig.url, "clock": str(rig.clock), "originals": str(rig.originals)}
        given |= {"role": role, "settings": dict(settings)}
        (self.folder / "member.json").write_text(json.dumps(given))
        self.server = ForkedServer(self.folder / "data", application)
        self.boot_id = ""

    def start(self, *, stop_at: KillPoint | None = None) -> "Member":
        """Serve; its id is known then. At `stop_at` it stops itself."""
        before = living(self.rig.database)
        self.server.start(kill_at=stop_at)
        (self.boot_id,) = living(self.rig.database) - before
        return self

    def go_on(self) -> "Member":
        """It stands still at no text any more."""
        (self.folder / "go").touch()
        return self

    def halted(self) -> None:
        """Wait until it stands still at a text."""
        eventually((self.folder / "halted").exists, "it embeds nothing")

    def stopped(self) -> None:
        """Wait until it is stopped."""
        eventually(self.server.stopped, "it was not stopped")

    def beat(self) -> int:
        """How often it beat so far."""
        with self.rig.database.read() as connection:
            mine = sa.select(process.c.beat).where(process.c.boot_id == self.boot_id)
            return int(connection.execute(mine).scalar_one())

    def beats_beyond(self, beat: int) -> None:
        """Wait until it has beaten more often."""
        eventually(lambda: self.beat() > beat, f"{self.folder.name} is dead")


class Rig:
    """A database, the members that share it, and every document that was acknowledged."""

    def __init__(self, folder: Path, url: str) -> None:
        self.folder, self.url = folder, url
        self.clock, self.originals = folder / "clock", folder / "originals"
        self.originals.mkdir()
        self._set_clock(0.0)
        self.database = Database.open(url)
        # its own clock stands still: it never takes anybody for dead
        self._presence = Presence(
            self.database,
            boot_id="client",
            role="api",
            version="0",
            release=lambda _: None,
            monotonic=lambda: 0.0,
        )
        self._presence.begin()
        rows = OriginalRepository(self.database, OwnProcess("client", not_living))
        self.files = DocumentFiles(spool=Spool(folder / "client"), store=FolderOriginals(self.originals), rows=rows)
        self.library = Library(self.database)
        with self.database.write() as connection:
            require_pgvector(connection)
        self.vectors = vectors_in(self.database)
        self.acknowledged: dict[str, str] = {}
        self.members: list[Member] = []
        self._numbers = itertools.count()

    def member(self, role: str = "worker", **settings: object) -> Member:
        """A process that is not started yet."""
        self.members.append(Member(self, f"member-{len(self.members)}", role=role, settings=settings))
        return self.members[-1]

    def upload(self, *, halts: bool = False) -> Document:
        """As a request does: the original is stored, its row is committed, and the caller is told."""
        number = next(self._numbers)
        text = f"The keeper {HALT if halts else 'looks'} at ship number {number}.\n\nIt sails to harbour {number * 7}."
        spooled = self.files.spool.receive([text.encode()], name=new_id("in"), limit=len(text))
        with self.files.put(spooled, name=new_object_name()) as original:
            created = self.library.upload(text, filename=f"{number}.txt", original=original)
        self.acknowledged[created.id] = text
        return created

    def pass_time(self, *alive: Member, seconds: float = STILL_SECONDS + _TURN_SECONDS) -> None:
        """Let time pass, while those that live beat."""
        for _ in range(round(seconds / _TURN_SECONDS)):
            self._set_clock(float(self.clock.read_text()) + _TURN_SECONDS)
            assert self._presence.turn(), "the client was buried"
            for member, seen in [(member, member.beat()) for member in alive]:
                member.beats_beyond(seen + 1)  # the second beat began after the clock was set

    def indexed(self) -> None:
        """Wait until every document that was acknowledged is indexed."""
        waits = sa.select(sa.func.count()).select_from(document).where(document.c.status.not_in(("indexed", "failed")))

        def done() -> bool:
            self._presence.turn()
            with self.database.read() as connection:
                return connection.execute(waits).scalar_one() == 0

        eventually(done, "documents wait")

    def open_requests(self) -> list[str]:
        """Requests that call a model."""
        calls = sa.select(usage_event.c.request_id).where(usage_event.c.status == "reserved")
        with self.database.read() as connection:
            return list(connection.execute(calls).scalars())

    def cancels(self) -> list[str]:
        """Requests that a process was asked to cancel and did not yet."""
        with self.database.read() as connection:
            return list(connection.execute(sa.select(cancel_request.c.request_id)).scalars())

    def status(self, created: Document) -> str:
        """Of a document."""
        return self.library.get(created.id).status

    def check(self) -> None:
        """Nothing acknowledged is lost, doubled or half there, and the books agree."""
        with self.database.read() as connection:
            found = connection.execute(
                sa.select(document.c.id, document.c.status, document_version).join(
                    document_version, document_version.c.document_id == document.c.id
                )
            ).all()
            assert {row.id: row.text for row in found} == self.acknowledged
            assert len(found) == len(self.acknowledged), "one version each"
            assert {row.status for row in found} <= {"indexed"}
            of_chunks = sa.select(chunk.c.document_id, sa.func.count(), sa.func.count(chunk.c.ordinal.distinct()))
            chunks = {row[0]: row[1:] for row in connection.execute(of_chunks.group_by(chunk.c.document_id))}
            assert {key: tuple(counts) for key, counts in chunks.items()} == {
                row.id: (row.chunk_count, row.chunk_count) for row in found
            }
            vectors = connection.execute(sa.select(sa.func.count()).select_from(chunk_vector)).scalar_one()
            assert vectors == sum(row.chunk_count for row in found)
            assert vectors == len(self.vectors)
            assert set(connection.execute(sa.select(job.c.status)).scalars()) <= {"done"}
            per_job = sa.select(usage_event.c.request_id, sa.func.sum(usage_event.c.input_tokens))
            billed = {row[0]: row[1] for row in connection.execute(per_job.group_by(usage_event.c.request_id))}
            jobs = {row[0]: row[1] for row in connection.execute(sa.select(job.c.document_id, job.c.id))}
            assert {jobs[row.id]: row.embedding_tokens for row in found} == billed, "each is paid for once"
            assert "reserved" not in set(connection.execute(sa.select(usage_event.c.status)).scalars())
        named = OriginalRepository(self.database, OwnProcess("client", not_living)).named()
        assert FolderOriginals(self.originals).put_before(float("inf")) == named
        books = LedgerReconciliation(
            self.database, OwnProcess("client", not_living), zone=ZoneInfo("UTC"), metrics=Metrics()
        )
        assert books.run(since=0).mismatches == ()

    def close(self) -> None:
        """Kill whatever still runs."""
        for member in self.members:
            member.server.close()
        self.database.close()

    def _set_clock(self, seconds: float) -> None:
        new = self.clock.with_suffix(".new")
        new.write_text(str(seconds))
        new.replace(self.clock)
