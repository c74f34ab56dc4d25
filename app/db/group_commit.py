"""Group commit on SQLite: several short transactions share one commit, so that one flush to disk serves them all.

Gray and Reuter 1992, "Transaction Processing", section 9.5; DeWitt et al. 1984. SQLite has one writer, and each commit
waits for the disk. A writer that sees others waiting ends its part with a savepoint, leaves the transaction open for
them, and waits for the common commit. No writer returns before that commit.
"""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

import sqlalchemy as sa

from app.errors import StoreUnavailable

_MOST_MEMBERS = 16
_OPEN_SECONDS = 0.02  # longest time that a transaction stays open for others
_LOOK_SECONDS = 0.1  # how often a waiting member checks that the group will be committed

Guard = Callable[[], AbstractContextManager[None]]


class _Group:
    """One shared transaction and its outcome."""

    def __init__(self, connection: sa.Connection) -> None:
        self.connection = connection
        self.transaction = connection.begin()
        self.began = time.monotonic()
        self.members = 0
        self.ended = threading.Event()
        self.error: Exception | None = None

    @property
    def open(self) -> bool:
        """Whether the transaction is still open: SQLite rolls it back itself when the disk is full."""
        return bool(self.connection.connection.dbapi_connection.in_transaction)  # type: ignore[union-attr]

    def run(self, statement: str) -> None:
        """Run a statement directly on the driver, without the overhead of SQLAlchemy."""
        self.connection.connection.dbapi_connection.execute(statement)  # type: ignore[union-attr]


class GroupCommit:
    """Short transactions on SQLite's one writer. `turn` is the writers' lock; `errors` translates database errors.

    Example:
        >>> with group.member() as connection:
        ...     connection.execute(statement)
    """

    def __init__(self, writer: sa.Engine, *, turn: Guard, errors: Guard) -> None:
        self._writer = writer
        self._turn = turn
        self._errors = errors
        self._counting = threading.Lock()
        self._coming = 0
        self._group: _Group | None = None

    @property
    def coming(self) -> int:
        """The number of writers that wait for their turn."""
        with self._counting:
            return self._coming

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
        """Commit the open transaction, if there is one. The caller holds the writers' lock."""
        group, self._group = self._group, None
        if group is None:
            return
        try:
            with self._errors():
                if not group.open:
                    raise StoreUnavailable("The database rolled the transaction back; try again in a moment.")
                group.transaction.commit()
        except Exception as error:  # noqa: BLE001 - every member raises it
            group.error = error
        finally:
            group.connection.close()
            group.ended.set()

    def _joined(self) -> _Group:
        if self._group is not None and not self._group.open:
            self.end()  # its members raise the error
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
        group.run("SAVEPOINT part")
        try:
            yield
        except BaseException:
            if group.open:
                group.run("ROLLBACK TO part")
                group.run("RELEASE part")
            raise
        group.run("RELEASE part")

    def _waits(self, group: _Group) -> bool:
        """Whether the group stays open for waiting writers."""
        young = time.monotonic() - group.began < _OPEN_SECONDS
        return self.coming > 0 and group.open and group.members < _MOST_MEMBERS and young

    def _await(self, group: _Group) -> None:
        while not group.ended.wait(_LOOK_SECONDS):  # the next writer gave up waiting for the lock
            with self._turn():
                if self._group is group:
                    self.end()
        if group.error is not None:
            raise group.error

    def _count(self, one: int) -> None:
        with self._counting:
            self._coming += one
