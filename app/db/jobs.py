"""Ingestion jobs: claimed by one worker each, and committed atomically by whoever still holds the claim."""

import random
import time
from collections.abc import Callable, Mapping, Sequence

import sqlalchemy as sa

from app.db import job_queue
from app.db.cancellation import cancel_job, find_job
from app.db.checkpoints import Checkpoint, read_checkpoints, write_checkpoint
from app.db.dialect import by_writers
from app.db.document_rows import ClaimedJob, read_document, to_claimed_job, to_job
from app.db.job_queue import (
    MOST_LOCKED,
    fail_job,
    lock_running,
    next_job,
    report_progress,
    requeue_job,
    set_document,
)
from app.db.paging import cut, decode_cursor
from app.db.presence import all_but
from app.db.published_rows import take_keys
from app.db.publishing import Also, CommitResult, Version, commit_versions
from app.db.session import Database
from app.db.tables.documents import document, job
from app.types import Document, DocumentStatus, Job, JobStatus
from ingestion.types import ChunkDraft, Extraction, Stage
from retrieval.ports import Keys, Vectors

MAX_CRASHES = 5
"""After this many crashes of the server during a job, none of its embeddings kept between, the job fails.

It may be their cause.
"""

_TRIES = 16  # at jobs that other claimers have locked, before they are left to the next call
_AGAIN_SECONDS = 0.01, 0.05  # between two of them

# composed once: composing a statement takes longer than running it
_WAITS = sa.select(job.c.id).where(job.c.status == JobStatus.QUEUED).limit(1)
_NEXT = by_writers(one=next_job(), many=next_job(passed_over=MOST_LOCKED))
_DUE = next_job(locked=False)
_NOW = sa.bindparam("now", type_=sa.Double)
_HIGHEST = sa.bindparam("highest", type_=sa.Integer)
_START = (
    sa.update(job)
    .where(job.c.id == sa.bindparam("its_id"), job.c.status == JobStatus.QUEUED)
    .values(
        status=JobStatus.RUNNING,
        boot_id=sa.bindparam("its_boot"),
        begun=sa.bindparam("first", type_=sa.Boolean),
        claim=sa.case((job.c.claim < _HIGHEST, _HIGHEST), else_=job.c.claim) + 1,
        first_key=None,
        attempts=job.c.attempts + 1,
        started_at=sa.case((job.c.created_at > _NOW, job.c.created_at), else_=_NOW),
        error_code=None,
        error_detail=None,
    )
    .returning(job)
)
_KEPT = sa.update(job).where(job.c.id == sa.bindparam("its_id")).values(kept_since_crash=True)


