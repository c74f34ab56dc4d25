"""app.documents.adapters.folder_originals: what only a folder does."""

import errno
import time
from pathlib import Path

import pytest

from app.documents.adapters.folder_originals import FolderOriginals
from app.documents.ports import new_object_name
from app.documents.spool import Spool, Spooled
from app.errors import StorageFull, StoreUnavailable


@pytest.fixture
def spooled(tmp_path: Path) -> Spooled:
    return Spool(tmp_path / "files").receive([b"abc"], name="in_1", limit=3)


@pytest.fixture
def originals(tmp_path: Path, spooled: Spooled) -> FolderOriginals:
    return FolderOriginals(tmp_path / "files")


def test_a_put_moves_the_spooled_file(originals: FolderOriginals, spooled: Spooled, tmp_path: Path) -> None:
    name = new_object_name()

    originals.put(name, spooled)

    assert not spooled.path.exists()
    assert (tmp_path / "files" / name).read_bytes() == b"abc"


@pytest.mark.parametrize(("code", "error"), [(errno.ENOSPC, StorageFull), (errno.EIO, StoreUnavailable)])
def test_a_put_that_is_not_durable_leaves_nothing(spooled: Spooled, tmp_path: Path, code: int, error: type) -> None:
    def fails(_: int) -> None:
        raise OSError(code, "fails")

    with pytest.raises(error):
        FolderOriginals(tmp_path / "files", sync=fails).put(name := new_object_name(), spooled)

    assert not (tmp_path / "files" / name).exists()


def test_the_folder_of_a_document_from_before_goes_with_its_last_original(
    originals: FolderOriginals, spooled: Spooled, tmp_path: Path
) -> None:
    originals.put("doc_1/1", spooled)
    originals.delete("doc_1/1")

    assert [path.name for path in (tmp_path / "files").iterdir()] == ["incoming"]


def test_a_file_in_the_place_of_a_folder_is_no_original(originals: FolderOriginals, spooled: Spooled) -> None:
    originals.put(name := new_object_name(), spooled)

    assert originals.size(f"{name}/1") is None
    with pytest.raises(FileNotFoundError), originals.open(f"{name}/1"):
        pass


def test_a_disk_that_refuses_a_deletion_says_so(
    originals: FolderOriginals, spooled: Spooled, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = new_object_name()
    originals.put(name, spooled)

    def refuse(path: Path, **_: bool) -> None:
        raise OSError(errno.EIO, "fails")

    monkeypatch.setattr(Path, "unlink", refuse)
    with pytest.raises(StoreUnavailable):
        originals.delete(name)
    monkeypatch.undo()

    assert originals.size(name) == 3


def test_a_copy_to_another_disk_that_was_broken_off_goes_with_its_original(spooled: Spooled, tmp_path: Path) -> None:
    (folder := tmp_path / "apart").mkdir()
    originals, name = FolderOriginals(folder, apart=True), new_object_name()

    (folder / f"{name}.part").write_bytes(b"ab")  # as a kill leaves it
    assert originals.size(name) is None
    assert originals.put_before(time.time() + 1) == set()
    originals.delete(name)
    assert list(folder.iterdir()) == []

    originals.put(name, spooled)
    assert spooled.path.exists()
    assert [path.read_bytes() for path in folder.iterdir()] == [b"abc"]


@pytest.mark.parametrize(("code", "error"), [(errno.ENOSPC, StorageFull), (errno.EIO, StoreUnavailable)])
@pytest.mark.parametrize("failing", [1, 2])
def test_a_copy_to_another_disk_that_is_not_durable_leaves_nothing(
    spooled: Spooled, tmp_path: Path, code: int, error: type, failing: int
) -> None:
    synced: list[int] = []

    def fails(descriptor: int) -> None:
        synced.append(descriptor)
        if len(synced) == failing:  # the file, then its folder
            raise OSError(code, "fails")

    (folder := tmp_path / "apart").mkdir()
    with pytest.raises(error):
        FolderOriginals(folder, apart=True, sync=fails).put(new_object_name(), spooled)

    assert list(folder.iterdir()) == []


def test_it_lists_originals_of_both_ages_and_nothing_else(originals: FolderOriginals, tmp_path: Path) -> None:
    spool, before = Spool(tmp_path / "files"), time.time() - 3600
    names = {new_object_name(), "doc_1/1", "doc_1/12", "doc_2/0"}
    for name in names:
        originals.put(name, spool.receive([b"a"], name="in", limit=1))
    spool.receive([b"a"], name="in_2", limit=1)
    (tmp_path / "files" / "notes.txt").write_bytes(b"by somebody else")
    (tmp_path / "files" / "doc_1" / "x").write_bytes(b"by somebody else")

    assert originals.put_before(time.time() + 1) == names
    assert originals.put_before(before) == set()
