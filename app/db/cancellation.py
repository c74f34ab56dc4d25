"""Cancels ingestion jobs, inside the caller's transaction."""

import sqlalchemy as sa

from app.db.document_rows import lock_document
from app.db.originals import condemn
from app.db.removal import cancel_jobs
from app.db.tables.documents import document, document_version, job
from app.db.versions import content_key
from app.errors import Conflict, NotFound
from app.types import DocumentStatus, Job, JobStatus

CANCELLED = "cancelled"
"""The error code of a document whose ingestion was cancelled."""


def cancel_job(connection: sa.Connection, open_job: Job, *, now: float) -> tuple[str, ...]:
    """Cancel a queued or running job; returns the names of the originals to delete after the commit.

    The document returns to its indexed version, as if the newer one had never been uploaded. A document without an
    indexed version fails with the code "cancelled".

    Raises:
        NotFound: Its document has been deleted.
        Conflict: The job has ended.
    """
    found = lock_document(connection, open_job.document_id, tenant_id=open_job.tenant_id, collections=None)
    status = connection.execute(sa.select(job.c.status).where(job.c.id == open_job.id)).scalar_one()
    if status not in {JobStatus.QUEUED, JobStatus.RUNNING}:
        raise Conflict(f"Only a job that waits or runs can be cancelled; this one is {status}.")
    assert found.job_id == open_job.id, "a document's open job is its newest"
    cancel_jobs(connection, found.id, now=now)
    connection.execute(
        sa.update(job).where(job.c.id == open_job.id).values(error_code=CANCELLED, error_detail="It was cancelled.")
    )
    this = sa.update(document).where(document.c.id == found.id)
    if found.live_version is None:
        connection.execute(this.values(status=DocumentStatus.FAILED, updated_at=now))
        return ()
    if found.live_version == found.version:  # the job was for the indexed version: no newer one to delete
        dropped: list[str] = []
    else:
        newer = document_version.c.document_id == found.id, document_version.c.version > found.live_version
        gone = sa.delete(document_version).where(*newer).returning(document_version.c.object)
        dropped = list(connection.execute(gone).scalars())
    done = (
        sa.select(job.c.id)
        .where(job.c.document_id == found.id, job.c.version == found.live_version, job.c.status == JobStatus.DONE)
        .order_by(job.c.finished_at.desc())
        .limit(1)
    )
    sha256 = connection.execute(
        sa.select(document_version.c.sha256).where(
            document_version.c.document_id == found.id, document_version.c.version == found.live_version
        )
    ).scalar_one()
    connection.execute(
        this.values(
            status=DocumentStatus.INDEXED,
            version=found.live_version,
            content_key=content_key(connection, found, sha256),
            job_id=connection.execute(done).scalar_one(),
            updated_at=now,
        )
    )
    return condemn(connection, dropped, now=now)


def find_job(connection: sa.Connection, job_id: str, *, tenant_id: str) -> sa.Row[tuple[object, ...]]:
    """A job's row.

    Raises:
        NotFound: No such job of this tenant.
    """
    row = connection.execute(sa.select(job).where(job.c.id == job_id, job.c.tenant_id == tenant_id)).one_or_none()
    if row is None:
        raise NotFound("There is no such job.")
    return row
