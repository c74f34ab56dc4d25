"""app.db.scopes remembers scopes and never lacks what a commit made visible."""

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import numpy as np
import pytest
import sqlalchemy as sa

from app.db.chunks import ChunkRepository
from app.db.scopes import ScopeKeys
from app.db.session import Database
from retrieval.types import Comparison, Scope
from tests.app.db.samples import Library


class SlowFirstRead(Database):
    """The reads of another database; the first one has read all it wants, but ends only once `gate` is set."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._began = False
        self.held_back = threading.Event()
        self.gate = threading.Event()

    @contextmanager
    def read(self) -> Iterator[sa.Connection]:
        first, self._began = not self._began, True
        with self._database.read() as connection:
            yield connection
            if first:
                self.held_back.set()
                self.gate.wait(timeout=20)


@pytest.fixture
def library(database: Database) -> Library:
    return Library(database)


def keys_of(library: Library, document_id: str) -> list[int]:
    return ScopeKeys(library.database).of(Scope("t1", document_ids=(document_id,))).tolist()


def test_the_same_scope_is_the_same_set_until_something_is_committed(library: Library) -> None:
    library.index("one", "two")
    scopes = ScopeKeys(library.database)
    first = scopes.of(Scope("t1"))

    library.upload("waiting")
    assert scopes.of(Scope("t1")) is first
    library.index("three")
    assert scopes.of(Scope("t1")).tolist() == [*first.tolist(), first.tolist()[-1] + 1]


def test_a_commit_elsewhere_changes_nothing_here(library: Library) -> None:
    library.index("one", "two")
    other = library.collections.create("t1", "other").id
    scopes = ScopeKeys(library.database)
    here, there = Scope("t1", collection_ids=(library.collection_id,)), Scope("t1", collection_ids=(other,))
    before = scopes.of(here)
    assert len(scopes.of(there)) == 0

    added = library.index("three", collection_id=other)
    Library(library.database, tenant_id="t2").index("a stranger's")

    assert scopes.of(here) is before
    assert scopes.of(there).tolist() == keys_of(library, added.id)
    assert scopes.of(Scope("t1")).tolist() == [*before.tolist(), *keys_of(library, added.id)]


def test_after_every_step_a_remembered_scope_holds_what_a_fresh_one_does(library: Library) -> None:
    other = library.collections.create("t1", "other").id
    chunks = ChunkRepository(library.database)
    scopes = [
        Scope("t1"),
        Scope("t1", collection_ids=(other,)),
        Scope("t1", collection_ids=(other, library.collection_id)),
        Scope("t1", collection_ids=()),
        Scope("t2"),
    ]

    def check() -> None:
        for scope in scopes:
            assert chunks.keys_in(scope) == ScopeKeys(library.database).of(scope), scope

    check()
    library.index("one", "two", external_id="x")
    check()
    gone = library.index("three", collection_id=other)
    check()
    library.upload("next", external_id="x")
    replaced = library.commit(library.claim(), ["four", "five", "six"])
    chunks.forget(replaced.removed_keys)
    check()
    removed = keys_of(library, gone.id)
    library.documents.delete(gone.id, tenant_id="t1")
    chunks.forget(np.array(removed))
    check()
    library.index()
    Library(library.database, tenant_id="t2").index("elsewhere")
    check()


def test_a_scope_holds_chunks_exactly_where_it_has_keys(library: Library) -> None:
    other = library.collections.create("t1", "other").id
    chunks = ChunkRepository(library.database)
    year = Comparison("year", "$gte", 2024)

    def held() -> dict[str, bool]:
        scopes = {
            "tenant": Scope("t1"),
            "collection": Scope("t1", collection_ids=(other,)),
            "no collection": Scope("t1", collection_ids=()),
            "filter": Scope("t1", filter=year),
            "stranger": Scope("t2"),
            "no document": Scope("t1", document_ids=()),
        }
        found = {name: chunks.holds(scope) for name, scope in scopes.items()}
        assert found == {name: len(chunks.keys_in(scope)) > 0 for name, scope in scopes.items()}
        return found

    nothing = dict.fromkeys(held(), False)
    assert held() == nothing
    library.index("one", metadata={"year": 2020})
    assert held() == {**nothing, "tenant": True}
    library.index(collection_id=other, metadata={"year": 2024})
    assert held() == {**nothing, "tenant": True}, "a document without chunks"
    gone = library.index("two", collection_id=other, metadata={"year": 2024})
    assert held() == {**nothing, "tenant": True, "collection": True, "filter": True}
    assert chunks.holds(Scope("t1", document_ids=(gone.id,)))
    chunks.forget(library.documents.delete(gone.id, tenant_id="t1").keys)
    assert held() == {**nothing, "tenant": True}
    assert not chunks.holds(Scope("t1", document_ids=(gone.id,)))


def test_a_deleted_documents_keys_may_stay_but_show_nothing(library: Library) -> None:
    kept, gone = library.index("kept"), library.index("gone")
    chunks = ChunkRepository(library.database)
    its_keys = keys_of(library, gone.id)
    chunks.keys_in(Scope("t1"))
    library.documents.delete(gone.id, tenant_id="t1")

    stale = chunks.keys_in(Scope("t1")).tolist()

    assert set(stale) - set(its_keys) == set(keys_of(library, kept.id))
    assert chunks.chunks(its_keys, scope=Scope("t1")) == {}
    chunks.forget(np.array(its_keys))
    assert chunks.keys_in(Scope("t1")).tolist() == keys_of(library, kept.id)


def test_a_search_that_reads_while_a_document_is_committed_hides_it_from_no_later_one(library: Library) -> None:
    """What an earlier moment said never takes the place of a later one."""
    library.index("one")
    slow = SlowFirstRead(library.database)
    scopes = ScopeKeys(slow)
    with ThreadPoolExecutor(1) as pool:
        earlier = pool.submit(scopes.of, Scope("t1"))
        assert slow.held_back.wait(timeout=20)
        library.index("two")
        both = scopes.of(Scope("t1"))
        slow.gate.set()
        assert len(earlier.result(timeout=20)) == 1

    assert scopes.of(Scope("t1")) is both
    assert len(both) == 2


def test_scopes_with_documents_or_a_filter_are_asked_of_sql_and_not_remembered(library: Library) -> None:
    document = library.index("one", metadata={"year": 2024})
    library.index("two")
    scopes = ScopeKeys(library.database)

    assert len(scopes.of(Scope("t1", document_ids=(document.id,)))) == 1
    assert len(scopes.of(Scope("t1", filter=Comparison("year", "$eq", 2024)))) == 1
    assert scopes.held() == 0


def test_memory_is_bounded_and_the_scope_unused_longest_goes_first(library: Library) -> None:
    library.index("one", "two", "three")
    Library(library.database, tenant_id="t2").index("four", "five")
    Library(library.database, tenant_id="t3").index("six", "seven")
    scopes = ScopeKeys(library.database, most_keys=5)
    first, second = scopes.of(Scope("t1")), scopes.of(Scope("t2"))
    assert scopes.of(Scope("t1")) is first

    scopes.of(Scope("t3"))

    assert scopes.held() == 5
    assert scopes.of(Scope("t1")) is first
    assert scopes.of(Scope("t2")) is not second
    assert ScopeKeys(library.database, most_keys=1).of(Scope("t1")) == first


def test_a_scope_with_more_keys_than_are_held_takes_no_other_scopes_place(library: Library) -> None:
    library.index("one")
    Library(library.database, tenant_id="t2").index("two", "three", "four")
    scopes = ScopeKeys(library.database, most_keys=2)
    small, large = scopes.of(Scope("t1")), scopes.of(Scope("t2"))

    assert scopes.of(Scope("t1")) is small
    assert scopes.of(Scope("t2")) == large
    assert scopes.held() == 1


def test_forgetting_keys_leaves_the_order_in_which_scopes_were_used(library: Library) -> None:
    gone = library.index("one", "two")
    Library(library.database, tenant_id="t2").index("three", "four")
    Library(library.database, tenant_id="t3").index("five", "six")
    scopes = ScopeKeys(library.database, most_keys=4)
    scopes.of(Scope("t1"))
    second = scopes.of(Scope("t2"))
    scopes.of(Scope("t1"))

    scopes.forget(np.array(keys_of(library, gone.id)[:1]))
    assert scopes.held() == 3
    scopes.of(Scope("t3"))

    assert scopes.held() == 3
    assert len(scopes.of(Scope("t1"))) == 1, "it was used after the other, which made room"
    assert scopes.of(Scope("t2")) is not second
