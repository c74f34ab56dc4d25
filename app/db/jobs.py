"""Ingestion jobs: claimed by one worker, committed whole or not at all."""

import time
from collections.abc import Callable, Sequence

import sqlalchemy as sa

from app.db.cancellation import cancel_job, find_job
from app.db.checkpoints import Checkpoint, read_checkpoints, write_checkpoint
from app.db.document_rows import read_document, to_job
from app.db.job_queue import fail_job, lock_running, next_job, report_progress, requeue_job, set_document
from app.db.paging import cut, decode_cursor
from app.db.publishing import Also, CommitResult, Version, commit_versions
from app.db.session import Database
from app.db.tables.documents import document, job
from app.types import Document, DocumentStatus, Job, JobStatus
from ingestion.types import Extraction, Passage, Stage
from retrieval.ports import Vectors

MAX_CRASHES = 5
"""How many processes may die running a job before it is given up: it may be what kills them."""


# composed once: composing them takes longer than running them
_WAITS = sa.select(job.c.id).where(job.c.status == JobStatus.QUEUED).limit(1)
_STATUS = sa.select(job.c.status).where(job.c.id == sa.bindparam("its_id"))
_START = (
    sa.update(job)
    .where(job.c.id == sa.bindparam("its_id"), job.c.status == JobStatus.QUEUED)
    .values(
        status=JobStatus.RUNNING,
        boot_id=sa.bindparam("its_boot"),
        attempts=job.c.attempts + 1,
        started_at=sa.bindparam("now"),
        error_code=None,
        error_detail=None,
    )
    .returning(job)
)


