"""Checkpoints of embedding: the vectors of a job's finished blocks, kept until the job ends."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import sqlalchemy as sa

from app.db.tables.documents import embedding_checkpoint
from retrieval.ports import Vectors


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    """The vectors, `(n, dim)` float32, of a block of passages that begins at `first_ordinal`.

    `digest` is the SHA-256 of the texts, `generation` that of the embedder, `event_id` the ledger row with the
    `tokens`.
    """

    first_ordinal: int
    digest: str
    generation: int
    event_id: str
    tokens: int
    vectors: Vectors


def write_checkpoint(connection: sa.Connection, job_id: str, checkpoint: Checkpoint) -> None:
    """Insert a checkpoint in the caller's transaction, replacing one with the same first passage."""
    table = embedding_checkpoint
    here = table.c.job_id == job_id, table.c.first_ordinal == checkpoint.first_ordinal
    connection.execute(sa.delete(table).where(*here))
    connection.execute(
        sa.insert(table).values(
            job_id=job_id,
            first_ordinal=checkpoint.first_ordinal,
            passages=len(checkpoint.vectors),
            generation=checkpoint.generation,
            digest=checkpoint.digest,
            event_id=checkpoint.event_id,
            tokens=checkpoint.tokens,
            vectors=np.ascontiguousarray(checkpoint.vectors, dtype="<f4").tobytes(),
        )
    )


def read_checkpoints(connection: sa.Connection, job_id: str, *, generation: int) -> dict[int, Checkpoint]:
    """The checkpoints of a job with vectors of `generation`, by first ordinal."""
    table = embedding_checkpoint
    rows = connection.execute(sa.select(table).where(table.c.job_id == job_id, table.c.generation == generation))
    return {
        row.first_ordinal: Checkpoint(
            first_ordinal=row.first_ordinal,
            digest=row.digest,
            generation=row.generation,
            event_id=row.event_id,
            tokens=row.tokens,
            vectors=np.frombuffer(row.vectors, dtype="<f4").reshape(row.passages, -1),
        )
        for row in rows
    }


def drop_checkpoints(connection: sa.Connection, job_ids: Sequence[str]) -> None:
    """Delete the checkpoints of jobs that have ended, in the caller's transaction."""
    connection.execute(sa.delete(embedding_checkpoint).where(embedding_checkpoint.c.job_id.in_(job_ids)))
