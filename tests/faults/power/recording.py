"""A server whose every change on disk is recorded, while a client uploads, asks, deletes and makes a backup."""

import fcntl
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path

from tests.faults.forked import ForkedServer
from tests.faults.ledger import Accounts, set_budgets, set_prices
from tests.faults.library import Library
from tests.faults.preloaded.server import PreloadedServer

_SOURCE = Path(__file__).with_name("recorder.c")
BACKUP = "footnote.backup"


@dataclass(frozen=True, slots=True)
class Note:
    """What was acknowledged when the log was so long. `backed_up` is what the backup holds, once it is made."""

    log_bytes: int
    library: Library
    accounts: Accounts
    backed_up: Library | None
    prepared: bool


class RecordedServer(PreloadedServer):
    """A server in a process of its own, under the recorder; what lies below `root` is recorded."""

    def __init__(self, folder: Path) -> None:
        self.log_path = folder / "changes.log"
        variables = {"POWER_ROOT": str(folder / "disk"), "POWER_LOG": str(self.log_path)}
        super().__init__(folder, _SOURCE, variables=variables)

    def end(self, *, gently: bool) -> None:
        """SIGTERM, or SIGKILL between two changes: one killed before its event is written would go unrecorded."""
        if gently:
            super().end(gently=True)
            return
        with self.log_path.open("r+b") as log:
            fcntl.lockf(log, fcntl.LOCK_EX)
            super().end(gently=False)


def record(server: RecordedServer) -> list[Note]:
    """Upload, replace, delete, ask, back up, stop, start and go on; a note after each acknowledged step."""
    library, accounts = Library(server), Accounts()
    notes: list[Note] = []
    backed_up: Library | None = None
    prepared = False

    def note() -> None:
        size = server.log_path.stat().st_size
        notes.append(Note(size, library.noted(), deepcopy(accounts), backed_up, prepared))

    def upload(*names: str) -> None:
        for number, name in enumerate(names):
            library.upload(name, paragraphs=1 + 2 * number)
            note()

    def ask(times: int) -> None:
        for _ in range(times):
            _ask(server, accounts)
            note()

    server.launch()
    note()
    set_prices(server, millionths=500_000)
    set_budgets(server)
    prepared = True
    note()
    upload("buoy", "ferry", "harbour", "pilot", "anchor")
    server.settled()
    note()
    ask(3)
    library.replace("ferry")
    note()
    library.delete("buoy")
    note()
    server.settled()
    server.back_up(server.root / BACKUP)
    backed_up = library.noted()
    note()
    upload("lamp", "tide")
    server.settled()
    ask(2)
    library.delete("harbour")
    note()
    server.end(gently=True)
    note()
    server.launch()
    upload("fog", "buoy")
    server.settled()
    note()
    ask(2)
    library.replace("pilot")
    note()
    library.delete("lamp")
    note()
    server.end(gently=False)
    return notes


def _ask(server: ForkedServer, accounts: Accounts) -> None:
    body = {"question": "How many ships were counted?", "max_output_tokens": 20, "on_no_evidence": "answer"}
    response = server.http.post("/v1/ask", json=body)
    assert response.status_code == 200, response.text
    accounts.bills[response.headers["x-request-id"]] = response.json()["usage"]
