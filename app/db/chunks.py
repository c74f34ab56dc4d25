"""Reads visible chunks, their headings, texts and vectors from SQL, and searches their text.

A chunk is visible when it belongs to the live version of its document.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import sqlalchemy as sa

from app.db.document_rows import given_id
from app.db.headed_texts import HeadedTexts
from app.db.lexical import DatabaseWords
from app.db.scopes import ScopeKeys, documents_in, is_live
from app.db.session import Database
from app.db.tables.documents import chunk, chunk_vector, document, document_version
from ingestion.titles import words_of_name
from retrieval.key_set import KeySet
from retrieval.ports import Keys, Vectors
from retrieval.types import Chunk, Scope

CHUNKS: sa.Select[Any] = (
    sa.select(
        chunk.c.key,
        chunk.c.document_id,
        chunk.c.version,
        document.c.collection_id,
        document_version.c.filename,
        document_version.c.title,
        document.c.external_id,
        chunk.c.ordinal,
        chunk.c.text,
        chunk.c.start_char,
        chunk.c.end_char,
        chunk.c.page_start,
        chunk.c.page_end,
        chunk.c.heading_path,
        chunk.c.token_count,
        chunk.c.table_header,
    )
    .select_from(chunk)
    .join(document, is_live())
    .join(
        document_version,
        sa.and_(document_version.c.document_id == chunk.c.document_id, document_version.c.version == chunk.c.version),
    )
)
"""Every column `to_chunk` needs, of visible chunks only; add conditions on `chunk` or `document`."""


def to_chunk(row: sa.Row[Any]) -> Chunk:
    """A chunk from a row of `CHUNKS`. Its id is `document.version.ordinal`, the same after a rebuild of the indexes.

    A document that was read before every one had a title has the words of its file's name.
    """
    return Chunk(
        key=row.key,
        id=f"{row.document_id}.{row.version}.{row.ordinal}",
        document_id=row.document_id,
        version=row.version,
        collection_id=row.collection_id,
        filename=row.filename,
        external_id=given_id(row.external_id, row.document_id),
        ordinal=row.ordinal,
        text=row.text,
        start_char=row.start_char,
        end_char=row.end_char,
        page_start=row.page_start,
        page_end=row.page_end,
        heading_path=tuple(row.heading_path),
        token_count=row.token_count,
        table_header=row.table_header,
        title=row.title or words_of_name(row.filename),
    )


_AT_ONCE = 500  # keys in one statement
_SPARSITY = 8  # a range of keys is read whole when it has at most this many times the wanted keys


# composed once: composing a statement takes longer than running it
_WANTED = chunk.c.key.in_(sa.bindparam("wanted_keys", expanding=True))
_HEADED = sa.select(chunk.c.key, chunk.c.heading_path, chunk.c.text).where(_WANTED)


def _shown(inside: sa.ColumnElement[bool]) -> sa.Select[Any]:
    # The CASE hides the condition from indexes: SQLite, without statistics, would walk all documents of the tenant.
    return CHUNKS.where(sa.case((inside, True), else_=False), _WANTED)


_TENANT = document.c.tenant_id == sa.bindparam("tenant")
_OF_TENANT = _shown(_TENANT)
_OF_COLLECTIONS = _shown(sa.and_(_TENANT, document.c.collection_id.in_(sa.bindparam("collections", expanding=True))))


class ChunkRepository:
    """Implements `ChunkStore` and `LexicalIndex`, and reads the vectors from which an index is built.

    Example:
        >>> chunks = ChunkRepository(database)
        >>> hits = chunks.search_text("notice period", scope=Scope(tenant_id="acme"), k=10)
        >>> chunks.chunks([key for key, _ in hits], scope=Scope(tenant_id="acme"))
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._scopes = ScopeKeys(database)
        self._headed = HeadedTexts()
        self._words = DatabaseWords(database, scopes=self._scopes)

    def keys_in(self, scope: Scope) -> KeySet:
        """Keys of the visible chunks in scope, perhaps with chunks that were deleted a moment ago."""
        return self._scopes.of(scope)

    def holds(self, scope: Scope) -> bool:
        """Whether a chunk in scope is visible, or was a moment ago."""
        return self._scopes.holds(scope)

    def visible_keys(self) -> Keys:
        """`(n,)` int64 keys of the visible chunks of all tenants, sorted ascending: the contents of a vector index."""
        return self._scopes.visible().keys

    def forget(self, keys: Keys) -> None:
        """Remove deleted chunks from the caches."""
        self._scopes.forget(keys)
        self._headed.forget(keys.tolist())
        self._words.forget()

    def chunks(self, keys: Sequence[int], *, scope: Scope) -> dict[int, Chunk]:
        """The visible chunks among `keys` that are in scope, by key; others are left out."""
        values: dict[str, Any] = {"tenant": scope.tenant_id}
        if scope.document_ids is None and scope.filter is None:
            query = _OF_TENANT if scope.collection_ids is None else _OF_COLLECTIONS
            values |= {} if scope.collection_ids is None else {"collections": list(scope.collection_ids)}
        else:
            query, values = None, {}
        with self._database.read() as connection:
            if query is None:
                query = _shown(sa.and_(*documents_in(scope, connection)))
            return {
                row.key: to_chunk(row)
                for some in _batches(keys)
                for row in connection.execute(query, {**values, "wanted_keys": some}).all()  # faster than one by one
            }

    def headed_texts(self, keys: Sequence[int]) -> dict[int, tuple[str, str]]:
        """Innermost heading (or "") and text of chunks by key, without a check of scope: for ranking only."""
        found, unknown = self._headed.of(keys)
        if unknown:
            with self._database.read() as connection:
                read = {
                    key: (heading_path[-1] if heading_path else "", text)
                    for some in _batches(unknown)
                    for key, heading_path, text in connection.execute(_HEADED, {"wanted_keys": some}).all()
                }
            self._headed.keep(read)
            found |= read
        return found

    def search_text(self, query: str, *, scope: Scope, k: int) -> list[tuple[int, float]]:
        """At most `k` (key, score) best first, scope applied inside. Any text is a valid query."""
        return self._words.search(query, scope=scope, k=k)

    def vectors(self, keys: Sequence[int], *, generation: int) -> tuple[Keys, Vectors]:
        """The keys that have a vector in `generation`, sorted, `(n,)`, and the vectors, `(n, dim)` float32."""
        query = sa.select(chunk_vector.c.key, chunk_vector.c.vector).where(chunk_vector.c.generation == generation)
        with self._database.read() as connection:
            rows = [
                (int(key), bytes(vector))
                for some in _batches(keys)
                for key, vector in connection.execute(query.where(chunk_vector.c.key.in_(some)))
            ]
        return _unpacked(sorted(rows))

    def iter_vectors(
        self, *, generation: int, keys: Keys | None = None, batch: int = 4096
    ) -> Iterator[tuple[Keys, Vectors]]:
        """The vectors in `generation` of `keys`, sorted ascending, in batches as `vectors` returns them.

        `None` means every visible chunk. Keys without a vector are left out. Each batch is its own transaction: chunks
        written meanwhile may be missing here, and are in `visible_keys` afterwards.
        """
        assert batch > 0, "a batch holds at least one vector"
        wanted = self.visible_keys() if keys is None else keys
        query = sa.select(chunk_vector.c.key, chunk_vector.c.vector).where(chunk_vector.c.generation == generation)
        for start in range(0, len(wanted), batch):
            some = wanted[start : start + batch]
            first, last = int(some[0]), int(some[-1])
            if last - first >= _SPARSITY * len(some):
                found, vectors = self.vectors(some.tolist(), generation=generation)
            else:  # the table is sorted by key: reading a range is faster than looking up each key
                between = query.where(chunk_vector.c.key.between(first, last)).order_by(chunk_vector.c.key)
                with self._database.read() as connection:
                    rows = [(int(key), bytes(vector)) for key, vector in connection.execute(between)]
                found, vectors = _unpacked(rows)
                known = np.isin(found, some, assume_unique=True)
                found, vectors = found[known], vectors[known]
            if len(found):
                yield found, vectors


def _batches(keys: Sequence[int]) -> Iterator[list[int]]:
    for start in range(0, len(keys), _AT_ONCE):
        yield [int(key) for key in keys[start : start + _AT_ONCE]]


def _unpacked(rows: Sequence[tuple[int, bytes]]) -> tuple[Keys, Vectors]:
    keys = np.array([key for key, _ in rows], dtype=np.int64)
    halves = np.frombuffer(b"".join(vector for _, vector in rows), dtype="<f2")
    return keys, halves.reshape(len(rows), -1 if rows else 0).astype(np.float32)
