"""Which waiting job is next: people take turns, each person's own jobs in order.

Whoever has a job waiting and was served longest ago, or never, is next. So a newcomer's first job waits
for at most one job of each person who has some waiting, however many those are. The people are found
by jumping through an index from one to the next, a "loose index scan" (PostgreSQL wiki, "Loose indexscan"):
the cost grows with the people who wait, not with the queue.
"""

from typing import Any

import sqlalchemy as sa

from app.db.tables.documents import document, job
from app.types import JobStatus


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
