"""Kills a server at the edges of its transactions while a client makes changes, and looks at what is left each time.

Before a change the server is told at which of its commits it ends. After the kill it is started again. What was
acknowledged must be there; what was not has happened whole or not at all, and a retry makes it happen once.
"""

import signal
import sqlite3
from collections import Counter
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import httpx

from tests.faults.changes import CHANGES, Change
from tests.faults.commits import ANY, Commits, Edge, committing
from tests.faults.forked import ForkedServer
from tests.faults.ledger import Accounts, look, set_budgets, set_prices
from tests.faults.test_kill import assert_no_document_is_half_visible

DONE = {200, 201, 202}
_DIES_WITHIN_S = 30.0


class Walk:
    """One data dir on which all changes are made, in order. `plan` names the edge of each change; None: no kill.

    `edges` are those that each change had, and `reached` those at which the server was killed. An edge of a kind that
    a change does not come to is `missed`; one of any kind stands until it is come to. The last edge of the plan, if it
    has one more than there are changes, is for the end of the server.
    """

    def __init__(self, folder: Path, plan: Sequence[Edge | None] = ()) -> None:
        self.server = ForkedServer(folder / "data", committing)
        self.edges: list[list[Edge]] = []
        self.reached: list[tuple[str, Edge]] = []
        self.missed: list[tuple[str, Edge]] = []
        self._commits = Commits(self.server.data_dir)
        self._plan = plan
        self._accounts = Accounts()
        self._standing: Edge | None = None

    def run(self) -> None:
        """Make every change, and be killed as planned.

        Raises:
            AssertionError: Something acknowledged is lost, something is half there, happened twice, or is still open.
        """
        try:
            self.server.start()
            set_prices(self.server, millionths=500)
            set_budgets(self.server)
            self._ask()
            for number, change in enumerate(CHANGES):
                planned = self._plan[number] if number < len(self._plan) else None
                self._make(change, planned, key=f"change-{number}")
            self._stop(self._plan[len(CHANGES)] if len(self._plan) > len(CHANGES) else None)
        finally:
            self.server.close()

    def _ask(self) -> None:
        """A first question, whose bill must stay what it was."""
        body = {"question": "How many ships?", "on_no_evidence": "answer", "max_output_tokens": 20}
        response = self.server.http.post("/v1/ask", json=body)
        assert response.status_code == 200, response.text
        self._accounts.bills[response.headers["x-request-id"]] = response.json()["usage"]

    def _made(self, change: Change) -> list[list[int]]:
        """The signs of the changes before `change`."""
        return [earlier.found(self.server) for earlier in CHANGES[: CHANGES.index(change)]]

    def _make(self, change: Change, planned: Edge | None, *, key: str) -> None:
        assert change.count(self.server) == 0, change
        if self._standing is None and planned is not None:
            self._commits.order(planned)
            self._standing = planned
        commits, made = len(self._commits.seen()), self._made(change)
        ready = change.ready(self.server)
        acknowledged = self._sent(ready, key)
        if not self.server.alive():
            self._recover(change, made, acknowledged=acknowledged)
            if not acknowledged:
                response = ready.send(self.server, key)
                assert response.status_code in DONE | change.again, f"{change}: {response.status_code} {response.text}"
                self.server.settled()
            self._hold(str(change))
        assert change.count(self.server) == (1 if change.signs else 0), f"{change} has not happened once"
        self.edges.append(_edges_of(self._commits.seen()[commits:]))
        if self._standing is not None and self._standing.kind != ANY:
            self._miss(str(change))

    def _miss(self, change: str) -> None:
        assert self._standing is not None
        self._commits.withdraw()
        self.missed.append((change, self._standing))
        self._standing = None

    def _stop(self, planned: Edge | None) -> None:
        """End the server, which writes its last counters meanwhile; killed there, the next start has all."""
        if self._standing is not None:
            self._miss("the end")
        if planned is not None:
            self._commits.order(planned)
        self.server.signal(signal.SIGTERM)
        status = self.server.ended()
        if planned is None:
            assert status == 0
            return
        assert status == -signal.SIGKILL, f"it ended with {status}, not at {planned}"
        self.reached.append(("the end", planned))
        self._commits.withdraw()
        self.server.start()
        self._hold("the end")
        self.server.stop()

    def _sent(self, change: Change, key: str) -> bool:
        """Send a change and wait until the server rests or is dead; whether it was acknowledged."""
        acknowledged = False
        try:
            response = change.send(self.server, key)
            assert response.status_code in DONE, f"{change}: {response.status_code} {response.text}"
            acknowledged = True
            self.server.settled()
        except httpx.TransportError:
            assert self._standing is not None, f"{change}: the server ended, and nobody told it to"
            assert self.server.died(seconds=_DIES_WITHIN_S), "the connection broke, and the server lives"
        return acknowledged

    def _recover(self, change: Change, made: list[list[int]], *, acknowledged: bool) -> None:
        """Start again, and compare with what was acknowledged; `made` is what there was before the change."""
        assert self._standing is not None
        self._commits.withdraw()
        self.reached.append((str(change), self._standing))
        self._standing = None
        self.server.start()
        self.server.settled()
        count = change.count(self.server)
        if change.signs:
            assert count in ({1} if acknowledged else {0, 1}), f"{change}: happened {count} times, {self.reached[-1]}"
        if change.method != "DELETE" or count == 0:
            assert self._made(change) == made, f"an earlier change is not what it was: {self.reached[-1]}"
        self._hold(str(change))

    def _hold(self, change: str) -> None:
        """The books agree, nothing is reserved, no document is half there, and SQL, files and index agree."""
        look(self.server, self._accounts)
        assert_no_document_is_half_visible(self.server)
        found = self.server.http.post("/v1/admin/reconcile", json={"repair": False}).json()
        assert found["findings"] == [], f"{change}: {found}, {self.reached[-1]}"
        with closing(sqlite3.connect(f"file:{self.server.data_dir / 'footnote.db'}?mode=ro", uri=True)) as connection:
            assert connection.execute("PRAGMA foreign_key_check").fetchall() == []


def _edges_of(kinds: Sequence[str]) -> list[Edge]:
    """Both edges of each commit, in their order."""
    seen: Counter[str] = Counter()
    found: list[Edge] = []
    for kind in kinds:
        seen[kind] += 1
        found += [Edge(kind, seen[kind], "before"), Edge(kind, seen[kind], "after")]
    return found


def plans(edges: Sequence[Sequence[Edge]]) -> list[list[Edge | None]]:
    """Walks that reach every edge once between them: the first kills at the first edge of each change, and so on."""
    ends: Sequence[Edge] = [Edge(ANY, 1, "before"), Edge(ANY, 1, "after")]
    of_all = [*edges, ends]
    most = max(map(len, of_all))
    return [[of_one[number] if number < len(of_one) else None for of_one in of_all] for number in range(most)]
