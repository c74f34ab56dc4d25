"""Visible chunks: the store and the keyword index behind retrieval's ports."""

from collections.abc import Iterator, Sequence

import numpy as np
import sqlalchemy as sa

from app.db.chunk_rows import CHUNKS, to_chunk
from app.db.lexical import search_text
from app.db.scopes import documents_in, is_live
from app.db.session import Database
from app.db.tables import chunk, chunk_vector, document, document_version
from retrieval.ports import Keys, Vectors
from retrieval.types import Chunk, Scope

_AT_ONCE = 500  # keys in one statement


class ChunkRepository:
    """Implements `ChunkStore` and `LexicalIndex`, and gives out the vectors an index is rebuilt from."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def keys_in(self, scope: Scope) -> Keys:
        """`(n,)` int64 keys of the visible chunks in scope, sorted ascending."""
        return self._keys(*documents_in(scope, dialect=self._database.dialect))

    def visible_keys(self) -> Keys:
        """`(n,)` int64 keys of the visible chunks of all tenants, sorted ascending: what a vector index must hold."""
        return self._keys()

    def chunks(self, keys: Sequence[int], *, scope: Scope) -> dict[int, Chunk]:
        """The visible chunks among `keys`, scope checked again; others are left out."""
        query = CHUNKS.where(*documents_in(scope, dialect=self._database.dialect))
        with self._database.read() as connection:
            return {
                row.key: to_chunk(row)
                for some in _batches(keys)
                for row in connection.execute(query.where(chunk.c.key.in_(some)))
            }

    def search_text(self, query: str, *, scope: Scope, k: int) -> list[tuple[int, float]]:
        """At most `k` (key, score) best first, scope applied inside. Any text is a valid query."""
        with self._database.read() as connection:
            return search_text(connection, query, scope=scope, k=k)

    def vectors(self, keys: Sequence[int], *, generation: int) -> tuple[Keys, Vectors]:
        """Those of `keys` that have a vector in `generation`, sorted, `(n,)`, and the vectors, `(n, dim)` float32."""
        query = sa.select(chunk_vector.c.key, chunk_vector.c.vector).where(chunk_vector.c.generation == generation)
        with self._database.read() as connection:
            rows = [
                (int(key), bytes(vector))
                for some in _batches(keys)
                for key, vector in connection.execute(query.where(chunk_vector.c.key.in_(some)))
            ]
        return _unpacked(sorted(rows))

    def iter_vectors(self, *, generation: int, batch: int = 4096) -> Iterator[tuple[Keys, Vectors]]:
        """Every visible chunk's vector in `generation`, ascending by key, in batches as `vectors` returns them.

        Each batch is its own transaction: what is written meanwhile may be missed, and is in
        `visible_keys` afterwards.
        """
        assert batch > 0, "a batch holds at least one vector"
        query = (
            sa.select(chunk_vector.c.key, chunk_vector.c.vector)
            .join(chunk, chunk.c.key == chunk_vector.c.key)
            .join(document, is_live())
            .where(chunk_vector.c.generation == generation)
            .order_by(chunk_vector.c.key)
            .limit(batch)
        )
        last = -1
        while True:
            with self._database.read() as connection:
                rows = [
                    (int(key), bytes(vector))
                    for key, vector in connection.execute(query.where(chunk_vector.c.key > last))
                ]
            if not rows:
                return
            last = rows[-1][0]
            yield _unpacked(rows)

    def _keys(self, *conditions: sa.ColumnElement[bool]) -> Keys:
        # a version's keys follow each other, so one row a document says them all
        query = (
            sa.select(document_version.c.first_key, document_version.c.chunk_count)
            .select_from(document)
            .join(
                document_version,
                sa.and_(
                    document_version.c.document_id == document.c.id,
                    document_version.c.version == document.c.live_version,
                ),
            )
            .where(document_version.c.chunk_count > 0, *conditions)
        )
        with self._database.read() as connection:
            runs = [np.arange(first, first + count) for first, count in connection.execute(query)]
        found = np.concatenate(runs, dtype=np.int64) if runs else np.empty(0, np.int64)
        found.sort()
        return found


def _batches(keys: Sequence[int]) -> Iterator[list[int]]:
    for start in range(0, len(keys), _AT_ONCE):
        yield [int(key) for key in keys[start : start + _AT_ONCE]]


def _unpacked(rows: Sequence[tuple[int, bytes]]) -> tuple[Keys, Vectors]:
    keys = np.array([key for key, _ in rows], dtype=np.int64)
    halves = np.frombuffer(b"".join(vector for _, vector in rows), dtype="<f2")
    return keys, halves.reshape(len(rows), -1 if rows else 0).astype(np.float32)
