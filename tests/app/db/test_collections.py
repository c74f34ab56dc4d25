"""Collections are named once a tenant, and go only when empty or by force."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from app.db.chunks import ChunkRepository
from app.db.collections import CollectionRepository
from app.db.session import Database
from app.errors import Conflict, InvalidRequest, NotFound
from retrieval.types import Scope
from tests.app.db.samples import Library


@pytest.fixture
def collections(database: Database) -> CollectionRepository:
    return CollectionRepository(database)


def test_a_new_collection_is_empty_and_can_be_read(collections: CollectionRepository) -> None:
    created = collections.create("t1", "reports", metadata={"team": "a"})

    assert (created.name, created.metadata, created.documents) == ("reports", {"team": "a"}, 0)
    assert collections.get(created.id, tenant_id="t1") == created
    assert collections.list("t1") == (created,)


def test_a_name_is_taken_once_a_tenant(collections: CollectionRepository) -> None:
    collections.create("t1", "reports")

    with pytest.raises(Conflict):
        collections.create("t1", "reports")
    assert collections.create("t2", "reports").tenant_id == "t2"


def test_everyone_gets_the_same_default(collections: CollectionRepository) -> None:
    with ThreadPoolExecutor(8) as pool:
        ids = {found.id for found in pool.map(collections.default, ["t1"] * 8)}

    assert len(ids) == 1
    assert collections.default("t2").id not in ids


def test_documents_are_counted(database: Database) -> None:
    library = Library(database)
    library.upload("one")
    library.upload("two")

    assert library.collections.get(library.collection_id, tenant_id="t1").documents == 2


def test_others_collections_do_not_exist(collections: CollectionRepository) -> None:
    mine = collections.create("t1", "reports")

    for who in ({"tenant_id": "t2"}, {"tenant_id": "t1", "allowed": ("col_other",)}):
        for call in (collections.get, collections.update, collections.delete):
            with pytest.raises(NotFound):
                call(mine.id, **who)
    assert collections.list("t2") == ()
    assert collections.list("t1", allowed=("col_other",)) == ()
    assert collections.list("t1", allowed=(mine.id,)) == (mine,)


def test_name_and_metadata_change_apart(collections: CollectionRepository) -> None:
    created = collections.create("t1", "a", metadata={"x": 1})
    collections.create("t1", "taken")

    assert collections.update(created.id, tenant_id="t1") == created
    assert collections.update(created.id, tenant_id="t1", name="b").metadata == {"x": 1}
    assert collections.update(created.id, tenant_id="t1", metadata={}).name == "b"
    with pytest.raises(Conflict):
        collections.update(created.id, tenant_id="t1", name="taken")
    with pytest.raises(InvalidRequest):
        collections.update(created.id, tenant_id="t1", name="a\0b")
    assert collections.get(created.id, tenant_id="t1").name == "b"


def test_an_empty_collection_can_be_deleted(collections: CollectionRepository) -> None:
    created = collections.create("t1", "a")

    removal = collections.delete(created.id, tenant_id="t1")

    assert (removal.originals, removal.keys.tolist()) == ((), [])
    with pytest.raises(NotFound):
        collections.get(created.id, tenant_id="t1")


def test_a_collection_with_documents_goes_by_force_and_takes_them_along(database: Database) -> None:
    library = Library(database)
    library.index("one", "two")
    library.upload("waiting")
    elsewhere = library.collections.create("t1", "other").id
    kept = library.upload("kept", collection_id=elsewhere)
    chunks = ChunkRepository(database)
    keys = chunks.keys_in(Scope("t1")).tolist()

    with pytest.raises(Conflict, match="2 documents"):
        library.collections.delete(library.collection_id, tenant_id="t1")
    removal = library.collections.delete(library.collection_id, tenant_id="t1", force=True)

    assert (removal.deleted.chunks, removal.deleted.vectors, removal.keys.tolist()) == (2, 2, keys)
    assert (removal.documents, len(removal.originals)) == (2, 2)
    assert [each.id for each in library.documents.list(tenant_id="t1", limit=9)[0]] == [kept.id]
    assert library.jobs.queued() == 1


def test_the_instructions_of_the_one_collection_in_a_scope_are_read(collections: CollectionRepository) -> None:
    brief = collections.create("t1", "reports", instructions="Be brief.").id
    other = collections.create("t1", "letters").id
    collections.update(other, tenant_id="t1", instructions="Quote names.")

    def read(*ids: str, tenant_id: str = "t1") -> str:
        return collections.instructions(Scope(tenant_id=tenant_id, collection_ids=ids or None))

    assert (read(brief), read(other)) == ("Be brief.", "Quote names.")
    assert (read(), read(brief, other), read("col_none"), read(brief, tenant_id="t2")) == ("", "", "", "")
    collections.update(brief, tenant_id="t1", name="papers")
    assert collections.get(brief, tenant_id="t1").instructions == "Be brief."
