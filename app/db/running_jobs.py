"""The rows of running jobs and their documents, changed together inside the caller's transaction."""

from collections.abc import Mapping, Sequence

import sqlalchemy as sa

from app.db.checkpoints import drop_checkpoints
from app.db.document_rows import to_job
from app.db.tables.documents import document, job
from app.types import DocumentStatus, Job, JobStatus

# composed once: small documents come by the thousand
_OF_JOB = sa.update(document).where(document.c.job_id == sa.bindparam("its_job"))


def lock_running(connection: sa.Connection, job_ids: Sequence[str]) -> dict[str, Job]:
    """Those of the jobs that still run, their documents locked first, as deletions and new versions do."""
    of_jobs = sa.select(job.c.document_id).where(job.c.id.in_(job_ids))
    locked = sa.select(document.c.id).where(document.c.id.in_(of_jobs)).order_by(document.c.id).with_for_update()
    connection.execute(locked)
    rows = connection.execute(sa.select(job).where(job.c.id.in_(job_ids))).all()
    assert len(rows) == len(set(job_ids)), "jobs are never deleted"
    return {row.id: to_job(row) for row in rows if row.status == JobStatus.RUNNING}


def set_document(connection: sa.Connection, job_id: str, **values: object) -> None:
    """Change the document whose newest version this job is for."""
    connection.execute(_OF_JOB, {"its_job": job_id, **values})


def report_progress(
    connection: sa.Connection, reports: Mapping[str, tuple[int, int]], status: DocumentStatus, *, now: float
) -> None:
    """Show how far running jobs are, (done, total) each."""
    if reports:
        connection.execute(
            _OF_JOB,
            [
                {"its_job": job_id, "status": status, "done": done, "total": total, "updated_at": now}
                for job_id, (done, total) in reports.items()
            ],
        )


def finish(connection: sa.Connection, job_id: str, status: JobStatus, *, now: float, **values: str) -> None:
    """End a locked job."""
    connection.execute(sa.update(job).where(job.c.id == job_id).values(status=status, finished_at=now, **values))


def fail_job(connection: sa.Connection, job_id: str, *, code: str, detail: str, now: float) -> None:
    """End a locked job with its reason; what it has embedded is forgotten."""
    finish(connection, job_id, JobStatus.FAILED, now=now, error_code=code, error_detail=detail)
    set_document(connection, job_id, status=DocumentStatus.FAILED, updated_at=now)
    drop_checkpoints(connection, [job_id])


def requeue_job(connection: sa.Connection, job_id: str, *, now: float, **values: object) -> None:
    """Put a locked job back into the queue, and change `values` of it; what it has embedded is kept."""
    waiting = sa.update(job).where(job.c.id == job_id).values(status=JobStatus.QUEUED, boot_id=None, **values)
    connection.execute(waiting)
    set_document(connection, job_id, status=DocumentStatus.QUEUED, done=0, total=0, updated_at=now)
