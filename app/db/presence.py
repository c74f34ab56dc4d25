"""Which processes live that share a database: each beats in a row of its own, the others watch, a dead one is buried.

The clocks of machines are never compared. A process is dead when its beat stood still for 15 s of the observer's own
monotonic clock, while the observer's own beats got through. That is how leader election judges in Kubernetes
(client-go), and like there it proves nothing about the dead process, which may wake: it changes nothing of what it lost
because claims are fenced (docs/adr/0098), and it learns of its burial from its next beat (docs/adr/0106).
"""

import socket
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import sqlalchemy as sa

from app.db.dialect import end_sessions, share_lock, wait_for_locks
from app.db.session import Database
from app.db.tables.ledger import process
from app.errors import SetupError, StorageFull, StoreUnavailable
from app.telemetry.logs import logger

Gone: TypeAlias = Callable[[sa.ColumnElement[Any]], sa.ColumnElement[bool]]
"""The SQL condition that the process whose id a column holds does not live."""
Release: TypeAlias = Callable[[sa.Connection], object]
"""Gives the work of all processes that are gone to others, inside the caller's transaction."""

BEAT_SECONDS = 3.0
"""Between two beats of a process."""
STILL_SECONDS = 15.0
"""A process whose beat stood still for so long is dead."""
GAP_SECONDS = 6.0
"""An observer whose own beats were further apart knows nothing: it, or the database, may have been what stood still."""

SERVER_LOCK = "server"
"""The advisory lock of a process that is alone on its database; it is shared while another registers."""

_SWEEP_SECONDS = 30.0  # between two looks at what processes left that ended before
_LOCK_MS = 2000  # of a burial: a longer wait would hold up the beats of the process that buries
_KEPT_SECONDS = 30 * 86_400.0  # rows of processes that ended
_ALIVE = process.c.ended_at.is_(None)
_MINE = process.c.boot_id == sa.bindparam("its_boot"), _ALIVE
_BEAT = sa.update(process).where(*_MINE).values(beat=process.c.beat + 1)
_LIVES = sa.select(process.c.boot_id).where(*_MINE).with_for_update(read=True, key_share=True)
_FIRST = sa.select(process.c.boot_id).where(_ALIVE).order_by(process.c.started_at, process.c.boot_id).limit(1)
_BEATS = sa.select(process.c.boot_id, process.c.beat).where(_ALIVE)


def all_but(boot_id: str) -> Gone:
    """Every process but one is gone: it is alone on its database."""
    return lambda boot: boot.is_distinct_from(boot_id)


@dataclass(frozen=True, slots=True)
class OwnProcess:
    """The process that rows are written for: its id, which other processes are gone, and its clock, in Unix seconds.

    >>> OwnProcess.alone("boot_1").boot_id
    'boot_1'
    """

    boot_id: str
    gone: Gone
    clock: Callable[[], float] = time.time

    @classmethod
    def alone(cls, boot_id: str, *, clock: Callable[[], float] = time.time) -> "OwnProcess":
        """A process that is alone on its database: all others are gone."""
        return cls(boot_id, all_but(boot_id), clock)

    def free(self, boot: sa.ColumnElement[Any]) -> sa.ColumnElement[bool]:
        """Whether no other living process holds a row, by the column that names its holder."""
        return sa.or_(boot.is_(None), boot == self.boot_id, self.gone(boot))


def not_living(boot: sa.ColumnElement[Any]) -> sa.ColumnElement[bool]:
    """A process is gone that has no row, or ended, or was buried. One registers before it works on anything."""
    return sa.not_(sa.exists().where(process.c.boot_id == boot, _ALIVE))


def may_claim(boot_id: str) -> Callable[[sa.Connection], bool]:
    """Whether a process lives, in a transaction that claims work for it: no burial overtakes that."""
    return lambda connection: connection.execute(_LIVES, {"its_boot": boot_id}).scalar() is not None


def session_name(boot_id: str) -> str:
    """The name that the database's sessions of a process have."""
    return f"footnote-{boot_id}"


@dataclass(frozen=True, slots=True)
class StoodStill:
    """A process that is dead, by its beat."""

    boot_id: str
    beat: int


