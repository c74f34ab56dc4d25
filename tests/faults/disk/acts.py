"""What a client does while the disk fails: it uploads, asks, waits for a settlement, deletes and makes a backup.

Each act is done twice: while the disk fails, when it is done or refused as promised, and after, when it must be done.
"""

import json
import sqlite3
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

from app.backup.verification import verify
from tests.faults.disk.backing import BackupProcess
from tests.faults.disk.faults import Calls, Fault
from tests.faults.disk.server import FailingServer, Refused
from tests.faults.ledger import Accounts, look, set_budgets, set_prices
from tests.faults.library import Library

_QUESTION = "How many ships were counted?"
_TOKENS = 40
_KEPT = 30  # documents: a search finds all their chunks
_WAITING_SECONDS = 60.0


class Client:
    """A client of one server, and all that it was told. `refusals` are the statuses of what was refused."""

    def __init__(self, server: FailingServer) -> None:
        """Start the server, with prices and budgets."""
        self.server, self.library, self.accounts = server, Library(server), Accounts()
        self.refusals: list[int] = []
        self._named = 0
        self._backing: BackupProcess | None = None
        server.launch()
        set_prices(server, millionths=500_000)
        set_budgets(server)

    def named(self) -> str:
        """A name that no document had before."""
        self._named += 1
        return f"paper{self._named}"

    def upload(self, fault: Fault) -> None:
        """An upload is acknowledged or leaves no document; after the fault it is acknowledged."""
        name = self.named()
        with self.server.faults.during(fault):
            refused = not self._done(name, lambda: self.library.upload(name))
        if refused:
            assert name not in {one["external_id"] for one in self.server.documents()}, f"refused and there: {fault}"
        assert self._done(name, lambda: self.library.upload(name)), f"refused after the fault: {fault}"
        for older in self.library.present()[:-_KEPT]:
            self.library.delete(older)

    def delete(self, fault: Fault) -> None:
        """A deletion is acknowledged or leaves the document as it was; after the fault it is acknowledged."""
        name = self.named()
        self.library.upload(name)
        self.server.settled()
        (marker,) = self.library.entries[name].markers
        with self.server.faults.during(fault):
            refused = not self._done(name, lambda: self.library.delete(name))
        assert self.library.search(marker) == ({name} if refused else set()), f"half deleted: {fault}"
        if refused:
            assert self._done(name, lambda: self.library.delete(name)), f"refused after the fault: {fault}"

    def ask(self, fault: Fault) -> None:
        """An answer is given and billed, or refused; after the fault it is given."""
        with self.server.faults.during(fault):
            self._ask()
        assert self._ask(), f"refused after the fault: {fault}"

    def settlement(self, fault: Fault) -> None:
        """An answer that had begun ends with its usage or with a problem, and is on the ledger once."""
        body = {"question": _QUESTION, "max_output_tokens": _TOKENS, "on_no_evidence": "answer", "stream": True}
        event, deltas, ended = "", 0, False
        with self.server.http.stream("POST", "/v1/ask", json=body) as response:
            request_id = response.headers["x-request-id"]
            self.accounts.begun.add(request_id)
            try:
                for line in response.iter_lines():
                    if line.startswith("event: "):
                        event = line.removeprefix("event: ")
                        deltas += event == "delta"
                        if event == "delta" and deltas == 1:
                            self.server.faults.begin(fault)
                    elif line.startswith("data: ") and event in {"usage", "error"}:
                        ended |= self._noted(request_id, event, json.loads(line.removeprefix("data: ")))
            finally:
                self.server.faults.end()
        assert deltas > 1, "the fault came after the answer"
        assert ended, f"a stream without an end: {fault}"

    def backup(self, fault: Fault) -> None:
        """A backup is made or refused; either way the earlier one or the new one is there, whole, and nothing else."""
        target = self.server.root / "footnote.backup"
        assert target.exists() or not self._backups().back_up(target)
        with self.server.faults.during(fault):
            refusal = self._backups().back_up(target)
        assert refusal in {"", "StorageFull", "StoreUnavailable", "SetupError"}, f"{refusal}: {fault}"
        self._assert_backed_up(target)
        if refusal:
            self.refusals.append(507 if refusal == "StorageFull" else 503)
            assert self._backups().back_up(target) == "", f"refused after the fault: {fault}"

    def backup_command(self, fault: Fault) -> str:
        """As `backup`, by the command `footnote backup`, which must be refused; returns what it says."""
        target = self.server.root / "footnote.backup"
        self.server.back_up(target)
        with self.server.faults.during(fault):
            done = self.server.run("backup", "--force", str(target))
        assert done.returncode == 1
        assert "Traceback" not in done.stderr, done.stderr
        self._assert_backed_up(target)
        return done.stderr.strip()

    def close(self) -> None:
        """End the server, and the process that makes backups."""
        if self._backing is not None:
            self._backing.close()
        self.server.close()

    def check(self) -> None:
        """Nothing acknowledged is lost: documents, answers and bills, before and after a kill and a start."""
        assert self.server.serves(), self.server.log()[-2000:]
        self.settled()
        look(self.server, self.accounts)
        self.server.end(gently=False)
        self.server.launch()
        self.library.check()
        self.settled()
        look(self.server, self.accounts)

    def settled(self) -> None:
        """Wait until no document is under way, and no call is open on the ledger."""
        self.server.settled()
        deadline = time.monotonic() + _WAITING_SECONDS
        while time.monotonic() < deadline:
            path = self.server.data_dir / "footnote.db"
            with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as connection:
                (left,) = connection.execute("SELECT count(*) FROM usage_event WHERE status = 'reserved'").fetchone()
            if left == 0:
                return
            time.sleep(0.1)
        raise AssertionError(f"{left} calls are not settled")

    def _done(self, name: str, act: Callable[[], None]) -> bool:
        """Whether an act on a document was acknowledged. What was refused left the document as it was."""
        before = self.library.entries[name].markers if name in self.library.entries else {""}
        acknowledged = self.library.acknowledged
        act()
        if self.library.acknowledged > acknowledged:
            return True
        self.library.entries[name].markers = before
        self.refusals.append(self.server.refused[-1].status)
        return False

    def _backups(self) -> BackupProcess:
        self._backing = self._backing or BackupProcess(self.server)
        return self._backing

    def _assert_backed_up(self, target: Path) -> None:
        assert [path.name for path in target.parent.glob("*footnote.backup*")] == [target.name], (
            "something is left over"
        )
        verify(target, lambda *_: None)

    def _ask(self) -> bool:
        body = {"question": _QUESTION, "max_output_tokens": 5, "on_no_evidence": "answer"}
        try:
            response = self.server.http.post("/v1/ask", json=body)
        except Refused as refused:
            self.refusals.append(refused.status)
            return False
        assert response.status_code == 200, response.text
        self.accounts.bills[response.headers["x-request-id"]] = response.json()["usage"]
        return True

    def _noted(self, request_id: str, event: str, data: dict[str, Any]) -> bool:
        if event == "usage":
            self.accounts.bills[request_id] = data
        else:
            assert data["status"] in {503, 507}, data
        return True


ACTS: dict[str, tuple[Callable[[Client, Fault], None], Calls]] = {
    "upload": (Client.upload, Calls.OPEN | Calls.WRITE | Calls.SYNC | Calls.RENAME),
    "ask": (Client.ask, Calls.WRITE | Calls.SYNC),
    "settlement": (Client.settlement, Calls.WRITE | Calls.SYNC),
    "delete": (Client.delete, Calls.WRITE | Calls.SYNC),
    "backup": (Client.backup, Calls.OPEN | Calls.WRITE | Calls.SYNC | Calls.RENAME),
}
"""Each act, and the kinds of calls that it makes on every server, which therefore fail."""