class JobRepository:
    """The queue of ingestion jobs. Safe with several workers, and with several processes on PostgreSQL.

    What changes a claimed job takes it as `claim` returned it, and does nothing when the claim is no longer the job's.

    Example:
        >>> jobs = JobRepository(database)
        >>> job, document = jobs.claim(boot_id)
        >>> jobs.fail(job, code="malformed", detail="The file is damaged.")
        True
    """

    def __init__(
        self,
        database: Database,
        *,
        clock: Callable[[], float] = time.time,
        may_claim: Callable[[sa.Connection], bool] = lambda _: True,
    ) -> None:
        """`may_claim` says in a claim's transaction whether this process may: not once others have buried it."""
        self._database = database
        self._clock = clock
        self._may_claim = may_claim
        self._served = 0.0  # when the last job was started
        self._highest = 0  # claim of this process

    def claim(self, boot_id: str) -> tuple[ClaimedJob, Document] | None:
        """Claim the next job (see `app.db.job_queue`) for this process; None when no job can start."""
        claimed = self.claim_several(boot_id, most=1, most_bytes=0)
        return claimed[0] if claimed else None

    def claim_several(self, boot_id: str, *, most: int, most_bytes: int) -> Sequence[tuple[ClaimedJob, Document]]:
        """Claim at most `most` jobs in one transaction, and no further job after `most_bytes` of files.

        The caller begins the first at once. A job that ran when its process died is claimed by itself from then on.
        While other claimers have locked the jobs that could start, it tries again, for half a second at most.
        """
        for _ in range(_TRIES):
            with self._database.read() as connection:  # an idle worker takes no write lock
                if connection.execute(_WAITS).scalar() is None:
                    return []
            # A machine that stops may forget a claim, and the job is as it was before: no disk is waited for. A process
            # that survives its PostgreSQL's crash is refused what it read under the forgotten claim.
            with self._database.write_unflushed() as connection:
                if not self._may_claim(connection):
                    return []
                claimed = self._claim_in(connection, boot_id, most=most, most_bytes=most_bytes)
                if claimed or connection.execute(_DUE, {"now": self._clock()}).first() is None:
                    return claimed
            time.sleep(random.uniform(*_AGAIN_SECONDS))  # noqa: S311 - so that claimers do not meet again
        return []

    def _claim_in(
        self, connection: sa.Connection, boot_id: str, *, most: int, most_bytes: int
    ) -> list[tuple[ClaimedJob, Document]]:
        claimed: list[tuple[ClaimedJob, Document]] = []
        while len(claimed) < most:
            # the document is locked before the job, as everywhere, so that transactions cannot deadlock
            found = connection.execute(_NEXT.on(connection), {"now": self._clock()}).one_or_none()
            if found is None or (found.alone and claimed):
                break
            # strictly rising, so that no two users were served at the same time
            self._served = now = max(self._clock(), self._served + 1e-6)
            values = {"its_id": found.id, "its_boot": boot_id, "now": now, "highest": self._highest}
            row = connection.execute(_START, values | {"first": not claimed}).one_or_none()
            if row is None:
                continue  # another process claimed it in between: take the next
            self._highest = max(self._highest, row.claim)
            set_document(connection, row.id, status=DocumentStatus.EXTRACTING, done=0, total=0, updated_at=now)
            read = read_document(connection, row.document_id)
            claimed.append((to_claimed_job(row), read))
            most_bytes -= read.bytes
            if most_bytes <= 0 or found.alone:
                break
        return claimed

    def runs(self, claimed: ClaimedJob) -> bool:
        """Whether a job still runs; not after a cancellation, or a deletion or new version of its document."""
        with self._database.read() as connection:
            return job_queue.runs(connection, claimed)

    def is_lost(self, claimed: ClaimedJob) -> bool:
        """Whether others read a job's document: it was queued again, or claimed again. It never comes back."""
        with self._database.read() as connection:
            return job_queue.is_lost(connection, claimed)

    def progress(self, claimed: ClaimedJob, stage: Stage, *, done: int, total: int) -> bool:
        """Write the progress of a running job; False when it does not run and the worker should stop."""
        return bool(self.progress_of({claimed: (done, total)}, stage))

    def progress_of(
        self,
        reports: Mapping[ClaimedJob, tuple[int, int]],
        stage: Stage,
        *,
        also: Callable[[sa.Connection, ClaimedJob], object] | None = None,
    ) -> list[ClaimedJob]:
        """Write the progress of jobs, (done, total) by job; returns the running ones, after calling `also` for each."""
        with self._database.write() as connection:
            now, status = self._clock(), DocumentStatus(stage.value)
            running = lock_running(connection, list(reports))
            report_progress(connection, {each: reports[each] for each in running}, status, now=now)
            for each in running if also is not None else ():
                assert also is not None
                also(connection, each)
            return running

    def checkpoints(self, job_id: str, *, generation: int) -> dict[int, Checkpoint]:
        """The checkpoints that earlier attempts left, by first ordinal."""
        with self._database.read() as connection:
            return read_checkpoints(connection, job_id, generation=generation)

    def keep(self, claimed: ClaimedJob, checkpoint: Checkpoint, *, total: int) -> bool:
        """Store a checkpoint of a running job with `total` passages; False when the job does not run."""
        with self._database.write() as connection:
            running = lock_running(connection, [claimed])
            if running:
                write_checkpoint(connection, claimed.id, checkpoint)
                connection.execute(_KEPT, {"its_id": claimed.id})
                done = checkpoint.first_ordinal + len(checkpoint.vectors)
                set_document(connection, claimed.id, done=done, total=total, updated_at=self._clock())
            return bool(running)

    def take_keys(self, counts: Mapping[ClaimedJob, int]) -> dict[ClaimedJob, Keys]:
        """Take the keys of so many chunks for each job, before `commit_all`; leaves out jobs that do not run.

        `(n,)` int64, consecutive, and never given before: a commit that fails leaves them unused. A transaction of its
        own, so that commits do not wait for each other.

        Raises:
            StorageFull, StoreUnavailable: None were taken.
        """
        with self._database.write_shortly() as connection:
            running = lock_running(connection, list(counts))
            return take_keys(connection, {each: counts[each] for each in running}) if running else {}

    def commit(
        self,
        claimed: ClaimedJob,
        *,
        extraction: Extraction,
        passages: Sequence[ChunkDraft],
        vectors: Vectors,
        generation: int,
        embedding_tokens: int,
    ) -> CommitResult:
        """As `take_keys` and `commit_all`, for one job."""
        version = Version(
            job=claimed,
            extraction=extraction,
            passages=passages,
            vectors=vectors,
            generation=generation,
            embedding_tokens=embedding_tokens,
        )
        self.take_keys({claimed: len(passages)})
        return self.commit_all([version])[0]

    def commit_all(self, versions: Sequence[Version]) -> tuple[CommitResult, ...]:
        """Publish the version of each job, all in one transaction.

        It inserts text, chunks and vectors (as float16), deletes the chunks of the version before, and ends the job.
        The chunks get the keys that their job took last. For a job that no longer runs under its claim, because its
        document was deleted or replaced or another process took the job over, nothing is written.

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

    def fail(self, claimed: ClaimedJob, *, code: str, detail: str, also: Also | None = None) -> bool:
        """Fail a running job with an error; the live version stays. False when the job does not run.

        `also` runs in the same transaction, here and below, whether or not the job runs, before the job is changed.
        """
        with self._database.write() as connection:
            running = lock_running(connection, [claimed])
            if also is not None:
                also(connection)
            if running:
                fail_job(connection, claimed.id, code=code, detail=detail, now=self._clock())
            return bool(running)

    def postpone(
        self, claimed: ClaimedJob, *, seconds: float, code: str, detail: str, also: Also | None = None
    ) -> bool:
        """Queue a running job again, to be retried after `seconds`; False when it does not run."""
        with self._database.write() as connection:
            running = lock_running(connection, [claimed])
            if also is not None:
                also(connection)
            if running:
                now = self._clock()
                why = {"error_code": code, "error_detail": detail}
                requeue_job(connection, claimed.id, now=now, next_attempt_at=now + seconds, **why)
            return bool(running)

    def release(self, claimed: ClaimedJob, *, also: Also | None = None) -> bool:
        """Queue a running job again without counting the attempt; False when it does not run."""
        with self._database.write() as connection:
            running = lock_running(connection, [claimed])
            if also is not None:
                also(connection)
            if running:
                requeue_job(connection, claimed.id, now=self._clock(), started_at=None, attempts=job.c.attempts - 1)
            return bool(running)

    def requeue_orphans(self, boot_id: str) -> int:
        """As `requeue_orphans_in`, for a process that is alone on its database; returns their number. Call it at start.

        Queued jobs need not wait for the time they have, which was set by another process's clock.
        """
        with self._database.write() as connection:
            orphans = job_queue.lock_orphans(connection, all_but(boot_id))
            self.requeue_orphans_in(connection, orphans)
            waiting = job.c.status == JobStatus.QUEUED, job.c.next_attempt_at > self._clock()
            connection.execute(sa.update(job).where(*waiting).values(next_attempt_at=0.0))
            latest = connection.execute(sa.select(sa.func.max(job.c.started_at))).scalar()
            self._served = max(self._served, latest or 0.0)
            return len(orphans)

    def requeue_orphans_in(self, connection: sa.Connection, orphans: Sequence[str]) -> None:
        """Queue jobs again that processes were running when they died; `app.db.job_queue.lock_orphans` has their ids.

        After `MAX_CRASHES` crashes a job fails with the code "gave-up" instead.
        """
        job_queue.requeue_orphans(connection, orphans, most_crashes=MAX_CRASHES, now=self._clock())

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
