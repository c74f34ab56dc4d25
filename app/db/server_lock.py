"""Ensures one server per PostgreSQL database, by an advisory lock that lasts as long as a connection."""

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress

import sqlalchemy as sa

from app.db.dialect import lock_number
from app.db.presence import SERVER_LOCK, living, require_alone
from app.db.session import Database
from app.errors import AppError, SetupError
from app.telemetry.logs import logger

_WATCH_SECONDS = 5.0
_TAKE = sa.text("SELECT pg_try_advisory_lock(:number)")
_GIVE_BACK = sa.text("SELECT pg_advisory_unlock(:number)")
_NUMBER = {"number": lock_number(SERVER_LOCK)}


def stop_this_process() -> None:
    """Send SIGTERM to this process, for an orderly shutdown."""
    os.kill(os.getpid(), signal.SIGTERM)


@contextmanager
def server_lock(
    database: Database, *, on_loss: Callable[[], None] = stop_this_process, watch_s: float = _WATCH_SECONDS
) -> Iterator[None]:
    """Lock the database for this process. No effect on SQLite, whose file is protected by the lock of the data dir.

    Two servers on one database would settle each other's calls at start and miss each other's documents in their
    indexes. PostgreSQL also releases the lock when the connection ends. The connection is checked every `watch_s`
    seconds, and the lock is taken again after a restart of PostgreSQL. When another process has taken it, `on_loss` is
    called. It also refuses where processes beat that share the database (`app.db.presence`).

    Raises:
        SetupError: Another process holds the lock, or processes share the database.
        StoreUnavailable: PostgreSQL cannot be reached.

    Example:
        >>> with server_lock(database):
        ...     serve()
    """
    if database.kind != "postgresql":
        yield
        return
    held = _Held(database)
    try:
        if not held.take():
            raise SetupError(
                "Another Footnote process is using this database. Stop it, give FOOTNOTE_DATABASE_URL another "
                "database, or talk to the running server with --url and --key."
            )
        require_alone(database)
    except AppError:
        held.release()
        raise
    stop = threading.Event()
    watch = threading.Thread(
        target=_watch, args=(held, database, stop, watch_s, on_loss), name="footnote-server-lock", daemon=True
    )
    watch.start()
    try:
        yield
    finally:
        stop.set()
        watch.join()
        held.release()


class _Held:
    """The connection that holds the lock; replaced when it is lost."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._stack = ExitStack()
        self._connection: sa.Connection | None = None

    def take(self) -> bool:
        """Try to take the lock on a new connection; returns whether it was free."""
        self._connection = self._stack.enter_context(self._database.session())
        return bool(self._connection.scalar(_TAKE, _NUMBER))

    def lost(self) -> bool:
        """Whether the connection was lost, and the lock with it."""
        assert self._connection is not None, "it was taken"
        try:
            self._connection.execute(sa.text("SELECT 1"))
        except sa.exc.DBAPIError:
            return True
        return False

    def release(self) -> None:
        """Give the lock back, and close the connection: returned to the pool it might keep the lock.

        A closed connection alone keeps the lock until PostgreSQL has ended its backend, so that a server started at
        once would be refused.
        """
        if self._connection is not None:
            if not self._connection.invalidated:  # else it was lost, and the lock with it
                with suppress(sa.exc.DBAPIError):
                    self._connection.execute(_GIVE_BACK, _NUMBER)
            self._connection.invalidate()
            self._connection = None
        self._stack.close()


def _watch(held: _Held, database: Database, stop: threading.Event, seconds: float, on_loss: Callable[[], None]) -> None:
    away = False
    while not stop.wait(seconds):
        if not away and not held.lost():
            continue
        away = True
        try:
            held.release()
            if not held.take() or living(database):
                logger().error("database.taken_by_another")
                on_loss()
                return
        except AppError:  # PostgreSQL is still unreachable
            continue
        away = False
        logger().warning("database.lock_renewed")
