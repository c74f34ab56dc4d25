"""Lists the transactions that a server commits, and kills the server right before or right after one of them.

Every write transaction is committed by SQLAlchemy, so its events name each of them; the code under test is the code
that ships. A transaction's kind is the function of ours that opened it. Only transactions that changed a row count.
"""

import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import sqlalchemy as sa

from app.server.state import State
from tests.app.evaluation.application import SAYS
from tests.faults.metered import metered, scripted

_OPENING = {"app.db.session", "app.db.group_commit"}
_UNKNOWN = "unknown"
ANY = "any kind"
"""Stands for every kind in an `Edge`."""


@dataclass(frozen=True, slots=True)
class Edge:
    """One side of a commit: the `nth` one of a kind since it was ordered; of any kind, the `nth` or the next."""

    kind: str
    nth: int
    side: Literal["before", "after"]

    def __str__(self) -> str:
        return f"{self.side} commit {self.nth} of {self.kind}"


class Commits:
    """What a client knows of a server's commits, and orders of it: two files beside the data dir."""

    def __init__(self, data_dir: Path) -> None:
        self._log = data_dir.parent / "commits.log"
        self._order = data_dir.parent / "commits.order"
        self._log.touch()

    def seen(self) -> list[str]:
        """The kinds of all commits so far, in their order."""
        return self._log.read_text(encoding="utf-8").splitlines()

    def order(self, edge: Edge) -> None:
        """Let the server end at `edge`, counted from now."""
        draft = self._order.with_suffix(".draft")
        draft.write_text(f"{len(self.seen())}\n{edge.side}\n{edge.nth}\n{edge.kind}", encoding="utf-8")
        draft.replace(self._order)

    def withdraw(self) -> None:
        """No order stands."""
        self._order.unlink(missing_ok=True)


@contextmanager
def committing(data_dir: Path) -> Iterator[State]:
    """As `metered`, with the commits listed and orders obeyed (`Commits`)."""
    _Watch(data_dir).listen()
    with metered(data_dir, engine=scripted(says=SAYS), remembers=True) as state:
        yield state


class _Watch:
    """Listens to the commits and connections of this process."""

    def __init__(self, data_dir: Path) -> None:
        self._log = (data_dir.parent / "commits.log").open("a", buffering=1, encoding="utf-8")
        self._order = data_dir.parent / "commits.order"
        self._lock = threading.Lock()
        self._changes: dict[int, int] = {}
        self._committed: dict[int, tuple[str, int]] = {}
        self._kinds: list[str] = []

    def listen(self) -> None:
        self._kinds = Path(self._log.name).read_text(encoding="utf-8").splitlines()
        sa.event.listen(sa.pool.Pool, "connect", self._connected)
        sa.event.listen(sa.Engine, "commit", self._before)
        sa.event.listen(sa.pool.Pool, "reset", self._after)

    def _connected(self, raw: Any, _: object) -> None:
        with self._lock:
            self._changes[id(raw)] = raw.total_changes

    def _before(self, connection: sa.Connection) -> None:
        raw: Any = connection.connection.dbapi_connection
        with self._lock:
            if raw.total_changes == self._changes[id(raw)]:
                return
            self._changes[id(raw)] = raw.total_changes
            kind = _opener()
            self._kinds.append(kind)
            self._committed[id(raw)] = kind, len(self._kinds)
            self._obey("before", kind, len(self._kinds))
            self._log.write(f"{kind}\n")

    def _after(self, raw: Any, *_: object) -> None:
        """A connection is reset when it goes back to its pool, before the code that wrote with it goes on."""
        with self._lock:
            committed = self._committed.pop(id(raw), None)
            if committed is not None:
                self._obey("after", *committed)

    def _obey(self, side: str, kind: str, number: int) -> None:
        try:
            since, ordered_side, nth, ordered_kind = self._order.read_text(encoding="utf-8").split("\n")
        except FileNotFoundError:
            return
        counted = [one for one in self._kinds[int(since) : number] if ordered_kind in {one, ANY}]
        # The order may come while a thread of the server commits, too late for that commit but counting it: one of any
        # kind is then obeyed at the next.
        due = len(counted) >= int(nth) if ordered_kind == ANY else len(counted) == int(nth)
        if side == ordered_side and ordered_kind in {kind, ANY} and due:
            os.kill(os.getpid(), signal.SIGKILL)


def _opener() -> str:
    """The named function of ours that opened the transaction which this thread commits."""
    frame = sys._getframe()  # noqa: SLF001 - the interpreter's, to look at its own stack
    while frame.f_back is not None:
        frame = frame.f_back
        module, name = frame.f_globals.get("__name__", ""), frame.f_code.co_qualname
        if module.startswith("app.") and module not in _OPENING and not name.rpartition(".")[2].startswith("_"):
            return f"{module}:{name}"
    return _UNKNOWN
