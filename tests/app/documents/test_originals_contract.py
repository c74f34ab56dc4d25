"""What every store of originals does. A store joins by a function that makes an empty one, in `STORES`."""

import hashlib
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from obstore.store import LocalStore

from app.documents.adapters.folder_originals import FolderOriginals
from app.documents.adapters.local_copies import LocalCopies
from app.documents.adapters.object_originals import ObjectOriginals
from app.documents.ports import Originals, new_object_name
from app.documents.spool import Spool, Spooled
from app.ids import new_id
from tests.bucket import empty_bucket

MiB = 1 << 20


def beside(folder: Path) -> Path:
    (folder.parent / "apart").mkdir()
    return folder.parent / "apart"


def copies(folder: Path) -> LocalCopies:
    return LocalCopies(folder / "incoming", most_bytes=MiB)


STORES: dict[str, Callable[[Path], Originals]] = {
    "folder": FolderOriginals,
    "folder apart": lambda folder: FolderOriginals(beside(folder), apart=True),
    "objects in a folder": lambda folder: ObjectOriginals(LocalStore(beside(folder)), copies=copies(folder)),
    "bucket": lambda folder: ObjectOriginals(empty_bucket().store(), copies=copies(folder)),
}
"""Makes an empty store, given the folder of a spool."""


class Store:
    """A store under test, and the spool beside it."""

    def __init__(self, kind: str, folder: Path) -> None:
        self.spool = Spool(folder)
        self.originals = STORES[kind](folder)

    def spooled(self, content: bytes) -> Spooled:
        return self.spool.receive([content], name=new_id("in"), limit=len(content))

    def put(self, content: bytes) -> str:
        name = new_object_name()
        self.originals.put(name, self.spooled(content))
        return name

    def read(self, name: str, **part: int) -> bytes:
        with self.originals.open(name, **part) as blocks:
            return b"".join(blocks)


@pytest.fixture(params=STORES)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    return Store(request.param, tmp_path / "files")


@pytest.fixture(scope="module", params=STORES)
def filled(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Store, str, bytes]:
    """A store with an original of more than two blocks."""
    store = Store(request.param, tmp_path_factory.mktemp("filled") / "files")
    content = bytes(range(251)) * (2 * MiB // 250)
    return store, store.put(content), content


@pytest.mark.parametrize("content", [b"", b"a", b"ab" * MiB, b"abc" * (3 * MiB)], ids=len)
def test_what_was_put_is_read_whole(store: Store, content: bytes) -> None:
    name = store.put(content)

    assert store.originals.size(name) == len(content)
    assert store.read(name) == content
    with store.originals.local_copy(name) as path:
        assert path.read_bytes() == content


@given(data=st.data())
def test_any_part_is_read(filled: tuple[Store, str, bytes], data: st.DataObject) -> None:
    store, name, content = filled
    start = data.draw(st.integers(0, len(content) + 9))
    end = data.draw(st.integers(0, len(content) + 9) | st.none())

    part = store.read(name, start=start, **({} if end is None else {"end": end}))

    assert part == content[start : len(content) if end is None else max(start, end)]


@pytest.mark.parametrize("second", [b"the second", b"second" * (2 * MiB)], ids=len)
def test_no_original_is_ever_written_over(store: Store, second: bytes) -> None:
    name = store.put(b"the first")

    with pytest.raises(FileExistsError):
        store.originals.put(name, store.spooled(second))
    assert store.read(name) == b"the first"


def test_names_from_before_can_be_put_read_and_deleted(store: Store) -> None:
    for name in ("doc_1/1", "doc_1/2", "doc_2/0"):
        store.originals.put(name, store.spooled(name.encode()))
    store.originals.delete("doc_1/1")

    assert store.originals.size("doc_1/1") is None
    assert [store.read(name) for name in ("doc_1/2", "doc_2/0")] == [b"doc_1/2", b"doc_2/0"]


def test_what_is_not_there_is_told_by_every_way_to_read_it(store: Store) -> None:
    for name in (new_object_name(), "doc_1/1"):
        assert store.originals.size(name) is None
        with pytest.raises(FileNotFoundError), store.originals.open(name):
            pass
        with pytest.raises(FileNotFoundError), store.originals.local_copy(name):
            pass


def test_deleting_twice_is_harmless_and_leaves_the_others(store: Store) -> None:
    kept, gone, also = store.put(b"kept"), store.put(b"gone"), store.put(b"gone, too")

    for _ in range(2):
        store.originals.delete(gone, also)

    assert store.originals.size(gone) is store.originals.size(also) is None
    assert store.read(kept) == b"kept"


def test_a_reader_is_not_cut_off_by_a_deletion(store: Store) -> None:
    content = b"ab" * (2 * MiB)
    name = store.put(content)

    with store.originals.open(name) as blocks:
        first = next(blocks)
        store.originals.delete(name)
        rest = b"".join(blocks)

    assert first + rest == content


@pytest.mark.parametrize(
    "name", ["../secret", "/etc/passwd", "incoming", "incoming/in_1", "doc_1/../x", "", "doc_1/01"]
)
def test_no_name_leads_out_of_the_store(store: Store, name: str) -> None:
    with pytest.raises(AssertionError):
        store.originals.size(name)


def test_many_at_once_are_all_there(store: Store) -> None:
    names: dict[str, str] = {}

    def work(number: int) -> None:
        for place in range(8):
            content = f"{number}-{place}".encode()
            name = store.put(content)
            names[name] = hashlib.sha256(content).hexdigest()
            if place % 2:
                store.originals.delete(name)
                del names[name]

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(names) == 32
    assert all(hashlib.sha256(store.read(name)).hexdigest() == digest for name, digest in names.items())
