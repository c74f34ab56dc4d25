"""app.documents.files: an original is named by a row, or on its way, or deleted."""

from pathlib import Path

import pytest

from app.db.originals import OriginalRepository
from app.db.presence import OwnProcess
from app.db.session import Database
from app.documents.ports import new_object_name
from app.documents.spool import Spooled
from app.errors import StorageFull, StoreUnavailable
from app.ids import new_id
from tests.app.db.samples import Library
from tests.databases import database, migrated_file, postgres_database, sqlite_database
from tests.originals import files_in, held, path_of

__all__ = ["database", "migrated_file", "postgres_database", "sqlite_database"]


class Shelf:
    """An installation's rows and files."""

    def __init__(self, database: Database, folder: Path, *, boot_id: str = "boot-1") -> None:
        self.library = Library(database)
        self.rows = OriginalRepository(database, OwnProcess.alone(boot_id))
        self.files = files_in(folder, database, boot_id=boot_id)

    def spooled(self, content: bytes = b"bytes") -> Spooled:
        return self.files.spool.receive([content], name=new_id("in"), limit=len(content))

    def store(self, content: str = "text", **fields: str) -> str:
        """Upload a document; its original's name."""
        name = new_object_name()
        with self.files.put(self.spooled(content.encode()), name=name):
            self.library.upload(content, original=name, **fields)  # type: ignore[arg-type]
        return name


@pytest.fixture
def shelf(database: Database, tmp_path: Path) -> Shelf:
    return Shelf(database, tmp_path)


def test_an_original_that_a_row_names_stays_and_its_upload_is_over(shelf: Shelf) -> None:
    name = shelf.store()

    assert held(shelf.files) == {name} == shelf.rows.named()
    assert shelf.rows.under_way() == set()
    assert shelf.files.recover() == 0
    assert held(shelf.files) == {name}


def test_it_is_stored_and_noted_before_the_rows_are(shelf: Shelf) -> None:
    name = new_object_name()

    with shelf.files.put(shelf.spooled(b"abc"), name=name):
        assert shelf.files.store.size(name) == 3
        assert shelf.rows.under_way() == {name}


def test_one_that_no_row_names_at_the_end_is_deleted(shelf: Shelf) -> None:
    with shelf.files.put(shelf.spooled(), name=new_object_name()):
        pass  # another upload of the same bytes was faster

    with pytest.raises(ValueError, match="refused"), shelf.files.put(shelf.spooled(), name=new_object_name()):
        raise ValueError("refused")

    assert held(shelf.files) == set()
    assert shelf.rows.under_way() == set()


def test_one_whose_commit_is_not_known_to_have_happened_stays(shelf: Shelf) -> None:
    name = new_object_name()

    def commit() -> None:
        shelf.library.upload("text", original=name)
        raise StoreUnavailable("The connection was lost while it was committed.")

    with pytest.raises(StoreUnavailable), shelf.files.put(shelf.spooled(b"text"), name=name):
        commit()

    assert held(shelf.files) == {name}
    assert shelf.rows.under_way() == set()


def test_a_store_that_refuses_leaves_nothing_noted(shelf: Shelf, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise StorageFull("The disk has no room for this.")

    monkeypatch.setattr(shelf.files.store, "put", full)
    with pytest.raises(StorageFull), shelf.files.put(shelf.spooled(), name=new_object_name()):
        pytest.fail("nothing was stored")

    assert shelf.rows.under_way() == set()


def test_the_next_process_deletes_what_a_dead_one_was_putting_and_what_it_had_spooled(
    shelf: Shelf, database: Database, tmp_path: Path
) -> None:
    kept, stray = shelf.store(), new_object_name()
    shelf.rows.begin(stray)
    shelf.files.store.put(stray, shelf.spooled())
    left = shelf.spooled()

    after = Shelf(database, tmp_path, boot_id="boot-2")

    assert after.rows.abandoned() == (stray,)
    assert after.files.recover() == 1
    assert held(after.files) == {kept}
    assert not left.path.exists()
    assert after.rows.abandoned() == ()


def test_the_next_process_deletes_what_a_dead_one_was_deleting(
    shelf: Shelf, database: Database, tmp_path: Path
) -> None:
    name = shelf.store()
    document = shelf.library.documents.list(tenant_id="t1", limit=1)[0][0]
    removal = shelf.library.documents.delete(document.id, tenant_id="t1")
    assert removal.originals == (name,)
    assert held(shelf.files) == {name}, "it dies before it deletes the original"

    assert Shelf(database, tmp_path, boot_id="boot-2").files.recover() == 1
    assert held(shelf.files) == set()


def test_what_the_store_did_not_delete_is_deleted_at_the_next_start(
    shelf: Shelf, database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = shelf.store()
    document = shelf.library.documents.list(tenant_id="t1", limit=1)[0][0]
    removal = shelf.library.documents.delete(document.id, tenant_id="t1")

    def refuse(_: str) -> None:
        raise StoreUnavailable("The disk does not delete an original.")

    with monkeypatch.context() as patch:
        patch.setattr(shelf.files.store, "delete", refuse)
        shelf.files.drop(removal.originals)
    assert held(shelf.files) == {name} == shelf.files.unnamed(float("inf"))

    assert Shelf(database, tmp_path, boot_id="boot-2").files.recover() == 1
    assert held(shelf.files) == set()


def test_an_original_goes_with_the_last_row_that_names_it(shelf: Shelf) -> None:
    shared = shelf.store("the same", external_id="x")
    other = shelf.library.upload("the same", external_id="y", original=shared)
    first = next(each for each in shelf.library.documents.list(tenant_id="t1", limit=9)[0] if each.id != other.id)

    assert shelf.library.documents.delete(first.id, tenant_id="t1").originals == ()
    assert path_of(shelf.files, other.id, 1).read_bytes() == b"the same"
    assert shelf.library.documents.delete(other.id, tenant_id="t1").originals == (shared,)


def test_the_store_is_never_used_while_the_database_is_written(
    sqlite_database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shelf = Shelf(sqlite_database, tmp_path)
    store, used = shelf.files.store, []

    class Guarded:
        def __getattr__(self, name: str) -> object:
            with sqlite_database.write():  # fails inside another transaction of this thread
                used.append(name)
            return getattr(store, name)

    monkeypatch.setattr(shelf.files, "store", Guarded())
    shelf.store()
    document = shelf.library.documents.list(tenant_id="t1", limit=1)[0][0]
    shelf.files.drop(shelf.library.documents.delete(document.id, tenant_id="t1").originals)

    assert used == ["put", "delete"]
