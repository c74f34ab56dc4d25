"""What every vector store does, fed as ingestion feeds it. A store joins by a function that opens it, in `STORES`."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from app.documents.adapters.pgvector_store import PgVectorStores
from app.documents.index_ports import IndexRows
from retrieval.types import Comparison, Scope
from tests.app.documents.shelf import EQUAL, STORES, Deletion, Moment, Shelf
from tests.databases import migrated_file, postgres_database, sqlite_database

__all__ = ["migrated_file", "postgres_database", "sqlite_database"]


@pytest.fixture(params=STORES)
def shelf(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Shelf]:
    kind = "postgres" if request.param.startswith("pgvector") else "sqlite"
    shelf = Shelf(request.getfixturevalue(f"{kind}_database"), STORES[request.param], tmp_path)
    yield shelf
    shelf.store.close()
    if kind == "postgres":  # the database is the next test's too
        PgVectorStores(shelf.database, chunks=shelf.chunks).drop(shelf.store.generation)


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