class JobRepository:
    """The queue of ingestions. Safe with several workers, and with several processes on PostgreSQL."""

    def __init__(self, database: Database, *, clock: Callable[[], float] = time.time) -> None:
        self._database = database
        self._clock = clock
        self._served = 0.0  # when the last job was started
        self._next_job = next_job()  # made once: composing it takes longer than running it

    def claim(self, boot_id: str) -> tuple[Job, Document] | None:
        """Start the next job (see `app.db.job_queue`) in the name of this process; None when none may start."""
        claimed = self.claim_several(boot_id, most=1, most_bytes=0)
        return claimed[0] if claimed else None

    def claim_several(self, boot_id: str, *, most: int, most_bytes: int) -> Sequence[tuple[Job, Document]]:
        """Start at most `most` jobs in one transaction, as so many claims would; none after `most_bytes` of files."""
        with self._database.read() as connection:  # an idle worker takes no write lock
            if connection.execute(_WAITS).scalar() is None:
                return []
        claimed: list[tuple[Job, Document]] = []
        with self._database.write() as connection:
            while len(claimed) < most:
                # the document is locked before the job, as everywhere, so that no two transactions wait for each other
                job_id = connection.execute(self._next_job, {"now": self._clock()}).scalar()
                if job_id is None:
                    break
                self._served = now = max(self._clock(), self._served + 1e-6)  # who was served last is never a tie
                row = connection.execute(_START, {"its_id": job_id, "its_boot": boot_id, "now": now}).one_or_none()
                if row is None:
                    continue  # another claimer had it between the two statements: look for the next
                set_document(connection, job_id, status=DocumentStatus.EXTRACTING, done=0, total=0, updated_at=now)
                found = read_document(connection, row.document_id)
                claimed.append((to_job(row), found))
                most_bytes -= found.bytes
                if most_bytes <= 0:
                    break
        return claimed

    def runs(self, job_id: str) -> bool:
        """Whether the job still runs: it was not cancelled, its document neither deleted nor replaced."""
        with self._database.read() as connection:
            status = connection.execute(_STATUS, {"its_id": job_id}).scalar()
        return bool(status == JobStatus.RUNNING)

    def progress(self, job_id: str, stage: Stage, *, done: int, total: int) -> bool:
        """Show how far a running job is; False when it was cancelled and the worker should stop."""
        return job_id in self.progress_of({job_id: (done, total)}, stage)

    def progress_of(
        self,
        reports: dict[str, tuple[int, int]],
        stage: Stage,
        *,
        also: Callable[[sa.Connection, str], object] | None = None,
    ) -> set[str]:
        """Show how far jobs are, (done, total) each; those that still run, for which `also` is called in between."""
        with self._database.write() as connection:
            now, status = self._clock(), DocumentStatus(stage.value)
            running = lock_running(connection, list(reports))
            report_progress(connection, {job_id: reports[job_id] for job_id in running}, status, now=now)
            for job_id in running if also is not None else ():
                assert also is not None
                also(connection, job_id)
            return set(running)

    def checkpoints(self, job_id: str, *, generation: int) -> dict[int, Checkpoint]:
        """The blocks of embeddings earlier attempts have finished, by first ordinal."""
        with self._database.read() as connection:
            return read_checkpoints(connection, job_id, generation=generation)

    def keep(self, job_id: str, checkpoint: Checkpoint, *, total: int) -> bool:
        """Keep a finished block of a running job's `total` passages; False when it was cancelled."""
        with self._database.write() as connection:
            running = lock_running(connection, [job_id])
            if running:
                write_checkpoint(connection, job_id, checkpoint)
                done = checkpoint.first_ordinal + len(checkpoint.vectors)
                set_document(connection, job_id, done=done, total=total, updated_at=self._clock())
            return bool(running)

    def commit(
        self,
        job_id: str,
        *,
        extraction: Extraction,
        passages: Sequence[Passage],
        vectors: Vectors,
        generation: int,
        embedding_tokens: int,
    ) -> CommitResult:
        """As `commit_all`, of one."""
        version = Version(
            job_id=job_id,
            extraction=extraction,
            passages=passages,
            vectors=vectors,
            generation=generation,
            embedding_tokens=embedding_tokens,
        )
        return self.commit_all([version])[0]

    def commit_all(self, versions: Sequence[Version]) -> tuple[CommitResult, ...]:
        """Make each job's version the one search returns, all in one transaction; all of them, or nothing.

        Text, chunks and vectors appear, those of the version before disappear, the document is
        indexed and the job done. Vectors are stored as float16.
        A job that is no longer running (deleted, overtaken) writes nothing.

        Raises:
            StorageFull, StoreUnavailable: Nothing was written; the jobs still run.
        """
        with self._database.write() as connection:
            return commit_versions(connection, versions, now=self._clock())

    def still_live(self, versions: Sequence[tuple[str, int]]) -> set[str]:
        """Those of the (document id, version) whose version is still the one search returns, by document id."""
        ids = [document_id for document_id, _ in versions]
        with self._database.read() as connection:
            live = sa.select(document.c.id, document.c.live_version).where(document.c.id.in_(ids))
            now = {(row.id, row.live_version) for row in connection.execute(live)}
        return {document_id for document_id, version in versions if (document_id, version) in now}

    def fail(self, job_id: str, *, code: str, detail: str, also: Also | None = None) -> bool:
        """End a running job with its reason; the version search returned before stays. False when it was cancelled.

        `also` runs in the same transaction, here and below, whether the job runs or not.
        """
        with self._database.write() as connection:
            if also is not None:
                also(connection)
            running = lock_running(connection, [job_id])
            if running:
                fail_job(connection, job_id, code=code, detail=detail, now=self._clock())
            return bool(running)

    def postpone(self, job_id: str, *, seconds: float, code: str, detail: str, also: Also | None = None) -> bool:
        """Queue a running job again, to be tried in so many `seconds`; False when it was cancelled."""
        with self._database.write() as connection:
            if also is not None:
                also(connection)
            running = lock_running(connection, [job_id])
            if running:
                now = self._clock()
                why = {"error_code": code, "error_detail": detail}
                requeue_job(connection, job_id, now=now, next_attempt_at=now + seconds, **why)
            return bool(running)

    def release(self, job_id: str, *, also: Also | None = None) -> bool:
        """Put a running job back into the queue, as if it had not been started; false when it no longer runs."""
        with self._database.write() as connection:
            if also is not None:
                also(connection)
            running = lock_running(connection, [job_id])
            if running:
                requeue_job(connection, job_id, now=self._clock(), started_at=None, attempts=job.c.attempts - 1)
            return bool(running)

    def requeue_orphans(self, boot_id: str) -> int:
        """Queue again what another process was running when it died; the number of such jobs. Call once, at start.

        A job that `MAX_CRASHES` processes died running fails with the code "gave-up" instead.
        """
        orphaned = (
            sa.select(job.c.id, job.c.crashes)
            .join(document, document.c.job_id == job.c.id)
            .where(job.c.status == JobStatus.RUNNING, job.c.boot_id.is_distinct_from(boot_id))
            .order_by(document.c.id)
            .with_for_update(of=document)
        )
        with self._database.write() as connection:
            orphans = connection.execute(orphaned).all()
            for job_id, crashes in orphans:
                if crashes + 1 >= MAX_CRASHES:
                    detail = f"The server stopped {crashes + 1} times while reading this document."
                    fail_job(connection, job_id, code="gave-up", detail=detail, now=self._clock())
                else:
                    requeue_job(connection, job_id, now=self._clock(), crashes=crashes + 1)
            return len(orphans)

    def cancel(self, job_id: str, *, tenant_id: str, remove: Callable[[str, int], object]) -> Job:
        """Cancel a job, see `app.db.cancellation`.

        `remove` is called with (document id, version) of each original that must go, before anyone else can
        give the number to another version.

        Raises:
            NotFound: No such job of this tenant.
            Conflict: It has ended.
        """
        with self._database.write() as connection:
            found = to_job(find_job(connection, job_id, tenant_id=tenant_id))
            dropped = cancel_job(connection, found, now=self._clock())
            cancelled = to_job(find_job(connection, job_id, tenant_id=tenant_id))
            for document_id, version in dropped:
                remove(document_id, version)
            return cancelled

    def get(self, job_id: str, *, tenant_id: str) -> Job:
        """The job.

        Raises:
            NotFound: No such job of this tenant.
        """
        with self._database.read() as connection:
            return to_job(find_job(connection, job_id, tenant_id=tenant_id))

    def list(
        self,
        *,
        tenant_id: str,
        collections: tuple[str, ...] | None = None,
        status: JobStatus | None = None,
        document_id: str | None = None,
        limit: int,
        cursor: str | None = None,
    ) -> tuple[tuple[Job, ...], str | None]:
        """At most `limit` jobs of documents that exist, newest first, and the cursor of the next page (None: no more).

        Raises:
            InvalidRequest: A cursor that this list did not give out.
        """
        query = sa.select(job).join(document, document.c.id == job.c.document_id).where(job.c.tenant_id == tenant_id)
        if collections is not None:
            query = query.where(document.c.collection_id.in_(collections))
        if status is not None:
            query = query.where(job.c.status == status)
        if document_id is not None:
            query = query.where(job.c.document_id == document_id)
        if cursor is not None:
            created_at, last_id = decode_cursor(cursor, float, str)
            query = query.where(sa.tuple_(job.c.created_at, job.c.id) < sa.tuple_(created_at, last_id))
        query = query.order_by(job.c.created_at.desc(), job.c.id.desc()).limit(limit + 1)
        with self._database.read() as connection:
            found = tuple(to_job(row) for row in connection.execute(query))
        return cut(found, limit, lambda row: (row.created_at, row.id))

    def queued(self) -> int:
        """How many jobs wait."""
        with self._database.read() as connection:
            count = connection.execute(sa.select(sa.func.count()).where(job.c.status == JobStatus.QUEUED)).scalar_one()
        return int(count)
