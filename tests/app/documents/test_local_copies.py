"""app.documents.adapters.local_copies: each original is fetched once for all who read it, and some are kept."""

import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from app.documents.adapters.local_copies import LocalCopies
from app.errors import StoreUnavailable


class Fetched:
    """Originals of 10 bytes, and the names of those that were fetched."""

    def __init__(self) -> None:
        self.names: list[str] = []

    def of(self, name: str) -> Callable[[Path], int]:
        def fetch(path: Path) -> int:
            self.names.append(name)
            return path.write_bytes(name.encode().ljust(10))

        return fetch


@pytest.fixture
def fetched() -> Fetched:
    return Fetched()


def read(copies: LocalCopies, fetched: Fetched, *names: str) -> None:
    for name in names:
        with copies.of(name, fetched.of(name)) as path:
            assert path.read_bytes().strip() == name.encode()


def test_those_read_last_are_kept_and_not_fetched_again(tmp_path: Path, fetched: Fetched) -> None:
    copies = LocalCopies(tmp_path, most_bytes=20)

    read(copies, fetched, "a", "b", "a", "c", "a", "b")

    assert fetched.names == ["a", "b", "c", "b"]
    assert len(list(tmp_path.iterdir())) == 2


def test_one_that_is_read_stays_though_it_has_no_room_and_goes_afterwards(tmp_path: Path, fetched: Fetched) -> None:
    copies = LocalCopies(tmp_path, most_bytes=5)

    with copies.of("a", fetched.of("a")) as path:
        read(copies, fetched, "b")
        assert path.read_bytes().strip() == b"a"
    assert list(tmp_path.iterdir()) == []


def test_a_deleted_original_leaves_no_copy(tmp_path: Path, fetched: Fetched) -> None:
    copies = LocalCopies(tmp_path, most_bytes=100)
    read(copies, fetched, "a", "b")

    with copies.of("b", fetched.of("b")) as path:
        copies.forget("a", "b", "unknown")
        assert [path] == list(tmp_path.iterdir())
    assert list(tmp_path.iterdir()) == []

    read(copies, fetched, "b")
    assert fetched.names == ["a", "b", "b"]


def test_one_fetch_serves_all_who_ask_at_once(tmp_path: Path, fetched: Fetched) -> None:
    copies, all_ask = LocalCopies(tmp_path, most_bytes=100), threading.Barrier(8)

    def ask() -> None:
        all_ask.wait()
        read(copies, fetched, "a")

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert fetched.names == ["a"]


def test_a_fetch_that_fails_leaves_nothing_and_is_tried_again(tmp_path: Path, fetched: Fetched) -> None:
    copies = LocalCopies(tmp_path, most_bytes=100)

    def fails(path: Path) -> int:
        path.write_bytes(b"half")
        raise StoreUnavailable("It does not answer.")

    with pytest.raises(StoreUnavailable), copies.of("a", fails):
        pass
    assert list(tmp_path.iterdir()) == []
    read(copies, fetched, "a")
