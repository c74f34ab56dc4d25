"""Vectors of visible chunks by generation: finds missing ones, stores and deletes them."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import sqlalchemy as sa

from app.db.scopes import is_live
from app.db.session import Database
from app.db.tables.documents import chunk, chunk_vector, document, document_version
from retrieval.ports import Vectors

_AT_ONCE = 500  # keys in one statement


@dataclass(frozen=True, slots=True)
class Unembedded:
    """A visible chunk without a vector in a generation, with its owner."""

    key: int
    tenant_id: str
    document_id: str
    heading_path: tuple[str, ...]
    text: str
    table_header: str


class VectorRepository:
    """The vectors of generations that are being built, updated or deleted."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def missing(self, generation: int, *, after: int, limit: int) -> list[Unembedded]:
        """At most `limit` visible chunks without a vector in `generation`, by key, those above `after`."""
        query = (
            sa.select(
                chunk.c.key,
                document.c.tenant_id,
                chunk.c.document_id,
                chunk.c.heading_path,
                chunk.c.text,
                chunk.c.table_header,
            )
            .select_from(chunk)
            .join(document, is_live())
            .where(chunk.c.key > after, _lacks(generation))
            .order_by(chunk.c.key)
            .limit(limit)
        )
        with self._database.read() as connection:
            return [
                Unembedded(row.key, row.tenant_id, row.document_id, tuple(row.heading_path), row.text, row.table_header)
                for row in connection.execute(query)
            ]

    def progress(self, generation: int) -> tuple[int, int]:
        """The number of visible chunks with a vector in `generation`, and of all visible chunks."""
        lacking = sa.select(sa.func.count()).select_from(chunk).join(document, is_live()).where(_lacks(generation))
        visible = (
            sa.select(sa.func.coalesce(sa.func.sum(document_version.c.chunk_count), 0))
            .select_from(document)
            .join(
                document_version,
                sa.and_(
                    document_version.c.document_id == document.c.id,
                    document_version.c.version == document.c.live_version,
                ),
            )
        )
        with self._database.read() as connection:
            total = int(connection.execute(visible).scalar_one())
            return total - int(connection.execute(lacking).scalar_one()), total

    def store(self, generation: int, chunks: Sequence[Unembedded], vectors: Vectors) -> None:
        """Store `(len(chunks), dim)` float32 rows as float16, in one transaction.

        Chunks deleted meanwhile are skipped; existing vectors are not changed.

        Raises:
            StorageFull, StoreUnavailable: Nothing was written.
        """
        assert len(chunks) == len(vectors), "one vector a chunk"
        halves = np.ascontiguousarray(vectors, dtype="<f2")
        assert bool(np.isfinite(halves).all()), "vectors are of unit length, far inside float16"
        rows = {found.key: half.tobytes() for found, half in zip(chunks, halves, strict=True)}
        documents = sorted({found.document_id for found in chunks})
        with self._database.write() as connection:
            # deletions lock the document first; then its chunks are either gone, or stay until this is written
            connection.execute(
                sa.select(document.c.id).where(document.c.id.in_(documents)).order_by(document.c.id).with_for_update()
            )
            for some in _batches(list(rows)):
                held = sa.select(chunk_vector.c.key).where(
                    chunk_vector.c.generation == generation, chunk_vector.c.key.in_(some)
                )
                kept = connection.execute(sa.select(chunk.c.key).where(chunk.c.key.in_(some))).scalars().all()
                new = sorted(set(kept) - set(connection.execute(held).scalars()))
                if new:
                    connection.execute(
                        sa.insert(chunk_vector),
                        [{"key": key, "generation": generation, "vector": rows[key]} for key in new],
                    )

    def purge(self, generation: int, *, after: int, limit: int) -> int | None:
        """Deletes at most `limit` vectors of a retired generation with keys above `after`; returns the last key.

        Returns None when none was left. Each call is its own small transaction, so that others can write in between.
        """
        own = chunk_vector.c.generation == generation
        with self._database.write() as connection:
            keys = list(
                connection.execute(
                    sa.select(chunk_vector.c.key)
                    .where(own, chunk_vector.c.key > after)
                    .order_by(chunk_vector.c.key)
                    .limit(limit)
                ).scalars()
            )
            if not keys:
                return None
            connection.execute(sa.delete(chunk_vector).where(own, chunk_vector.c.key.between(keys[0], keys[-1])))
        return int(keys[-1])


def _lacks(generation: int) -> sa.ColumnElement[bool]:
    vector = sa.select(chunk_vector.c.key).where(
        chunk_vector.c.key == chunk.c.key, chunk_vector.c.generation == generation
    )
    return ~vector.exists()


def _batches(keys: Sequence[int]) -> list[Sequence[int]]:
    return [keys[start : start + _AT_ONCE] for start in range(0, len(keys), _AT_ONCE)]
