"""Ingestion jobs: claimed by one worker each, and committed atomically."""

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
"""After this many crashes of the server during a job, the job fails: it may be their cause."""


# composed once: composing a statement takes longer than running it
_WAITS = sa.select(job.c.id).where(job.c.status == JobStatus.QUEUED).limit(1)
_STATUS = sa.select(job.c.status).where(job.c.id == sa.bindparam("its_id"))
_NOW = sa.bindparam("now", type_=sa.Double)
_START = (
    sa.update(job)
    .where(job.c.id == sa.bindparam("its_id"), job.c.status == JobStatus.QUEUED)
    .values(
        status=JobStatus.RUNNING,
        boot_id=sa.bindparam("its_boot"),
        attempts=job.c.attempts + 1,
        started_at=sa.case((job.c.created_at > _NOW, job.c.created_at), else_=_NOW),
        error_code=None,
        error_detail=None,
    )
    .returning(job)
)


class JobRepository:
    """The queue of ingestion jobs. Safe with several workers, and with several processes on PostgreSQL.

    Example:
        >>> jobs = JobRepository(database)
        >>> job, document = jobs.claim(boot_id)
        >>> jobs.fail(job.id, code="malformed", detail="The file is damaged.")
        True
    """

    def __init__(self, database: Database, *, clock: Callable[[], float] = time.time) -> None:
        self._database = database
        self._clock = clock
        self._served = 0.0  # when the last job was started
        self._next_job = next_job()  # composed once, as above

    def claim(self, boot_id: str) -> tuple[Job, Document] | None:
        """Claim the next job (see `app.db.job_queue`) for this process; None when no job can start."""
        claimed = self.claim_several(boot_id, most=1, most_bytes=0)
        return claimed[0] if claimed else None

    def claim_several(self, boot_id: str, *, most: int, most_bytes: int) -> Sequence[tuple[Job, Document]]:
        """Claim at most `most` jobs in one transaction, and no further job after `most_bytes` of files."""
        with self._database.read() as connection:  # an idle worker takes no write lock
            if connection.execute(_WAITS).scalar() is None:
                return []
        claimed: list[tuple[Job, Document]] = []
        with self._database.write() as connection:
            while len(claimed) < most:
                # the document is locked before the job, as everywhere, so that transactions cannot deadlock
                job_id = connection.execute(self._next_job, {"now": self._clock()}).scalar()
                if job_id is None:
                    break
                # strictly rising, so that no two users were served at the same time
                self._served = now = max(self._clock(), self._served + 1e-6)
                row = connection.execute(_START, {"its_id": job_id, "its_boot": boot_id, "now": now}).one_or_none()
                if row is None:
                    continue  # another process claimed it in between: take the next
                set_document(connection, job_id, status=DocumentStatus.EXTRACTING, done=0, total=0, updated_at=now)
                found = read_document(connection, row.document_id)
                claimed.append((to_job(row), found))
                most_bytes -= found.bytes
                if most_bytes <= 0:
                    break
        return claimed

    def runs(self, job_id: str) -> bool:
        """Whether the job still runs; not after a cancellation, or a deletion or new version of its document."""
        with self._database.read() as connection:
            status = connection.execute(_STATUS, {"its_id": job_id}).scalar()
        return bool(status == JobStatus.RUNNING)

    def progress(self, job_id: str, stage: Stage, *, done: int, total: int) -> bool:
        """Write the progress of a running job; False when it was cancelled and the worker should stop."""
        return job_id in self.progress_of({job_id: (done, total)}, stage)

    def progress_of(
        self,
        reports: dict[str, tuple[int, int]],
        stage: Stage,
        *,
        also: Callable[[sa.Connection, str], object] | None = None,
    ) -> set[str]:
        """Write the progress of jobs, (done, total) by id; returns the running ones, after calling `also` for each."""
        with self._database.write() as connection:
            now, status = self._clock(), DocumentStatus(stage.value)
            running = lock_running(connection, list(reports))
            report_progress(connection, {job_id: reports[job_id] for job_id in running}, status, now=now)
            for job_id in running if also is not None else ():
                assert also is not None
                also(connection, job_id)
            return set(running)

    def checkpoints(self, job_id: str, *, generation: int) -> dict[int, Checkpoint]:
        """The checkpoints that earlier attempts left, by first ordinal."""
        with self._database.read() as connection:
            return read_checkpoints(connection, job_id, generation=generation)

    def keep(self, job_id: str, checkpoint: Checkpoint, *, total: int) -> bool:
        """Store a checkpoint of a running job with `total` passages; False when the job was cancelled."""
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
        """As `commit_all`, for one job."""
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
        """Publish the version of each job, all in one transaction.

        It inserts text, chunks and vectors (as float16), deletes the chunks of the version before, and ends the job.
        For a job that no longer runs, because its document was deleted or replaced, nothing is written.

        Raises:
            StorageFull, StoreUnavailable: Nothing was written; the jobs still run.
        """
        with self._database.write() as connection:
            return commit_versions(connection, versions, now=self._clock())

    def still_live(self, versions: Sequence[tuple[str, int]]) -> set[str]:
        """The document ids among (document id, version) pairs whose version is still live."""
        ids = [document_id for document_id, _ in versions]
        with self._database.read() as connection:
            live = sa.select(document.c.id, document.c.live_version).where(document.c.id.in_(ids))
            now = {(row.id, row.live_version) for row in connection.execute(live)}
        return {document_id for document_id, version in versions if (document_id, version) in now}

    def fail(self, job_id: str, *, code: str, detail: str, also: Also | None = None) -> bool:
        """Fail a running job with an error; the live version stays. False when the job was cancelled.

        `also` runs in the same transaction, here and below, whether or not the job was cancelled.
        """
        with self._database.write() as connection:
            if also is not None:
                also(connection)
            running = lock_running(connection, [job_id])
            if running:
                fail_job(connection, job_id, code=code, detail=detail, now=self._clock())
            return bool(running)

    def postpone(self, job_id: str, *, seconds: float, code: str, detail: str, also: Also | None = None) -> bool:
        """Queue a running job again, to be retried after `seconds`; False when it was cancelled."""
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
        """Queue a running job again without counting the attempt; False when it no longer runs."""
        with self._database.write() as connection:
            if also is not None:
                also(connection)
            running = lock_running(connection, [job_id])
            if running:
                requeue_job(connection, job_id, now=self._clock(), started_at=None, attempts=job.c.attempts - 1)
            return bool(running)

    def requeue_orphans(self, boot_id: str) -> int:
        """Queue the jobs again that another process was running when it died; returns their number. Call it at start.

        Queued jobs need not wait for the time they have, which was set by another process's clock.
        After `MAX_CRASHES` crashes a job fails with the code "gave-up" instead.
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
            waiting = job.c.status == JobStatus.QUEUED, job.c.next_attempt_at > self._clock()
            connection.execute(sa.update(job).where(*waiting).values(next_attempt_at=0.0))
            latest = connection.execute(sa.select(sa.func.max(job.c.started_at))).scalar()
            self._served = max(self._served, latest or 0.0)
            return len(orphans)

    def cancel(self, job_id: str, *, tenant_id: str) -> tuple[Job, tuple[str, ...]]:
        """Cancel a job; see `app.db.cancellation`. Returns it, and the names of the originals to delete.

        Raises:
            NotFound: No such job of this tenant.
            Conflict: It has ended.
        """
        with self._database.write() as connection:
            found = to_job(find_job(connection, job_id, tenant_id=tenant_id))
            dropped = cancel_job(connection, found, now=self._clock())
            return to_job(find_job(connection, job_id, tenant_id=tenant_id)), dropped

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
        """The number of queued jobs."""
        with self._database.read() as connection:
            count = connection.execute(sa.select(sa.func.count()).where(job.c.status == JobStatus.QUEUED)).scalar_one()
        return int(count)
