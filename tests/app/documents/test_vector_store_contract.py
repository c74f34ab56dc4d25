"""What every vector store does, fed as ingestion feeds it. A store joins by a function that opens it, in `STORES`."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from enum import Enum, IntEnum
from pathlib import Path

import numpy as np
import pytest
import sqlalchemy as sa

from app.db.chunks import ChunkRepository
from app.db.publishing import CommitResult, Version
from app.db.removal import FollowRemoval, Removal
from app.db.session import Database
from app.documents.adapters.faiss_vectors import FaissVectors
from app.documents.adapters.word_index import WordIndex
from app.documents.index_ports import Differences, IndexRows, VectorStore
from app.documents.indexes import Indexes
from app.types import Document
from retrieval.index_file import IndexPlan
from retrieval.ports import Keys, Vectors
from retrieval.types import Comparison, Scope
from tests.app.db.samples import EMBEDDER, Library, extraction_of
from tests.databases import migrated_file, sqlite_database

__all__ = ["migrated_file", "sqlite_database"]

EQUAL = Differences()

Open = Callable[[Path, int, ChunkRepository], VectorStore]


def faiss_with(plan: IndexPlan) -> Open:
    def opened(folder: Path, generation: int, chunks: ChunkRepository) -> VectorStore:
        store = FaissVectors(folder / "index", embedder=EMBEDDER, generation=generation, chunks=chunks, plan=plan)
        store.settle()
        return store

    return opened


STORES: Mapping[str, Open] = {
    "faiss, flat": faiss_with(IndexPlan()),
    "faiss, inverted": faiss_with(IndexPlan(inverted_from=64, flat_below=32)),
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
        self.store = self._open(self._folder, self.library.generation, self.chunks)
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


@pytest.fixture(params=STORES)
def shelf(request: pytest.FixtureRequest, sqlite_database: Database, tmp_path: Path) -> Iterator[Shelf]:
    shelf = Shelf(sqlite_database, STORES[request.param], tmp_path)
    yield shelf
    shelf.store.close()


def assert_exact(shelf: Shelf, scope: Scope, *, k: int) -> None:
    for vector in shelf.unit(5):
        found, exact = shelf.found(vector, scope, k), shelf.exact(vector, scope, k)
        assert [key for key, _ in found] == [key for key, _ in exact]
        assert [score for _, score in found] == pytest.approx([score for _, score in exact], abs=1e-5)


def test_a_small_scope_is_searched_exactly_beside_many_others(shelf: Shelf) -> None:
    mine = shelf.put(40)
    shelf.put(400)
    shelf.put(100, tenant_id="t2")
    shelf.open()

    assert_exact(shelf, Scope("t1", document_ids=(mine.id,)), k=10)
    assert_exact(shelf, Scope("t1", document_ids=(mine.id,)), k=99)


def test_nine_of_ten_nearest_are_found_among_many(shelf: Shelf) -> None:
    shelf.put(3000)
    shelf.open()

    hits = 0
    for vector in shelf.unit(30):
        nearest = {key for key, _ in shelf.exact(vector, Scope("t1"), 10)}
        hits += len(nearest & {key for key, _ in shelf.found(vector, Scope("t1"), 10)})
    assert hits >= 0.9 * 30 * 10


def test_nothing_outside_the_scope_is_found_and_its_chunks_all_are(shelf: Shelf) -> None:
    other = shelf.library.collections.create("t1", "Other").id
    here = shelf.put(70, metadata={"year": 2020})
    there = shelf.put(70, collection_id=other, metadata={"year": 2024})
    strangers = shelf.put(70, tenant_id="t2")

    def documents(scope: Scope) -> set[str]:
        keys = [key for vector in shelf.unit(3) for key, _ in shelf.found(vector, scope, 500)]
        everywhere = [shelf.chunks.chunks(keys, scope=Scope(tenant_id)) for tenant_id in ("t1", "t2")]
        found = [chunk for chunks in everywhere for chunk in chunks.values()]
        assert len(found) == len({*keys}) == len(shelf.chunks.keys_in(scope)), "each chunk in scope, and no other"
        return {chunk.document_id for chunk in found}

    assert documents(Scope("t1")) == {here.id, there.id}
    assert documents(Scope("t2")) == {strangers.id}
    assert documents(Scope("t1", collection_ids=(other,))) == {there.id}
    assert documents(Scope("t1", document_ids=(here.id,))) == {here.id}
    assert documents(Scope("t1", filter=Comparison("year", "$gte", 2024))) == {there.id}
    assert documents(Scope("t1", collection_ids=(other,), document_ids=(here.id,))) == set()
    assert documents(Scope("t1", document_ids=(strangers.id,))) == documents(Scope("nobody")) == set()
    assert documents(Scope("t1", collection_ids=())) == documents(Scope("t1", document_ids=())) == set()


def test_what_was_published_is_found_at_once_and_what_was_deleted_is_not(shelf: Shelf) -> None:
    kept, gone = shelf.put(50), shelf.put(50)
    (vector,) = shelf.unit(1)
    assert len(shelf.found(vector, Scope("t1"), 500)) == 100

    shelf.delete(gone)

    keys = {key for key, _ in shelf.found(vector, Scope("t1"), 500)}
    assert keys == set(shelf.chunks.keys_in(Scope("t1", document_ids=(kept.id,))).tolist())
    assert len(shelf.store) == 50
    assert shelf.told() == EQUAL


def test_a_new_version_replaces_the_one_before(shelf: Shelf) -> None:
    shelf.put(80, external_id="x")
    shelf.put(3, external_id="x")

    assert_exact(shelf, Scope("t1"), k=500)
    assert len(shelf.store) == 3
    assert shelf.told() == EQUAL


def test_keys_that_are_unknown_are_forgotten_without_an_error(shelf: Shelf) -> None:
    shelf.put(2)

    shelf.indexes.forget(np.array([10_000, 10_001], np.int64))

    assert shelf.told() == EQUAL


def test_what_is_published_twice_is_there_once(shelf: Shelf) -> None:
    shelf.put(5)
    keys, vectors = shelf.chunks.vectors(shelf.chunks.visible_keys().tolist(), generation=shelf.store.generation)
    again = IndexRows(
        keys=keys, vectors=vectors, tenant_id="t1", collection_id="", document_id="", version=1, texts=[""] * 5
    )

    shelf.indexes.publish([again])

    assert len(shelf.store) == 5
    assert_exact(shelf, Scope("t1"), k=99)


@pytest.mark.parametrize("reopened", [False, True], ids=["the same process", "a new one"])
@pytest.mark.parametrize("moment", Moment)
def test_after_a_replacement_that_died_between_two_moments_a_repair_leaves_no_difference(
    shelf: Shelf, moment: Moment, reopened: bool
) -> None:
    shelf.put(70)
    shelf.put(10, external_id="x")
    shelf.indexes.rest()
    shelf.put(20, external_id="x", dies_after=moment)
    if reopened:
        shelf.open()

    shelf.repaired()

    assert shelf.told() == EQUAL
    assert len(shelf.store) == len(shelf.chunks.visible_keys()) == 70 + (20 if moment >= Moment.COMMITTED else 10)
    assert_exact(shelf, Scope("t1"), k=7)


@pytest.mark.parametrize("reopened", [False, True], ids=["the same process", "a new one"])
@pytest.mark.parametrize("moment", [Moment.STAGED, Moment.COMMITTED, Moment.FORGOTTEN])
@pytest.mark.parametrize("by", Deletion)
def test_after_a_deletion_that_died_between_two_moments_a_repair_leaves_no_difference(
    shelf: Shelf, by: Deletion, moment: Moment, reopened: bool
) -> None:
    shelf.put(70)
    other = shelf.library.collections.create("t1", "Other").id
    gone = shelf.put(10, collection_id=other, metadata={"matter": "closed"})
    shelf.indexes.rest()
    shelf.delete(gone, by=by, dies_after=moment)
    left = 80 if moment is Moment.STAGED else 70
    (vector,) = shelf.unit(1)
    shown = shelf.chunks.chunks([key for key, _ in shelf.found(vector, Scope("t1"), 500)], scope=Scope("t1"))
    assert len(shown) == left, "SQL hides what an index still holds"
    if reopened:
        shelf.open()

    shelf.repaired()

    assert shelf.told() == EQUAL
    assert len(shelf.store) == left
    assert_exact(shelf, Scope("t1"), k=7)


def test_telling_changes_nothing(shelf: Shelf) -> None:
    shelf.put(4)
    shelf.indexes.forget(shelf.chunks.visible_keys()[:2])
    before = shelf.told()

    assert before == shelf.told()
    assert shelf.repaired() == before
    assert shelf.told() == EQUAL


def test_reconciling_makes_it_equal_at_once(shelf: Shelf) -> None:
    shelf.put(4, dies_after=Moment.COMMITTED)

    shelf.store.reconcile()

    assert shelf.told() == EQUAL
    assert len(shelf.store) == 4


def test_what_was_saved_is_equal_when_it_is_opened_again(shelf: Shelf) -> None:
    shelf.put(90)
    shelf.indexes.rest()
    shelf.store.close()
    shelf.open()

    assert shelf.told() == EQUAL
    assert len(shelf.store) == 90
    assert shelf.store.generation == shelf.library.generation
