"""Finished blocks of a job's embeddings, kept until it ends, inside the caller's transaction."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import sqlalchemy as sa

from app.db.tables.documents import embedding_checkpoint
from retrieval.ports import Vectors


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    """Vectors of the passages from `first_ordinal` on, `(n, dim)` float32, as the embedder made them.

    `digest` is the SHA-256 of the texts, `generation` the embedder's, `event_id` the ledger row that pays
    for the `tokens`.
    """

    first_ordinal: int
    digest: str
    generation: int
    event_id: str
    tokens: int
    vectors: Vectors


def write_checkpoint(connection: sa.Connection, job_id: str, checkpoint: Checkpoint) -> None:
    """Keep a block; one that began at the same passage is forgotten."""
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
    """The blocks kept for a job by this generation's embedder, by their first ordinal."""
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
    """Forget what was kept for jobs that have ended."""
    connection.execute(sa.delete(embedding_checkpoint).where(embedding_checkpoint.c.job_id.in_(job_ids)))