class BeatWatch:
    """Judges by the beats that one observer reads again and again, in seconds of its own monotonic clock.

    Example:
        >>> watch = BeatWatch()
        >>> watch.look({"boot_1": 7}, asked=0.0, told=0.1)
        ()
        >>> [watch.look({"boot_1": 7}, asked=at, told=at + 0.1) for at in (5.0, 10.0, 15.1)][-1]
        (StoodStill(boot_id='boot_1', beat=7),)
    """

    def __init__(self, *, still_s: float = STILL_SECONDS, gap_s: float = GAP_SECONDS) -> None:
        self._still_s = still_s
        self._gap_s = gap_s
        self._asked: float | None = None
        self._since: dict[str, tuple[int, float]] = {}  # the beat of each process, and when it was read first

    def look(self, beats: Mapping[str, int], *, asked: float, told: float) -> tuple[StoodStill, ...]:
        """Those that stood still, of processes whose beats were read between `asked` and `told`."""
        if self._asked is None or told - self._asked > self._gap_s:
            self._since = {}
        self._asked = asked
        before, self._since = self._since, {}
        for boot_id, beat in beats.items():
            known = before.get(boot_id)
            self._since[boot_id] = known if known is not None and known[0] == beat else (beat, told)
        still = [(boot_id, beat) for boot_id, (beat, since) in self._since.items() if asked - since >= self._still_s]
        return tuple(StoodStill(boot_id, beat) for boot_id, beat in still)


