"""The queue of ingestion jobs: fair selection of the next job, and the changes to claimed jobs.

Selection is round robin over users: the next job is the oldest of the user who was served longest ago, or never. So a
new user's first job waits for at most one job of each other user. Users with waiting jobs are found by a "loose index
scan" (PostgreSQL wiki, "Loose indexscan"), whose cost grows with the number of users, not of jobs. On PostgreSQL a few
more jobs of each user are looked at, since other claimers may have locked the first. A claim is fenced: changes are
made only to jobs that still carry it (docs/adr/0098). All changes happen inside the caller's transaction.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import sqlalchemy as sa

from app.db.checkpoints import drop_checkpoints
from app.db.document_rows import ClaimedJob
from app.db.presence import Gone
from app.db.tables.documents import document, job
from app.types import DocumentStatus, JobStatus

MOST_LOCKED = 3
"""So many jobs of a user can be passed over because other claimers have locked them."""


def next_job(*, passed_over: int = 0, locked: bool = True) -> sa.Select[Any]:
    """Select the next job at the parameter `now`, and lock its document; no row when no job can start.

    Its columns are `id`, and `alone`: whether the job must be claimed by itself.

    Args:
        passed_over: Locked jobs of each user that are passed over, at most; SQLite's one writer meets none.
        locked: Whether locked jobs are passed over and the found one is locked; otherwise locks do not matter.
    """
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
    if passed_over:
        heads = _with_followers(heads, passed_over)
    last_served = (
        sa.select(sa.func.max(served.c.started_at))
        .where(served.c.tenant_id == head.c.tenant_id, served.c.user_id == head.c.user_id)
        .correlate(head)
        .scalar_subquery()
    )
    its_newest = sa.and_(document.c.id == head.c.document_id, document.c.job_id == head.c.id)
    query = (
        sa.select(head.c.id, head.c.alone)
        .select_from(heads.join(head, head.c.id == heads.c.id).join(document, its_newest))
        .where(head.c.next_attempt_at <= sa.bindparam("now", type_=sa.Double))
        .order_by(sa.func.coalesce(last_served, 0.0), head.c.next_attempt_at, head.c.id)
        .limit(1)
    )
    return query.with_for_update(of=document, skip_locked=True) if locked else query


def _with_followers(heads: sa.CTE, most: int) -> sa.CTE:
    """The jobs `heads` and at most `most` jobs that follow each in its user's queue."""
    after, before = job.alias("follower"), job.alias("before")
    lines = sa.select(heads.c.id.label("id"), sa.literal(0).label("place")).cte("lines", recursive=True)
    follower = (
        sa.select(after.c.id)
        .where(
            after.c.status == JobStatus.QUEUED,
            after.c.tenant_id == before.c.tenant_id,
            after.c.user_id == before.c.user_id,
            sa.tuple_(after.c.next_attempt_at, after.c.id) > sa.tuple_(before.c.next_attempt_at, before.c.id),
        )
        .order_by(after.c.next_attempt_at, after.c.id)
        .limit(1)
        .correlate(before)
        .scalar_subquery()
    )
    return lines.union_all(
        sa.select(follower, lines.c.place + 1)
        .select_from(lines.join(before, before.c.id == lines.c.id))
        .where(lines.c.place < most)
    )


# composed once: it runs for every small document
_OF_JOB = sa.update(document).where(document.c.job_id == sa.bindparam("its_job"))
_CARRIES = job.c.boot_id == sa.bindparam("its_boot"), job.c.claim == sa.bindparam("its_claim")
_HELD = sa.select(job.c.id).where(job.c.id == sa.bindparam("its_id"), *_CARRIES)
_RUNS = _HELD.where(job.c.status == JobStatus.RUNNING)


