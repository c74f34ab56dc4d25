"""Publishes the versions that jobs have ingested: makes them live, inside the caller's transaction."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import sqlalchemy as sa

from app.db.checkpoints import drop_checkpoints
from app.db.cited_passages import note_superseded
from app.db.document_rows import ClaimedJob
from app.db.job_queue import lock_running
from app.db.published_rows import Halves, Indexed, drop_older, finish_indexed, keys_taken, write_chunks, write_texts
from app.db.removal import remove_chunks
from app.db.tables.documents import chunk
from app.db.watch_changes import note_changes
from app.types import Job
from ingestion.types import ChunkDraft, Extraction
from retrieval.ports import Keys, Vectors

Also = Callable[[sa.Connection], object]
"""A further write of the transaction: that of the ledger."""
Follow = Callable[[sa.Connection, Keys, Keys], object]
"""What an index writes in the transaction, from the keys that a version got and those that it replaces."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Version:
    """The result of a claimed job: `vectors` is `(len(passages), dim)` float32.

    `also` and `follow` run inside its transaction.
    """

    job: ClaimedJob
    extraction: Extraction
    passages: Sequence[ChunkDraft]
    vectors: Vectors
    generation: int
    embedding_tokens: int
    also: Also | None = None
    follow: Follow | None = None


@dataclass(frozen=True, slots=True)
class CommitResult:
    """The changes of a commit; `written` is false when the job no longer ran under its claim, and nothing changed.

    `new_keys` `(n,)` int64 are the keys of the passages in order, `removed_keys` those of the earlier live version.
    `originals` are the names of those of older versions, which must be deleted.
    """

    written: bool
    new_keys: Keys
    removed_keys: Keys
    originals: tuple[str, ...]


_NOTHING = CommitResult(written=False, new_keys=np.empty(0, np.int64), removed_keys=np.empty(0, np.int64), originals=())


def commit_versions(connection: sa.Connection, versions: Sequence[Version], *, now: float) -> tuple[CommitResult, ...]:
    """Write each version whose job still runs under its claim and took keys; returns one result per version, in order.

    Each table is written by one statement for all versions, since many small statements would dominate the time.
    """
    running = set(lock_running(connection, [version.job for version in versions]))
    wanted = [version for version in versions if version.job in running]
    if not wanted:
        return (_NOTHING,) * len(versions)
    removed = _remove_older_chunks(connection, [version.job for version in wanted])
    keys = keys_taken(connection, {version.job: len(version.passages) for version in wanted})
    indexed = [
        Indexed(
            version.job,
            version.extraction,
            version.passages,
            keys[version.job],
            _halves(version),
            version.generation,
            version.embedding_tokens,
        )
        for version in wanted
    ]
    note_superseded(connection, {each.document_id for each in keys})
    write_texts(connection, indexed, now=now)
    write_chunks(connection, indexed)
    finish_indexed(connection, indexed, now=now)
    note_changes(connection, {each.document_id for each in keys}, now=now)
    for version, each in zip(wanted, indexed, strict=True):
        if version.follow is not None:
            version.follow(connection, each.keys, removed.get(each.job.document_id, _NOTHING.removed_keys))
        if version.also is not None:
            version.also(connection)
    drop_checkpoints(connection, [version.job.id for version in wanted])
    results = {
        each.job: CommitResult(
            written=True,
            new_keys=each.keys,
            removed_keys=removed.get(each.job.document_id, _NOTHING.removed_keys),
            originals=drop_older(connection, each.job, now=now) if each.job.replace else (),
        )
        for each in indexed
    }
    return tuple(results.get(version.job, _NOTHING) for version in versions)


def _remove_older_chunks(connection: sa.Connection, jobs: Sequence[Job]) -> dict[str, Keys]:
    """Delete the chunks of earlier live versions; returns their keys by document."""
    ids = [job.document_id for job in jobs]
    earlier = connection.execute(sa.select(chunk.c.document_id).where(chunk.c.document_id.in_(ids)).distinct())
    return {document_id: remove_chunks(connection, document_id)[0] for document_id in sorted(earlier.scalars())}


def _halves(version: Version) -> Halves:
    halves: Halves = np.ascontiguousarray(version.vectors, dtype="<f2")
    assert len(version.passages) == len(halves), "one vector a passage"
    assert bool(np.isfinite(halves).all()), "vectors are of unit length, far inside float16"
    return halves
