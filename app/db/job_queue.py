"""The queue of ingestion jobs: fair selection of the next job, and the changes to running jobs.

Selection is round robin over users: the next job is the oldest of the user who was served longest ago, or never. So a
new user's first job waits for at most one job of each other user. Users with waiting jobs are found by a "loose index
scan" (PostgreSQL wiki, "Loose indexscan"), whose cost grows with the number of users, not of jobs. All changes happen
inside the caller's transaction.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import sqlalchemy as sa

from app.db.checkpoints import drop_checkpoints
from app.db.document_rows import to_job
from app.db.tables.documents import document, job
from app.types import DocumentStatus, Job, JobStatus


def next_job() -> sa.Select[Any]:
    """Select the id of the next job at the parameter `now`, and lock its document; no row when no job can start."""
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

    # two queries, since SQLite does not search an index by a pair
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


# composed once: it runs for every small document
_OF_JOB = sa.update(document).where(document.c.job_id == sa.bindparam("its_job"))


def lock_running(connection: sa.Connection, job_ids: Sequence[str]) -> dict[str, Job]:
    """The running ones among the jobs, by id. Locks their documents first, as deletions and new versions do."""
    of_jobs = sa.select(job.c.document_id).where(job.c.id.in_(job_ids))
    locked = sa.select(document.c.id).where(document.c.id.in_(of_jobs)).order_by(document.c.id).with_for_update()
    connection.execute(locked)
    rows = connection.execute(sa.select(job).where(job.c.id.in_(job_ids))).all()
    assert len(rows) == len(set(job_ids)), "jobs are never deleted"
    return {row.id: to_job(row) for row in rows if row.status == JobStatus.RUNNING}


def set_document(connection: sa.Connection, job_id: str, **values: object) -> None:
    """Change columns of the document whose newest version the job ingests."""
    connection.execute(_OF_JOB, {"its_job": job_id, **values})


def report_progress(
    connection: sa.Connection, reports: Mapping[str, tuple[int, int]], status: DocumentStatus, *, now: float
) -> None:
    """Write the progress of running jobs, given as (done, total) by job id."""
    if reports:
        connection.execute(
            _OF_JOB,
            [
                {"its_job": job_id, "status": status, "done": done, "total": total, "updated_at": now}
                for job_id, (done, total) in reports.items()
            ],
        )


def not_before(now: float) -> sa.ColumnElement[float]:
    """`now`, or the job's start or upload where a process set that by a clock that was ahead."""
    begun = sa.func.coalesce(job.c.started_at, job.c.created_at)
    return sa.case((begun > now, begun), else_=sa.literal(now))


def finish(connection: sa.Connection, job_id: str, status: JobStatus, *, now: float, **values: str) -> None:
    """End a locked job."""
    ended = {"status": status, "finished_at": not_before(now), **values}
    connection.execute(sa.update(job).where(job.c.id == job_id).values(**ended))


def fail_job(connection: sa.Connection, job_id: str, *, code: str, detail: str, now: float) -> None:
    """Fail a locked job with an error, and delete its checkpoints."""
    finish(connection, job_id, JobStatus.FAILED, now=now, error_code=code, error_detail=detail)
    set_document(connection, job_id, status=DocumentStatus.FAILED, updated_at=now)
    drop_checkpoints(connection, [job_id])


def requeue_job(connection: sa.Connection, job_id: str, *, now: float, **values: object) -> None:
    """Queue a locked job again, setting `values` of its columns; its checkpoints are kept."""
    waiting = sa.update(job).where(job.c.id == job_id).values(status=JobStatus.QUEUED, boot_id=None, **values)
    connection.execute(waiting)
    set_document(connection, job_id, status=DocumentStatus.QUEUED, done=0, total=0, updated_at=now)
