"""Versions of documents and the jobs that will index them, inside the caller's transaction."""

from dataclasses import dataclass

import sqlalchemy as sa

from app.db.originals import named
from app.db.removal import cancel_jobs
from app.db.tables.documents import document, document_version, job
from app.ids import new_id
from app.types import Document, DocumentStatus, JobStatus, NewDocument

_NEW_DOCUMENT, _NEW_VERSION, _NEW_JOB = sa.insert(document), sa.insert(document_version), sa.insert(job)


@dataclass(frozen=True, slots=True, kw_only=True)
class Upload:
    """An upload that becomes a version, with its uploader. `size` is in bytes, `original` names it in the store."""

    original: str
    filename: str
    size: int
    sha256: str
    user_id: str
    key_id: str


def insert_document(connection: sa.Connection, new: NewDocument, upload: Upload, *, now: float) -> None:
    """Inserts a document with its first version, queued.

    Raises:
        sqlalchemy.exc.IntegrityError: Its external id or its content exists already.
    """
    connection.execute(
        _NEW_DOCUMENT,
        {
            "id": new.id,
            "tenant_id": new.tenant_id,
            "collection_id": new.collection_id,
            "external_id": new.external_id,
            "content_key": new.sha256 if new.external_id is None else None,
            "version": 1,
            "status": DocumentStatus.QUEUED,
            "done": 0,
            "total": 0,
            "job_id": _insert_job(
                connection, new.id, 1, new.tenant_id, replace=False, user=(upload.user_id, upload.key_id), now=now
            ),
            "created_at": now,
            "updated_at": now,
            "metadata": dict(new.metadata),
        },
    )
    _insert_version(connection, new.id, 1, upload, now=now)


def insert_version(connection: sa.Connection, existing: Document, upload: Upload, *, replace: bool, now: float) -> None:
    """Inserts the next version of a locked document, queued; it supersedes a version that is not indexed yet."""
    version = existing.version + 1
    cancel_jobs(connection, existing.id, now=now)
    _insert_version(connection, existing.id, version, upload, now=now)
    job_id = _insert_job(
        connection,
        existing.id,
        version,
        existing.tenant_id,
        replace=replace,
        user=(upload.user_id, upload.key_id),
        now=now,
    )
    key = content_key(connection, existing, upload.sha256)
    _queue(connection, existing.id, job_id, now=now, version=version, content_key=key)


def requeue(connection: sa.Connection, existing: Document, *, user_id: str, key_id: str, now: float) -> None:
    """Queues a new job for the newest version of a locked document whose last job has failed."""
    replace = connection.execute(sa.select(job.c.replace).where(job.c.id == existing.job_id)).scalar_one()
    job_id = _insert_job(
        connection,
        existing.id,
        existing.version,
        existing.tenant_id,
        replace=replace,
        user=(user_id, key_id),
        now=now,
    )
    _queue(connection, existing.id, job_id, now=now)


def content_key(connection: sa.Connection, existing: Document, sha256: str) -> str | None:
    """The SHA-256 of a locked document's newest version where it identifies the document, else None."""
    twin = sa.select(document.c.id).where(
        document.c.tenant_id == existing.tenant_id,
        document.c.collection_id == existing.collection_id,
        document.c.content_key == sha256,
        document.c.id != existing.id,
    )
    identified = existing.external_id is not None or connection.execute(twin).scalar() is not None
    return None if identified else sha256


def _insert_version(connection: sa.Connection, document_id: str, version: int, upload: Upload, *, now: float) -> None:
    connection.execute(
        _NEW_VERSION,
        {
            "document_id": document_id,
            "version": version,
            "filename": upload.filename,
            "bytes": upload.size,
            "sha256": upload.sha256,
            "page_count": 0,
            "chunk_count": 0,
            "token_count": 0,
            "embedding_tokens": 0,
            "created_at": now,
            "object": upload.original,
        },
    )
    named(connection, upload.original)


def _insert_job(
    connection: sa.Connection,
    document_id: str,
    version: int,
    tenant_id: str,
    *,
    replace: bool,
    user: tuple[str, str],
    now: float,
) -> str:
    job_id = new_id("job")
    connection.execute(
        _NEW_JOB,
        {
            "id": job_id,
            "tenant_id": tenant_id,
            "document_id": document_id,
            "version": version,
            "status": JobStatus.QUEUED,
            "attempts": 0,
            "replace": replace,
            "user_id": user[0],
            "key_id": user[1],
            "created_at": now,
            "next_attempt_at": now,
        },
    )
    return job_id


def _queue(connection: sa.Connection, document_id: str, job_id: str, *, now: float, **changes: object) -> None:
    connection.execute(
        sa.update(document)
        .where(document.c.id == document_id)
        .values(status=DocumentStatus.QUEUED, done=0, total=0, job_id=job_id, updated_at=now, **changes)
    )
