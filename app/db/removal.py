"""Deletes documents, their chunks and vectors, and cancels their jobs, inside the caller's transaction."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import sqlalchemy as sa

from app.db.audit import Record
from app.db.checkpoints import drop_checkpoints
from app.db.cited_passages import forget_passages
from app.db.job_queue import not_before
from app.db.originals import condemn
from app.db.tables.documents import chunk, chunk_vector, document, document_version, job
from app.db.watch_changes import note_changes
from app.types import Deleted, JobStatus
from retrieval.ports import Keys

FollowRemoval: TypeAlias = Callable[[sa.Connection, Keys], object]
"""The part of the indexes in a transaction that deletes chunks; it is told their keys."""


@dataclass(frozen=True, slots=True)
class Removal:
    """The result of a deletion in SQL, with the originals and index keys still to be deleted.

    `documents` is their number, `originals` are names; `keys` is `(n,)` int64, sorted ascending.
    """

    deleted: Deleted
    documents: int
    originals: tuple[str, ...]
    keys: Keys


def remove_documents(
    connection: sa.Connection,
    document_ids: Sequence[str],
    *,
    now: float,
    record: Record | None = None,
    follow: FollowRemoval | None = None,
) -> Removal:
    """Delete documents and cancel their open jobs. The caller has locked the documents' rows.

    `record` writes an audit entry for each document, with its file name. `follow` is called where chunks were deleted.
    """
    note_changes(connection, document_ids, now=now)
    originals: list[str] = []
    keys, vectors = [], 0
    for document_id in document_ids:
        removed_keys, removed_vectors = remove_chunks(connection, document_id)
        keys.append(removed_keys)
        vectors += removed_vectors
        dropped = connection.execute(
            sa.delete(document_version)
            .where(document_version.c.document_id == document_id)
            .returning(document_version.c.version, document_version.c.filename, document_version.c.object)
        ).all()
        names = {row.version: row.filename for row in dropped}
        originals += [row.object for row in sorted(dropped, key=lambda row: row.version)]
        collection_id = connection.execute(
            sa.delete(document).where(document.c.id == document_id).returning(document.c.collection_id)
        ).scalar_one()
        forget_passages(connection, document_id)
        cancel_jobs(connection, document_id, now=now)
        if record is not None:
            record(
                connection, document_id, {"name": names[max(names)], "id": document_id, "collection_id": collection_id}
            )
    removed = np.sort(np.concatenate(keys)) if keys else np.empty(0, np.int64)
    if follow is not None and len(removed):
        follow(connection, removed)
    return Removal(
        deleted=Deleted(chunks=len(removed), vectors=vectors),
        documents=len(document_ids),
        originals=condemn(connection, originals, now=now),
        keys=removed,
    )


def remove_chunks(connection: sa.Connection, document_id: str) -> tuple[Keys, int]:
    """Delete a document's chunks and vectors; returns the keys, and the number of vectors."""
    of_document = sa.select(chunk.c.key).where(chunk.c.document_id == document_id)
    vectors = connection.execute(sa.delete(chunk_vector).where(chunk_vector.c.key.in_(of_document))).rowcount
    removed = connection.execute(
        sa.delete(chunk).where(chunk.c.document_id == document_id).returning(chunk.c.key)
    ).scalars()
    return np.sort(np.fromiter(removed, np.int64)), vectors


def cancel_jobs(connection: sa.Connection, document_id: str, *, now: float) -> None:
    """Cancel a document's open jobs; a worker notices at its next progress report."""
    cancelled = connection.execute(
        sa.update(job)
        .where(job.c.document_id == document_id, job.c.status.in_((JobStatus.QUEUED, JobStatus.RUNNING)))
        .values(status=JobStatus.CANCELLED, finished_at=not_before(now))
        .returning(job.c.id)
    ).scalars()
    drop_checkpoints(connection, list(cancelled))
