"""A process beside others on one database: its presence, and what becomes of the work of those that are gone."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import TypeAlias

import sqlalchemy as sa

from app.admission.failed_logins import FailedLogins, LoginBrake
from app.admission.rate_rows import sweep_in
from app.admission.rates import Rates
from app.admission.scopes import Quotas
from app.admission.shared_logins import SharedFailedLogins
from app.admission.shared_rates import SharedRates
from app.db.cancel_requests import forget_cancels_in
from app.db.dialect import advisory_lock, clock_of, require_pgvector, sqlite_file
from app.db.job_queue import lock_orphans
from app.db.jobs import JobRepository
from app.db.migration import require_newest, upgrade
from app.db.presence import (
    BEAT_SECONDS,
    Gone,
    Presence,
    Release,
    all_but,
    leads,
    may_claim,
    not_living,
    session_name,
)
from app.db.sealed_passwords import SealedPasswords, forget_secrets_in
from app.db.server_lock import server_lock, stop_this_process
from app.db.session import Database
from app.documents.files import DocumentFiles
from app.documents.passwords import JobPasswords, Passwords
from app.errors import SetupError, StorageFull, StoreUnavailable
from app.server.periodic import PeriodicThread
from app.settings import EXTRACTIVE, Settings
from app.telemetry.logs import logger
from app.usage.ledger.ledger import Ledger
from app.usage.rollups.builder import RollupBuilder

_OF_ANSWERS = (  # settings of models that a process without answers does not load
    "remote_url",
    "remote_model",
    "remote_api",
    "remote_api_key",
    "adapter",
    "draft_model",
    "reranker",
    "verifier",
    "answers",
    "overflow",
    "followup",
)
_STRAYS_SECONDS = 60.0  # between looks for originals that processes were putting which died beside this one

Counts: TypeAlias = Rates | SharedRates
"""Where requests and tokens are counted against limits: in memory, or in the database of all processes."""

Requirement: TypeAlias = tuple[Callable[[Settings], bool], str]
"""Whether the settings have what processes beside each other need, and what that is."""

REQUIREMENTS: tuple[Requirement, ...] = (
    (
        lambda settings: sqlite_file(settings.resolved_database_url) is None,
        "a PostgreSQL database in FOOTNOTE_DATABASE_URL",
    ),
    (
        lambda settings: settings.vector_store == "pgvector",
        "FOOTNOTE_VECTOR_STORE=pgvector, since an index in memory does not learn of what others ingest",
    ),
    (
        lambda settings: bool(settings.originals),
        "FOOTNOTE_ORIGINALS, a bucket (s3://…) or a folder that every process mounts",
    ),
    (
        lambda settings: settings.secret is not None,
        "FOOTNOTE_SECRET, the same for all processes, which seals passwords of files on their way to another",
    ),
    (
        lambda settings: settings.lexical != "tantivy",
        "FOOTNOTE_LEXICAL=sql, since an index in the data dir does not learn of what others ingest",
    ),
)


def require_shareable(settings: Settings) -> None:
    """Check that a process which is to work beside others reaches everything that they do.

    Raises:
        SetupError: Something is missing; all of it is named.
    """
    missing = [need for has, need in REQUIREMENTS if settings.shared and not has(settings)]
    if missing:
        raise SetupError(f"FOOTNOTE_SHARED=true also needs {'; '.join(missing)}.")


class Neighbours:
    """What a process does about others on its database: alone it shuts them out, beside others it is present.

    Example:
        >>> neighbours = Neighbours(settings, new_id("boot"))
        >>> with neighbours.database() as database, neighbours.recovered(jobs, ledger, version="1.0"):
        ...     serve()
    """

    def __init__(self, settings: Settings, boot_id: str) -> None:
        """Do nothing yet.

        Raises:
            SetupError: Other processes cannot reach what this one uses.
        """
        require_shareable(settings)
        self._settings = settings
        self._shared = settings.shared
        self.boot_id = boot_id
        self.claimant = boot_id if self._shared else None
        self.gone = not_living if self._shared else all_but(boot_id)
        self.clock_in = clock_of if self._shared else None
        self.may_claim = may_claim(boot_id) if self._shared else lambda _: True

    @contextmanager
    def database(self) -> Iterator[Database]:
        """The database, with the newest schema: alone this process sees to that, and locks it.

        Raises:
            SetupError: Others use it in another mode, or the schema is not of this version.
            StoreUnavailable: It cannot be reached.
        """
        name = session_name(self.boot_id) if self._shared else ""
        database = Database.open(self._settings.resolved_database_url, session_name=name)
        with ExitStack() as stack:
            stack.callback(database.close)
            if not self._shared:
                stack.enter_context(server_lock(database))
            if self._settings.vector_store == "pgvector":
                with database.write() as connection:
                    advisory_lock(connection, "pgvector")  # two first starts create one extension
                    require_pgvector(connection)
            if self._shared:
                require_newest(database)
            else:
                upgrade(database, copies=self._settings.data_dir / "backups")
            yield database

    def agree_on_zone(self, rollups: RollupBuilder) -> None:
        """Have the sums in the reporting zone, before any call is settled: alone by making them anew.

        Raises:
            SetupError: Others have another zone.
        """
        if self._shared:
            rollups.require_zone()
        else:
            rollups.ensure_zone()

    @contextmanager
    def recovered(self, jobs: JobRepository, ledger: Ledger, *, version: str) -> Iterator[None]:
        """Take over the calls and jobs of processes that are gone; beside others be present until the block ends.

        Raises:
            SetupError: A process that shares nothing uses the database.
            StoreUnavailable: The database cannot be reached.
        """
        if not self._shared:
            recovered, requeued = ledger.recover(), jobs.requeue_orphans(self.boot_id)
            if recovered or requeued:
                logger().warning("start.recovered", ledger_rows=recovered, jobs=requeued)
            yield
            return
        with present(
            self._settings.resolved_database_url,
            boot_id=self.boot_id,
            role=self._settings.role,
            version=version,
            release=taking_over(jobs, ledger),
            on_buried=stop_this_process,
        ):
            yield

    @contextmanager
    def strays_deleted(self, files: DocumentFiles) -> Iterator[None]:
        """Delete the originals that gone processes were putting: at the start, and beside others now and then."""
        files.recover()
        if not self._shared:
            yield
            return
        strays = PeriodicThread(
            files.take_over, name="strays", interval=_STRAYS_SECONDS, failed="originals.take_over_failed"
        )
        strays.start()
        try:
            yield
        finally:
            strays.stop()

    @contextmanager
    def counts(self, quotas: Quotas, database: Database) -> Iterator[Counts]:
        """The counts of requests and tokens: alone in memory, beside others in the database."""
        if not self._shared:
            yield Rates(quotas)
            return
        rates = SharedRates(quotas, database, boot_id=self.boot_id)
        try:
            yield rates
        finally:
            rates.close()

    def login_brake(self, database: Database) -> LoginBrake:
        """The counts of failed logins: alone in memory, beside others in the database as well."""
        own = FailedLogins(self._settings.failed_logins_per_minute)
        return SharedFailedLogins(own, database) if self._shared else own

    def passwords(self, database: Database) -> JobPasswords:
        """The passwords of protected files: alone in memory, beside others sealed in the database."""
        secret = self._settings.secret
        if not self._shared:
            return Passwords()
        assert secret is not None, "required of processes that share"
        return SealedPasswords(database, secret)

    def leads(self, database: Database) -> bool:
        """Whether this process does what one must do for all."""
        return not self._shared or leads(database, self.boot_id)


def of_worker(settings: Settings) -> Settings:
    """The settings of a process that ingests and answers nothing: it needs no model but the embedder."""
    fields = Settings.model_fields
    unused = {name: fields[name].get_default(call_default_factory=True) for name in _OF_ANSWERS}
    return settings.model_copy(update={**unused, "generator": EXTRACTIVE, "reader": "none", "judge": "none"})


def taking_over(jobs: JobRepository, ledger: Ledger, *, gone: Gone = not_living) -> Release:
    """What a burial does beside ending a process: its calls are settled, its jobs run again, its seats are free.

    Passwords of files go whose jobs ended.

    In one transaction, in this order: the call of an ingestion is settled by what the job's checkpoints keep, which the
    next attempt uses, and documents are locked before calls, as everywhere. Other calls are settled at their own
    checkpoints. A request with an idempotency key and an upload need nothing: they are free once their process is gone
    (`app.db.idempotency`, `app.db.originals`).
    """

    def release(connection: sa.Connection) -> None:
        orphans = lock_orphans(connection, gone)
        recovered = ledger.recover_in(connection, gone)
        if orphans:
            jobs.requeue_orphans_in(connection, orphans)
        seats = sweep_in(connection, gone)
        forget_cancels_in(connection, gone)
        forget_secrets_in(connection)
        if recovered or orphans or seats:
            logger().warning("process.taken_over", ledger_rows=recovered, jobs=len(orphans), seats=seats)

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
