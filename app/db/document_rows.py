"""Reads and locks documents and jobs, finds duplicates, and converts rows to `Document` and `Job`."""

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import sqlalchemy as sa

from app.db.tables.documents import document, document_version, index_generation, job
from app.errors import Conflict, NotFound
from app.types import Document, DocumentStatus, Job, JobStatus, NewDocument

OnDuplicate: TypeAlias = Literal["skip", "replace", "version", "error"]
"""What happens to an upload of which there is a duplicate; see `DocumentRepository.create`."""


@dataclass(frozen=True, slots=True)
class ClaimedJob(Job):
    """A job that the process `boot_id` has claimed to run.

    Both say which claim it is: whoever claims the job later, this process too, gets a higher `claim`. Only a job that
    still carries them can be changed by their holder (docs/adr/0098).
    """

    boot_id: str
    claim: int


_newest = document_version.alias("newest")
_live = document_version.alias("live")

DOCUMENTS: sa.Select[Any] = (
    sa.select(
        document,
        _newest.c.filename,
        _newest.c.bytes,
        _newest.c.sha256,
        _newest.c.media_type,
        _live.c.page_count,
        _live.c.chunk_count,
        _live.c.token_count,
        _live.c.embedding_tokens,
        index_generation.c.id.label("generation"),
        index_generation.c.model,
        index_generation.c.dim,
        job.c.attempts,
        job.c.status.label("job_status"),
        job.c.next_attempt_at,
        job.c.error_code,
        job.c.error_detail,
    )
    .select_from(document)
    .join(_newest, sa.and_(_newest.c.document_id == document.c.id, _newest.c.version == document.c.version))
    .join(job, job.c.id == document.c.job_id)
    .outerjoin(_live, sa.and_(_live.c.document_id == document.c.id, _live.c.version == document.c.live_version))
    # the active generation, not that of indexing: every visible chunk has its vector there
    .outerjoin(index_generation, sa.and_(_live.c.generation.is_not(None), index_generation.c.status == "active"))
)
"""Selects every column that `to_document` needs; add conditions on `document` or on `FILENAME`."""

FILENAME = _newest.c.filename
"""The newest version's file name, inside `DOCUMENTS`."""

SHA256 = _newest.c.sha256
"""The newest version's SHA-256, inside `DOCUMENTS`."""

_BY_ID = DOCUMENTS.where(document.c.id == sa.bindparam("its_id"))


def given_id(external_id: str | None, document_id: str) -> str | None:
    """The external id that the uploader gave; None without one.

    An attached file of OpenAI's protocol has its own id stored there, so that files with the same bytes stay separate.
    """
    return None if external_id == document_id else external_id


def to_document(row: sa.Row[Any]) -> Document:
    """A document from a row of `DOCUMENTS`; its counts are 0 while no version is live."""
    return Document(
        id=row.id,
        tenant_id=row.tenant_id,
        collection_id=row.collection_id,
        external_id=given_id(row.external_id, row.id),
        filename=row.filename,
        media_type=row.media_type,
        bytes=row.bytes,
        sha256=row.sha256,
        metadata=row.metadata,
        version=row.version,
        live_version=row.live_version,
        status=DocumentStatus(row.status),
        done=row.done,
        total=row.total,
        pages=row.page_count or 0,
        chunks=row.chunk_count or 0,
        tokens=row.token_count or 0,
        embedding_model=row.model,
        embedding_dim=row.dim,
        embedding_generation=row.generation,
        embedding_tokens=row.embedding_tokens or 0,
        attempts=row.attempts,
        error_code=row.error_code,
        error_detail=row.error_detail,
        next_attempt_at=_next_attempt(row.job_status, row),
        job_id=row.job_id,
        created_at=row.created_at,
        updated_at=row.updated_at,
    )


def to_job(row: sa.Row[Any]) -> Job:
    """A job from a row of `job`."""
    return Job(**_of_job(row))


def to_claimed_job(row: sa.Row[Any]) -> ClaimedJob:
    """A job from a row of `job`, as its claim left it."""
    return ClaimedJob(**_of_job(row), boot_id=row.boot_id, claim=row.claim)


def _of_job(row: sa.Row[Any]) -> dict[str, Any]:
    return {
        "id": row.id,
        "tenant_id": row.tenant_id,
        "document_id": row.document_id,
        "version": row.version,
        "status": JobStatus(row.status),
        "attempts": row.attempts,
        "replace": row.replace,
        "user_id": row.user_id,
        "key_id": row.key_id,
        "error_code": row.error_code,
        "error_detail": row.error_detail,
        "created_at": row.created_at,
        "next_attempt_at": _next_attempt(row.status, row),
        "started_at": row.started_at,
        "finished_at": row.finished_at,
    }


def _next_attempt(status: str, row: sa.Row[Any]) -> float | None:
    """The time of the next retry; None when the job does not wait for one."""
    waits = status == JobStatus.QUEUED and row.attempts > 0
    return row.next_attempt_at if waits else None


def read_document(connection: sa.Connection, document_id: str) -> Document:
    """Read a document that exists."""
    return to_document(connection.execute(_BY_ID, {"its_id": document_id}).one())


def find_document(
    connection: sa.Connection, document_id: str, *, tenant_id: str, collections: tuple[str, ...] | None
) -> Document:
    """Find a document of a tenant, in one of `collections` unless that is None.

    Raises:
        NotFound: No such document.
    """
    query = DOCUMENTS.where(document.c.id == document_id, document.c.tenant_id == tenant_id)
    if collections is not None:
        query = query.where(document.c.collection_id.in_(collections))
    row = connection.execute(query).one_or_none()
    if row is None:
        raise NotFound("There is no such document.")
    return to_document(row)


def lock_document(
    connection: sa.Connection, document_id: str, *, tenant_id: str, collections: tuple[str, ...] | None
) -> Document:
    """As `find_document`, and lock the document until the transaction ends."""
    # read after locking: the change that the lock waited for is then visible
    connection.execute(sa.select(document.c.id).where(document.c.id == document_id).with_for_update())
    return find_document(connection, document_id, tenant_id=tenant_id, collections=collections)


def stays(existing: Document, new: NewDocument, on_duplicate: OnDuplicate | None) -> bool:
    """Whether a duplicate gets no new version.

    Raises:
        Conflict: It is refused.
    """
    if on_duplicate == "error":
        raise Conflict("The same document is there already.")
    return existing.sha256 == new.sha256 or on_duplicate == "skip"


def duplicates(new: NewDocument) -> sa.Select[Any]:
    """Selects the row of the document of which `new` is a duplicate."""
    query = DOCUMENTS.where(document.c.tenant_id == new.tenant_id, document.c.collection_id == new.collection_id)
    if new.external_id is not None:
        query = query.where(document.c.external_id == new.external_id)
    else:
        query = query.where(SHA256.in_([new.sha256]))
    return query.order_by(document.c.created_at, document.c.id).limit(1)


def find_duplicate(connection: sa.Connection, new: NewDocument) -> Document | None:
    """The document of which `new` is a duplicate, locked; None when there is none."""
    found = connection.execute(duplicates(new)).one_or_none()
    if found is None:
        return None
    try:
        return lock_document(connection, found.id, tenant_id=new.tenant_id, collections=None)
    except NotFound:
        return None  # deleted between the two statements
