"""A library with a vector store under test, fed as ingestion feeds it, and the stores: one joins in `STORES`."""

from collections.abc import Callable, Mapping
from contextlib import suppress
from enum import Enum, IntEnum
from pathlib import Path

import numpy as np
import sqlalchemy as sa

from app.db.chunks import ChunkRepository
from app.db.dialect import require_pgvector
from app.db.publishing import CommitResult, Version
from app.db.removal import FollowRemoval, Removal
from app.db.session import Database
from app.documents.adapters.faiss_vectors import FaissVectors
from app.documents.adapters.pgvector_store import PgVectors
from app.documents.adapters.word_index import WordIndex
from app.documents.index_ports import Differences, IndexRows, VectorStore
from app.documents.indexes import Indexes
from app.types import Document
from retrieval.index_file import IndexPlan
from retrieval.ports import Keys, Vectors
from retrieval.types import Comparison, Scope
from tests.app.db.samples import EMBEDDER, Library, extraction_of

EQUAL = Differences()

Open = Callable[[Path, int, ChunkRepository, Database], VectorStore]


def faiss_with(plan: IndexPlan) -> Open:
    def opened(folder: Path, generation: int, chunks: ChunkRepository, _: Database) -> VectorStore:
        store = FaissVectors(folder / "index", embedder=EMBEDDER, generation=generation, chunks=chunks, plan=plan)
        store.settle()
        return store

    return opened


def pgvector_with(*, exact_up_to: int) -> Open:
    def opened(_: Path, generation: int, chunks: ChunkRepository, database: Database) -> VectorStore:
        with database.write() as connection:
            require_pgvector(connection)
        return PgVectors(
            database, embedder=EMBEDDER, generation=generation, chunks=chunks, exact_up_to=exact_up_to, partitions=2
        )

    return opened


STORES: Mapping[str, Open] = {
    "faiss, flat": faiss_with(IndexPlan()),
    "faiss, inverted": faiss_with(IndexPlan(inverted_from=64, flat_below=32)),
    "pgvector, exact": pgvector_with(exact_up_to=100_000),
    "pgvector, by its index": pgvector_with(exact_up_to=32),
}
"""Opens a store in a folder for a generation, equal to what SQL shows then."""


class Moment(IntEnum):
    """The moments of a change, after each of which a process can die."""

    STAGED = 1
    COMMITTED = 2
    FORGOTTEN = 3
    PUBLISHED = 4


class Deletion(Enum):
    """The ways to delete a document."""

    DOCUMENT = "a document"
    MATCHING = "all with its metadata"
    COLLECTION = "its collection"


class Died(Exception):
    """The process is gone inside of a transaction, which is rolled back."""


class Shelf:
    """A library with a vector store under test, which is told of every change as an ingestion tells it."""

    def __init__(self, database: Database, open_store: Open, folder: Path) -> None:
        self.database, self._open, self._folder = database, open_store, folder
        self.library = Library(database)
        self._random = np.random.default_rng(7)
        self.open()

    def open(self) -> None:
        """Open the store, or open it again as after a process died."""
        self.chunks = ChunkRepository(self.database)
        words = WordIndex(self._folder / "lexical", database=self.database, chunks=self.chunks, engine="sql")
        self.store = self._open(self._folder, self.library.generation, self.chunks, self.database)
        self.indexes = Indexes(self.store, words)

    def unit(self, count: int) -> Vectors:
        rows = self._random.standard_normal((count, EMBEDDER.dim)).astype(np.float32)
        unit: Vectors = rows / np.linalg.norm(rows, axis=1, keepdims=True)
        return unit

    def put(
        self,
        count: int,
        *,
        tenant_id: str = "t1",
        dies_after: Moment = Moment.PUBLISHED,
        **upload: object,
    ) -> Document:
        """Ingest a document of `count` chunks with random vectors, up to a moment."""
        library = Library(self.database, tenant_id=tenant_id)
        texts, vectors = [f"passage {number}" for number in range(count)], self.unit(count)
        document = library.upload(f"{self._random.integers(1 << 62)}", **upload)  # type: ignore[arg-type]
        extraction, passages = extraction_of(texts)
        job = library.claim()

        rows = IndexRows(
            keys=library.jobs.take_keys({job: count})[job],
            vectors=vectors,
            tenant_id=tenant_id,
            collection_id=document.collection_id,
            document_id=document.id,
            version=job.version,
            texts=texts,
        )

        def follow(connection: sa.Connection, keys: Keys, removed: Keys) -> None:
            assert keys.tolist() == rows.keys.tolist(), "those that were staged"
            self.indexes.write_in(connection, rows, removed=removed)

        self.indexes.stage([rows])
        if dies_after >= Moment.COMMITTED:
            version = Version(
                job=job,
                extraction=extraction,
                passages=passages,
                vectors=vectors,
                generation=library.generation,
                embedding_tokens=count,
                follow=follow,
            )
            (result,) = library.jobs.commit_all([version])
            self._after(result, rows, dies_after)
        return document

    def _after(self, result: CommitResult, rows: IndexRows, dies_after: Moment) -> None:
        if dies_after >= Moment.FORGOTTEN:
            self.indexes.forget(result.removed_keys)
        if dies_after >= Moment.PUBLISHED:
            self.indexes.publish([rows])

    def delete(
        self, document: Document, *, by: Deletion = Deletion.DOCUMENT, dies_after: Moment = Moment.FORGOTTEN
    ) -> None:
        """Delete a document of t1 by one of the ways, up to a moment; STAGED: its transaction is rolled back."""

        def follow(connection: sa.Connection, keys: Keys) -> None:
            self.indexes.remove_in(connection, keys)
            if dies_after < Moment.COMMITTED:
                raise Died

        with suppress(Died):
            removal = self._removed(document, by, follow)
            if dies_after >= Moment.FORGOTTEN:
                self.indexes.forget(removal.keys)

    def _removed(self, document: Document, by: Deletion, follow: FollowRemoval) -> Removal:
        documents, collections = self.library.documents, self.library.collections
        match by:
            case Deletion.DOCUMENT:
                return documents.delete(document.id, tenant_id="t1", follow=follow)
            case Deletion.MATCHING:
                mine = Comparison("matter", "$eq", "closed")
                return documents.delete_matching(
                    mine, tenant_id="t1", created_until=document.created_at, limit=9, follow=follow
                )[0]
            case Deletion.COLLECTION:
                return collections.delete(document.collection_id, tenant_id="t1", force=True, follow=follow)

    def exact(self, vector: Vectors, scope: Scope, k: int) -> list[tuple[int, float]]:
        """The nearest by SQL alone."""
        keys, vectors = self.chunks.vectors(self.chunks.keys_in(scope).tolist(), generation=self.library.generation)
        scores = vectors @ vector
        order = np.lexsort((keys, -scores))[:k]
        return [(int(keys[place]), float(scores[place])) for place in order]

    def found(self, vector: Vectors, scope: Scope, k: int) -> list[tuple[int, float]]:
        """What the store finds, in order and each key once."""
        found = self.store.search_vector(vector, scope=scope, k=k)
        assert len(dict(found)) == len(found) <= k
        assert found == sorted(found, key=lambda hit: (-hit[1], hit[0]))
        return found

    def repaired(self) -> Differences:
        """What a repair finds."""
        return self.indexes.repair(pause=lambda _: None)

    def told(self) -> Differences:
        """How the store differs from SQL."""
        return self.indexes.repair(only_tell=True, pause=lambda _: None)