def lock_running(connection: sa.Connection, jobs: Sequence[ClaimedJob]) -> list[ClaimedJob]:
    """Those of the jobs that still run under the claim given, in their order.

    Locks their documents first, as deletions and new versions do.
    """
    ids = {each.id for each in jobs}
    of_jobs = sa.select(job.c.document_id).where(job.c.id.in_(ids))
    locked = sa.select(document.c.id).where(document.c.id.in_(of_jobs)).order_by(document.c.id).with_for_update()
    connection.execute(locked)
    query = sa.select(job.c.id, job.c.status, job.c.boot_id, job.c.claim).where(job.c.id.in_(ids))
    rows = {row.id: row for row in connection.execute(query)}
    assert len(rows) == len(ids), "jobs are never deleted"
    running = {key: (row.boot_id, row.claim) for key, row in rows.items() if row.status == JobStatus.RUNNING}
    return [each for each in jobs if running.get(each.id) == (each.boot_id, each.claim)]


def runs(connection: sa.Connection, claimed: ClaimedJob) -> bool:
    """Whether a job still runs under this claim; without a lock, so it may end at any moment."""
    return connection.execute(_RUNS, _claim_of(claimed)).scalar() is not None


def is_lost(connection: sa.Connection, claimed: ClaimedJob) -> bool:
    """Whether a job was queued again or claimed again, so that others read its document. It never comes back.

    Not when it ended under this claim, by a cancellation too.
    """
    return connection.execute(_HELD, _claim_of(claimed)).scalar() is None


def _claim_of(claimed: ClaimedJob) -> dict[str, object]:
    return {"its_id": claimed.id, "its_boot": claimed.boot_id, "its_claim": claimed.claim}


def set_document(connection: sa.Connection, job_id: str, **values: object) -> None:
    """Change columns of the document whose newest version the job ingests."""
    connection.execute(_OF_JOB, {"its_job": job_id, **values})


def report_progress(
    connection: sa.Connection, reports: Mapping[ClaimedJob, tuple[int, int]], status: DocumentStatus, *, now: float
) -> None:
    """Write the progress of locked jobs, given as (done, total) by job."""
    if reports:
        connection.execute(
            _OF_JOB,
            [
                {"its_job": each.id, "status": status, "done": done, "total": total, "updated_at": now}
                for each, (done, total) in reports.items()
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


def lock_orphans(connection: sa.Connection, gone: Gone) -> list[str]:
    """The ids of the jobs that processes, now gone, were running; their documents are locked."""
    orphaned = job.c.status == JobStatus.RUNNING, gone(job.c.boot_id)
    of_newest = document.c.job_id == job.c.id
    found = sa.select(job.c.id).join(document, of_newest).where(*orphaned).order_by(document.c.id)
    locked = connection.execute(found.with_for_update(of=document)).scalars().all()
    if not locked:
        return []
    # as they are now: whoever held a lock may have ended its job
    still = connection.execute(sa.select(job.c.id).where(job.c.id.in_(locked), *orphaned))
    return list(still.scalars())


def requeue_orphans(connection: sa.Connection, ids: Sequence[str], *, most_crashes: int, now: float) -> None:
    """Queue locked orphans again. After `most_crashes` crashes a job fails with the code "gave-up" instead.

    A crash counts where the job is known to have begun and no block of its embeddings was kept since the crash before:
    neither a job that waited beside another nor a long one that goes on is what the processes die of.
    """
    is_suspect = sa.and_(job.c.begun, sa.not_(job.c.kept_since_crash))
    counted = sa.select(job.c.id, (job.c.crashes + sa.case((is_suspect, 1), else_=0)).label("crashes"))
    for job_id, crashes in connection.execute(counted.where(job.c.id.in_(ids)).order_by(job.c.document_id)).all():
        if crashes >= most_crashes:
            detail = f"The server stopped {crashes} times while reading this document."
            fail_job(connection, job_id, code="gave-up", detail=detail, now=now)
        else:
            requeue_job(connection, job_id, now=now, crashes=crashes, kept_since_crash=False, alone=True)


def requeue_job(connection: sa.Connection, job_id: str, *, now: float, **values: object) -> None:
    """Queue a locked job again, setting `values` of its columns; its checkpoints are kept."""
    waiting = sa.update(job).where(job.c.id == job_id).values(status=JobStatus.QUEUED, boot_id=None, **values)
    connection.execute(waiting)
    set_document(connection, job_id, status=DocumentStatus.QUEUED, done=0, total=0, updated_at=now)
