"""Which waiting job is next: people take turns, each person's own jobs in order.

Whoever has a job waiting and was served longest ago, or never, is next. So a newcomer's first job waits
for at most one job of each person who has some waiting, however many those are. The people are found
by jumping through an index from one to the next, a "loose index scan" (PostgreSQL wiki, "Loose indexscan"):
the cost grows with the people who wait, not with the queue.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import sqlalchemy as sa

from app.db.checkpoints import drop_checkpoints
from app.db.document_rows import to_job
from app.db.tables.documents import document, job
from app.types import DocumentStatus, Job, JobStatus


def next_job() -> sa.Select[Any]:
    """The id of the job to start at the parameter `now`, its document locked; no row when none may start."""
    after, found, head, served = job.alias("after"), job.alias("found"), job.alias("head"), job.alias("served")
    in_order = ("tenant_id", "user_id", "next_attempt_at", "id")
    first = (
        sa.select(job.c.id)
        .where(job.c.status == JobStatus.QUEUED)
        .order_by(*(job.c[name] for name in in_order))
        .limit(1)
        .scalar_subquery()
    )
    heads = sa.select(first.label("id")).cte("heads", recursive=True)

    def following(*place: sa.ColumnElement[bool]) -> sa.ScalarSelect[str]:
        return (
            sa.select(after.c.id)
            .where(after.c.status == JobStatus.QUEUED, *place)
            .order_by(*(after.c[name] for name in in_order))
            .limit(1)
            .correlate(found)
            .scalar_subquery()
        )

    # two searches, since SQLite does not look a pair up in an index
    colleague = following(after.c.tenant_id == found.c.tenant_id, after.c.user_id > found.c.user_id)
    stranger = following(after.c.tenant_id > found.c.tenant_id)
    person = sa.select(sa.func.coalesce(colleague, stranger)).select_from(heads.join(found, found.c.id == heads.c.id))
    heads = heads.union_all(person)
    last_served = (
        sa.select(sa.func.max(served.c.started_at))
        .where(served.c.tenant_id == head.c.tenant_id, served.c.user_id == head.c.user_id)
        .correlate(head)
        .scalar_subquery()
    )
    its_newest = sa.and_(document.c.id == head.c.document_id, document.c.job_id == head.c.id)
    return (
        sa.select(head.c.id)
        .select_from(heads.join(head, head.c.id == heads.c.id).join(document, its_newest))
        .where(head.c.next_attempt_at <= sa.bindparam("now", type_=sa.Double))
        .order_by(sa.func.coalesce(last_served, 0.0), head.c.next_attempt_at, head.c.id)
        .limit(1)
        .with_for_update(of=document, skip_locked=True)
    )


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
