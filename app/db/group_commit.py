"""Several short transactions in one commit, so that one flush to disk serves them all (group commit).

Gray and Reuter 1992, "Transaction Processing", section 9.5; DeWitt et al. 1984. SQLite has one writer, whose commits
each wait for the disk. Whoever writes while others wait for their turn leaves the transaction open for them, its own
part closed by a savepoint, and waits for the commit that keeps all parts. Nobody is told before it.
"""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

import sqlalchemy as sa

from app.errors import StoreUnavailable

_MOST_MEMBERS = 16
_OPEN_SECONDS = 0.02  # how long one may stay open for others
_LOOK_SECONDS = 0.1  # between two looks of a member whether whoever was to commit has gone

Guard = Callable[[], AbstractContextManager[None]]


class _Group:
    """One transaction and how it ended."""

    def __init__(self, connection: sa.Connection) -> None:
        self.connection = connection
        self.transaction = connection.begin()
        self.began = time.monotonic()
        self.members = 0
        self.ended = threading.Event()
        self.error: Exception | None = None

    @property
    def open(self) -> bool:
        """Whether the database still has the transaction: a full disk takes it back by itself."""
        return bool(self.connection.connection.dbapi_connection.in_transaction)  # type: ignore[union-attr]

    def say(self, statement: str) -> None:
        """Straight to the driver: these are the cheapest statements there are."""
        self.connection.connection.dbapi_connection.execute(statement)  # type: ignore[union-attr]


class GroupCommit:
    """Transactions on SQLite's one writer. `turn` takes turns with all other writers; `errors` translates."""

    def __init__(self, writer: sa.Engine, *, turn: Guard, errors: Guard) -> None:
        self._writer = writer
        self._turn = turn
        self._errors = errors
        self._counting = threading.Lock()
        self._coming = 0
        self._group: _Group | None = None

    @contextmanager
    def member(self) -> Iterator[sa.Connection]:
        """One short transaction, durable at exit, rolled back alone when the body raises. Must not be nested.

        Raises:
            StoreUnavailable, StorageFull: Nothing of it was written.
        """
        self._count(1)
        coming = True
        try:
            with self._turn():
                self._count(-1)
                coming = False
                group = self._joined()
                try:
                    with self._errors(), self._part(group):
                        yield group.connection
                finally:
                    if not self._waits(group):
                        self.end()
        finally:
            if coming:
                self._count(-1)
        self._await(group)

    def end(self) -> None:
        """Commit what is open, if anything is. Only for whoever has the turn."""
        group, self._group = self._group, None
        if group is None:
            return
        try:
            with self._errors():
                if not group.open:
                    raise StoreUnavailable("The database took the transaction back; try again in a moment.")
                group.transaction.commit()
        except Exception as error:  # noqa: BLE001 - every member raises it
            group.error = error
        finally:
            group.connection.close()
            group.ended.set()

    def _joined(self) -> _Group:
        if self._group is not None and not self._group.open:
            self.end()  # its members are told
        if self._group is None:
            with self._errors():
                connection = self._writer.connect()
                try:
                    self._group = _Group(connection)
                except BaseException:
                    connection.close()
                    raise
        self._group.members += 1
        return self._group

    @contextmanager
    def _part(self, group: _Group) -> Iterator[None]:
        group.say("SAVEPOINT part")
        try:
            yield
        except BaseException:
            if group.open:
                group.say("ROLLBACK TO part")
                group.say("RELEASE part")
            raise
        group.say("RELEASE part")

    def _waits(self, group: _Group) -> bool:
        """Whether a group stays open for those who come."""
        with self._counting:
            coming = self._coming > 0
        return (
            coming and group.open and group.members < _MOST_MEMBERS and time.monotonic() - group.began < _OPEN_SECONDS
        )

    def _await(self, group: _Group) -> None:
        while not group.ended.wait(_LOOK_SECONDS):  # whoever was to come next gave up waiting for a turn
            with self._turn():
                if self._group is group:
                    self.end()
        if group.error is not None:
            raise group.error

    def _count(self, one: int) -> None:
        with self._counting:
            self._coming += one