class Presence:
    """The presence of this process beside others, and its part in burying those that died.

    `turn` is called every `BEAT_SECONDS`, by one thread. Its database is best one of its own: a beat must not wait for
    the connections that requests use.

    Example:
        >>> presence = Presence(database, boot_id="boot_1", role="all", version="1.0", release=release)
        >>> presence.begin()
        >>> presence.turn()
        True
        >>> presence.end()
    """

    def __init__(
        self,
        database: Database,
        *,
        boot_id: str,
        role: str,
        version: str,
        release: Release,
        on_buried: Callable[[], None] = lambda: None,
        clock: Callable[[], float] = time.time,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        """Do nothing yet.

        Args:
            database: Of all processes.
            boot_id: This process.
            role: What it does, to be shown.
            version: Footnote's, to be shown.
            release: Called in the transaction that buries a process, and now and then.
            on_buried: Called once, when others have buried this process.
            clock: Unix seconds, only written down.
            monotonic: Seconds that no setting of a clock changes.
        """
        self._database = database
        self._boot_id = boot_id
        self._shown = {"role": role, "version": version, "host": socket.gethostname()}
        self._release = release
        self._on_buried = on_buried
        self._clock = clock
        self._monotonic = monotonic
        self._watch = BeatWatch()
        self._buried = False
        self._swept: float | None = None

    def begin(self) -> None:
        """Register this process, before it works on anything, and take over the work of processes that are gone.

        Raises:
            SetupError: A process that is alone on its database serves it.
            StoreUnavailable: The database cannot be reached.
        """
        now = self._clock()
        with self._database.write() as connection:
            if not share_lock(connection, SERVER_LOCK):
                raise SetupError(
                    "A Footnote process that shares nothing is using this database. Stop it, or start it with "
                    "FOOTNOTE_SHARED=true as well."
                )
            connection.execute(sa.delete(process).where(process.c.ended_at < now - _KEPT_SECONDS))
            row = {"boot_id": self._boot_id, "started_at": now, "beat": 1, "ended_at": None, **self._shown}
            connection.execute(sa.insert(process).values(**row))
            self._release(connection)

    def turn(self) -> bool:
        """Beat, bury those that stood still, and take over what the dead left; False when this process was buried.

        Raises:
            StoreUnavailable, StorageFull: The beat did not get through.
        """
        if self._buried:
            return False
        asked = self._monotonic()
        # a beat that a crash of the machine forgets has changed all the same
        with self._database.write_unflushed() as connection:
            alive = connection.execute(_BEAT, {"its_boot": self._boot_id}).rowcount == 1
            beats = {row.boot_id: row.beat for row in connection.execute(_BEATS) if row.boot_id != self._boot_id}
        told = self._monotonic()
        if not alive:
            self._buried = True
            logger().error("process.buried", boot=self._boot_id)
            self._on_buried()
            return False
        for dead in self._watch.look(beats, asked=asked, told=told):
            self._bury(dead)
        if self._swept is None or asked - self._swept >= _SWEEP_SECONDS:
            self._swept = asked
            self._sweep()
        return True

    def end(self) -> None:
        """Say that this process ends, and give away what it still holds. Nothing where it was buried.

        Raises:
            StoreUnavailable, StorageFull: Nothing was written: the others bury it.
        """
        with self._database.write() as connection:
            if self._end(connection, process.c.boot_id == self._boot_id):
                self._release(connection)

    def _bury(self, dead: StoodStill) -> None:
        its_row = process.c.boot_id == dead.boot_id, process.c.beat == dead.beat, _ALIVE
        try:
            with self._database.write() as connection:
                if connection.execute(sa.select(process.c.boot_id).where(*its_row)).scalar() is None:
                    return
                # a process that was stopped inside a transaction keeps its locks
                end_sessions(connection, session_name(dead.boot_id))
            with self._database.write() as connection:
                wait_for_locks(connection, timeout_ms=_LOCK_MS)
                # locked for good: a claim under way is waited for, and is then released as well
                locked = sa.select(process.c.boot_id).where(*its_row).with_for_update()
                if connection.execute(locked).scalar() is None:
                    return
                self._end(connection, *its_row)
                self._release(connection)
        except (StoreUnavailable, StorageFull) as error:
            logger().warning("process.not_buried", boot=dead.boot_id, error=str(error))  # the next turn tries again
            return
        logger().warning("process.found_dead", boot=dead.boot_id)

    def _sweep(self) -> None:
        """Take over what a process that is gone took after its burial, before it learnt of it."""
        try:
            with self._database.write() as connection:
                wait_for_locks(connection, timeout_ms=_LOCK_MS)
                self._release(connection)
        except (StoreUnavailable, StorageFull) as error:
            logger().warning("process.sweep_failed", error=str(error))

    def _end(self, connection: sa.Connection, *whose: sa.ColumnElement[bool]) -> bool:
        ending = sa.update(process).where(*whose, _ALIVE).values(ended_at=self._clock())
        return connection.execute(ending).rowcount == 1


def require_alone(
    database: Database,
    *,
    clock: Callable[[], float] = time.time,
    monotonic: Callable[[], float] = time.monotonic,
    wait: Callable[[float], object] = time.sleep,
) -> None:
    """Check that no process shares this database with others; where there are rows of some, it watches them for 15 s.

    Those that stood still are noted as ended. The caller holds the lock `SERVER_LOCK`, so that none registers.

    Raises:
        SetupError: A process beats.
        StoreUnavailable: The database cannot be reached.
    """
    first, watch = _beats(database), BeatWatch()
    if not first:
        return
    logger().warning("process.watched", processes=len(first), seconds=STILL_SECONDS)
    while True:
        asked = monotonic()
        beats = _beats(database)
        if any(beat != first.get(boot_id) for boot_id, beat in beats.items()):
            raise SetupError(
                "Footnote processes that share this database are running. Stop them, or start this one with "
                "FOOTNOTE_SHARED=true as well."
            )
        if len(watch.look(beats, asked=asked, told=monotonic())) == len(beats):
            break
        wait(1.0)
    with database.write() as connection:
        connection.execute(sa.update(process).where(_ALIVE).values(ended_at=clock()))


def leads(database: Database, boot_id: str) -> bool:
    """Whether this is the process that does what one must do for all: of those that live, the first to have started.

    For what may be done twice when the first one dies, or is taken for dead.

    Raises:
        StoreUnavailable: The database cannot be reached.
    """
    with database.read() as connection:
        return connection.execute(_FIRST).scalar() == boot_id


def living(database: Database) -> frozenset[str]:
    """The processes that share the database, as far as anyone knows."""
    return frozenset(_beats(database))


def _beats(database: Database) -> dict[str, int]:
    with database.read() as connection:
        if not sa.inspect(connection).has_table(process.name):  # not migrated yet
            return {}
        return {row.boot_id: row.beat for row in connection.execute(_BEATS)}
