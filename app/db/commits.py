"""Making what a job produced the version that search returns, inside the caller's transaction."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import sqlalchemy as sa

from app.db.checkpoints import drop_checkpoints
from app.db.indexing import drop_older, take_keys, write_chunks, write_text
from app.db.removal import remove_chunks
from app.db.running import finish, lock_running, set_document
from app.types import DocumentStatus, Job, JobStatus
from ingestion.types import Extraction, Passage
from retrieval.ports import Keys, Vectors

Also = Callable[[sa.Connection], object]
"""What else belongs into a transaction: the ledger's part of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Version:
    """What a job made: `vectors` is `(len(passages), dim)` float32. `also` runs inside its transaction."""

    job_id: str
    extraction: Extraction
    passages: Sequence[Passage]
    vectors: Vectors
    generation: int
    embedding_tokens: int
    also: Also | None = None


@dataclass(frozen=True, slots=True)
class CommitResult:
    """What a commit changed; nothing when `written` is false: the document was deleted or overtaken.

    `new_keys` `(n,)` int64 are the passages' keys in order, `removed_keys` those of the version
    search returned before; `dropped_versions` are the older versions whose files must go.
    """

    written: bool
    new_keys: Keys
    removed_keys: Keys
    dropped_versions: tuple[int, ...]


_NOTHING = CommitResult(
    written=False, new_keys=np.empty(0, np.int64), removed_keys=np.empty(0, np.int64), dropped_versions=()
)


def commit_versions(connection: sa.Connection, versions: Sequence[Version], *, now: float) -> tuple[CommitResult, ...]:
    """Write each version whose job still runs; one result a version, in their order."""
    running = lock_running(connection, [version.job_id for version in versions])
    results = tuple(
        _commit(connection, running[version.job_id], version, now=now) if version.job_id in running else _NOTHING
        for version in versions
    )
    drop_checkpoints(connection, list(running))
    return results


def _commit(connection: sa.Connection, running: Job, version: Version, *, now: float) -> CommitResult:
    passages = version.passages
    halves = np.ascontiguousarray(version.vectors, dtype="<f2")
    assert len(passages) == len(halves), "one vector a passage"
    assert bool(np.isfinite(halves).all()), "vectors are of unit length, far inside float16"
    removed, _ = remove_chunks(connection, running.document_id)
    keys = take_keys(connection, len(passages))
    write_text(
        connection,
        running,
        version.extraction,
        passages,
        first_key=int(keys[0]) if len(keys) else None,
        generation=version.generation,
        embedding_tokens=version.embedding_tokens,
        now=now,
    )
    write_chunks(connection, running, passages, keys=keys, halves=halves, generation=version.generation)
    set_document(
        connection,
        running.id,
        status=DocumentStatus.INDEXED,
        live_version=running.version,
        done=len(passages),
        total=len(passages),
        updated_at=now,
    )
    finish(connection, running.id, JobStatus.DONE, now=now)
    if version.also is not None:
        version.also(connection)
    dropped = drop_older(connection, running) if running.replace else ()
    return CommitResult(written=True, new_keys=keys, removed_keys=removed, dropped_versions=dropped)
