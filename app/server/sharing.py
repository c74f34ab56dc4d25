"""A process beside others on one database: its presence, and what becomes of the work of those that are gone."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import sqlalchemy as sa

from app.db.job_queue import lock_orphans
from app.db.jobs import JobRepository
from app.db.presence import BEAT_SECONDS, Gone, Presence, Release, not_living, session_name
from app.db.session import Database
from app.errors import StorageFull, StoreUnavailable
from app.server.periodic import PeriodicThread
from app.telemetry.logs import logger
from app.usage.ledger.ledger import Ledger


def taking_over(jobs: JobRepository, ledger: Ledger, *, gone: Gone = not_living) -> Release:
    """What a burial does beside ending a process: its calls are settled at their checkpoints, its jobs run again.

    In one transaction, in this order: the call of an ingestion is settled by what the job's checkpoints keep, which the
    next attempt uses, and documents are locked before calls, as everywhere. A request with an idempotency key and an
    upload need nothing: they are free once their process is gone (`app.db.idempotency`, `app.db.originals`).
    """

    def release(connection: sa.Connection) -> None:
        orphans = lock_orphans(connection, gone)
        recovered = ledger.recover_in(connection, gone)
        if orphans:
            jobs.requeue_orphans_in(connection, orphans)
        if recovered or orphans:
            logger().warning("process.taken_over", ledger_rows=recovered, jobs=len(orphans))

    return release


@contextmanager
def present(
    url: str, *, boot_id: str, role: str, version: str, release: Release, on_buried: Callable[[], None]
) -> Iterator[None]:
    """Let this process be one of those that share a database, until the block ends; a thread beats meanwhile.

    It begins before the process works on anything, and ends after it has stopped to. The beats have a connection of
    their own, so that they do not wait for those of requests.

    Args:
        url: Of the database.
        boot_id: This process.
        role: What it does, to be shown.
        version: Footnote's, to be shown.
        release: From `taking_over`.
        on_buried: Called by the thread when others have taken this process for dead: it has to end.

    Raises:
        SetupError: A process that shares nothing uses the database.
        StoreUnavailable: The database cannot be reached.
    """
    database = Database.open(url, session_name=session_name(boot_id))
    try:
        presence = Presence(
            database,
            boot_id=boot_id,
            role=role,
            version=version,
            release=release,
            on_buried=on_buried,
        )
        presence.begin()
        beats = PeriodicThread(presence.turn, name="presence", interval=BEAT_SECONDS, failed="process.beat_failed")
        beats.start()
        try:
            yield
        finally:
            beats.stop()
            with suppress(StoreUnavailable, StorageFull):  # the others bury it
                presence.end()
    finally:
        database.close()
