"""Ingestion jobs: claimed by one worker, committed whole or not at all."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import sqlalchemy as sa

from app.db.document_rows import read_document, to_job
from app.db.indexing import drop_older, take_keys, write_chunks, write_text
from app.db.removal import remove_chunks
from app.db.session import Database
from app.db.tables import document, job
from app.errors import NotFound
from app.types import Document, DocumentStatus, Job, JobStatus
from ingestion.types import Extraction, Passage, Stage
from retrieval.ports import Keys, Vectors

MAX_ATTEMPTS = 3
"""How often a job is started before it is given up."""


@dataclass(frozen=True, slots=True)
class CommitResult:
    """What a commit changed; nothing when `written` is false: the document was deleted or overtaken.

    `new_keys` `(n,)` int64 are the passages' keys in order, `removed_keys` those of the version
    search returned before; `dropped_versions` are the older versions whose files must go.
    """

    written: bool
    new_keys: Keys
    removed_keys: Keys
    dropped_versions: tuple[int, ...]


class JobRepository:
    """The queue of ingestions. Safe with several workers, and with several processes on PostgreSQL."""

    def __init__(self, database: Database, *, clock: Callable[[], float] = time.time) -> None:
        self._database = database
        self._clock = clock

    def claim(self, boot_id: str) -> tuple[Job, Document] | None:
        """Start the oldest queued job in the name of this process; None when nothing waits."""
        waiting = job.c.status == JobStatus.QUEUED
        with self._database.read() as connection:  # an idle worker takes no write lock
            if connection.execute(sa.select(job.c.id).where(waiting).limit(1)).scalar() is None:
                return None
        # the document is locked before the job, as everywhere, so that no two transactions wait for each other
        oldest = (
            sa.select(job.c.id)
            .join(document, document.c.job_id == job.c.id)
            .where(waiting)
            .order_by(job.c.created_at, job.c.id)
            .limit(1)
            .with_for_update(of=document, skip_locked=True)
        )
        while True:
            with self._database.write() as connection:
                job_id = connection.execute(oldest).scalar()
                if job_id is None:
                    return None
                now = self._clock()
                row = connection.execute(
                    sa.update(job)
                    .where(job.c.id == job_id, waiting)
                    .values(status=JobStatus.RUNNING, boot_id=boot_id, attempts=job.c.attempts + 1, started_at=now)
                    .returning(job)
                ).one_or_none()
                if row is not None:
                    _set_document(connection, job_id, status=DocumentStatus.EXTRACTING, done=0, total=0, updated_at=now)
                    return to_job(row), read_document(connection, row.document_id)
            # another claimer had it between the two statements: look for the next

    def progress(self, job_id: str, stage: Stage, *, done: int, total: int) -> bool:
        """Show how far a running job is; False when it was cancelled and the worker should stop."""
        with self._database.write() as connection:
            running = _lock_running(connection, job_id)
            if running is not None:
                now, status = self._clock(), DocumentStatus(stage.value)
                _set_document(connection, job_id, status=status, done=done, total=total, updated_at=now)
            return running is not None

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
        """Make the job's version the one search returns, in one transaction; all of it, or nothing.

        Text, chunks and vectors appear, those of the version before disappear, the document is
        indexed and the job done. `vectors` is `(len(passages), dim)` float32, stored as float16.
        A job that is no longer running (deleted, overtaken) writes nothing.

        Raises:
            StorageFull, StoreUnavailable: Nothing was written; the job still runs.
        """
        assert len(passages) == len(vectors), "one vector a passage"
        halves = np.ascontiguousarray(vectors, dtype="<f2")
        assert bool(np.isfinite(halves).all()), "vectors are of unit length, far inside float16"
        with self._database.write() as connection:
            running = _lock_running(connection, job_id)
            if running is None:
                none = np.empty(0, np.int64)
                return CommitResult(written=False, new_keys=none, removed_keys=none, dropped_versions=())
            now = self._clock()
            removed, _ = remove_chunks(connection, running.document_id)
            keys = take_keys(connection, len(passages))
            write_text(
                connection,
                running,
                extraction,
                passages,
                first_key=int(keys[0]) if len(keys) else None,
                generation=generation,
                embedding_tokens=embedding_tokens,
                now=now,
            )
            write_chunks(connection, running, passages, keys=keys, halves=halves, generation=generation)
            _set_document(
                connection,
                job_id,
                status=DocumentStatus.INDEXED,
                live_version=running.version,
                done=len(passages),
                total=len(passages),
                updated_at=now,
            )
            _finish(connection, job_id, JobStatus.DONE, now=now)
            dropped = drop_older(connection, running) if running.replace else ()
        return CommitResult(written=True, new_keys=keys, removed_keys=removed, dropped_versions=dropped)

    def fail(self, job_id: str, *, code: str, detail: str) -> bool:
        """End a running job with its reason; the version search returned before stays. False when it was cancelled."""
        with self._database.write() as connection:
            running = _lock_running(connection, job_id)
            if running is not None:
                self._fail(connection, job_id, code=code, detail=detail)
            return running is not None

    def release(self, job_id: str) -> bool:
        """Put a running job back into the queue, as if it had not been started; false when it no longer runs."""
        with self._database.write() as connection:
            running = _lock_running(connection, job_id)
            if running is not None:
                connection.execute(
                    sa.update(job)
                    .where(job.c.id == job_id)
                    .values(status=JobStatus.QUEUED, boot_id=None, started_at=None, attempts=job.c.attempts - 1)
                )
                _set_document(
                    connection, job_id, status=DocumentStatus.QUEUED, done=0, total=0, updated_at=self._clock()
                )
            return running is not None

    def requeue_orphans(self, boot_id: str) -> int:
        """Queue again what another process was running when it died; the number of such jobs. Call once, at start.

        A job started `MAX_ATTEMPTS` times fails with the code "gave-up" instead.
        """
        orphaned = (
            sa.select(job.c.id, job.c.attempts)
            .join(document, document.c.job_id == job.c.id)
            .where(job.c.status == JobStatus.RUNNING, job.c.boot_id.is_distinct_from(boot_id))
            .order_by(document.c.id)
            .with_for_update(of=document)
        )
        with self._database.write() as connection:
            orphans = connection.execute(orphaned).all()
            for job_id, attempts in orphans:
                if attempts >= MAX_ATTEMPTS:
                    detail = f"The server stopped {attempts} times while reading this document."
                    self._fail(connection, job_id, code="gave-up", detail=detail)
                    continue
                connection.execute(
                    sa.update(job).where(job.c.id == job_id).values(status=JobStatus.QUEUED, boot_id=None)
                )
                now = self._clock()
                _set_document(connection, job_id, status=DocumentStatus.QUEUED, done=0, total=0, updated_at=now)
            return len(orphans)

    def get(self, job_id: str, *, tenant_id: str) -> Job:
        """The job.

        Raises:
            NotFound: No such job of this tenant.
        """
        with self._database.read() as connection:
            row = connection.execute(
                sa.select(job).where(job.c.id == job_id, job.c.tenant_id == tenant_id)
            ).one_or_none()
        if row is None:
            raise NotFound("There is no such job.")
        return to_job(row)

    def queued(self) -> int:
        """How many jobs wait."""
        with self._database.read() as connection:
            count = connection.execute(sa.select(sa.func.count()).where(job.c.status == JobStatus.QUEUED)).scalar_one()
        return int(count)

    def _fail(self, connection: sa.Connection, job_id: str, *, code: str, detail: str) -> None:
        now = self._clock()
        _finish(connection, job_id, JobStatus.FAILED, now=now, error_code=code, error_detail=detail)
        _set_document(connection, job_id, status=DocumentStatus.FAILED, updated_at=now)


def _lock_running(connection: sa.Connection, job_id: str) -> Job | None:
    """The job if it still runs, its document locked first, as deletions and new versions do."""
    of_job = sa.select(job.c.document_id).where(job.c.id == job_id).scalar_subquery()
    connection.execute(sa.select(document.c.id).where(document.c.id == of_job).with_for_update())
    row = connection.execute(sa.select(job).where(job.c.id == job_id)).one_or_none()
    assert row is not None, "jobs are never deleted"
    return to_job(row) if row.status == JobStatus.RUNNING else None


def _set_document(connection: sa.Connection, job_id: str, **values: object) -> None:
    """Change the document whose newest version this job is for."""
    connection.execute(sa.update(document).where(document.c.job_id == job_id).values(**values))


def _finish(connection: sa.Connection, job_id: str, status: JobStatus, *, now: float, **values: str) -> None:
    connection.execute(sa.update(job).where(job.c.id == job_id).values(status=status, finished_at=now, **values))
