"""`footnote ingest --watch` when the folder or the server goes away, and its loop over a real folder."""

import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.cli.folder import Folder
from app.cli.mirror import Mirror
from app.cli.retries import Patience
from app.cli.tally import Tally, UploadResult
from app.cli.watch import SETTLE_S, Follower, follow, watched
from app.client import Refused
from tests.app.cli.followed import Followed
from tests.app.cli.memory_collection import MemoryCollection, Notes


def test_a_folder_that_is_empty_at_the_start_deletes_nothing(tmp_path: Path) -> None:
    before = Followed(tmp_path / "law", prefix="law")
    before.write("a", "1")
    before.start()
    after = Followed(tmp_path / "mountpoint", before.collection, prefix="law").start()

    assert after.collection.named() == {"law/a": b"1"}
    assert "are left as they are" in after.notes.lines[0]


def test_a_folder_that_goes_away_deletes_nothing(tmp_path: Path) -> None:
    followed = Followed(tmp_path / "law")
    followed.write("a", "1")
    followed.start()
    followed.root.rename(tmp_path / "elsewhere")
    followed.root.mkdir()  # the mount point, now that the share is gone
    followed.touch("a", ".")
    followed.follower.rescan()
    followed.now += 10 * SETTLE_S
    followed.follower.tick()

    assert followed.collection.named() == {"a": b"1"}
    assert "nothing is removed" in followed.notes.lines[0]


def test_a_file_the_server_does_not_take_is_offered_once_until_it_changes(tmp_path: Path) -> None:
    followed = Followed(tmp_path / "law")
    followed.write("a", "refused")
    followed.start()
    followed.follower.rescan()
    followed.settle()
    assert len(followed.collection.keys) == 1
    assert followed.mirror.tally.failures == {"a": "Not a type we read."}

    followed.write("a", "text")
    followed.touch("a")
    followed.settle()
    assert followed.collection.named() == {"a": b"text"}
    assert not followed.mirror.tally.failures


def test_a_document_deleted_on_the_server_returns_with_the_next_rescan(tmp_path: Path) -> None:
    followed = Followed(tmp_path / "law")
    followed.write("a", "1")
    followed.start()
    followed.collection.documents.clear()
    followed.follower.rescan()
    followed.settle()

    assert followed.collection.named() == {"a": b"1"}


def test_a_server_that_is_away_is_waited_for(tmp_path: Path) -> None:
    followed = Followed(tmp_path / "law")
    followed.collection.troubles = [Refused("The server cannot be reached.")] * 100
    followed.write("a", "1")
    followed.start()

    assert followed.collection.named() == {"a": b"1"}
    assert followed.now > 5000, "an hour and a half, in its own time"


def test_the_loop_rescans_at_the_start_and_when_it_is_due(tmp_path: Path) -> None:
    followed = Followed(tmp_path / "law")
    followed.write("a", "1")

    def changes() -> Iterator[set[Path]]:
        for second in range(60):
            if second == 10:
                followed.write("b", "2")  # and nobody is told
            if second == 40:
                followed.write("c", "3")
                yield {followed.root / "c"}
            followed.now += 1
            yield set()

    follow(followed.follower, followed.mirror, changes(), rescan_s=20, clock=followed.clock)

    assert followed.collection.uploads == ["a", "b", "c"]
    assert followed.mirror.tally.outcomes == {UploadResult.INDEXED: 3}


def test_a_real_folder_is_followed_through_the_systems_own_notifications(tmp_path: Path) -> None:
    collection, notes, root = MemoryCollection(), Notes(), tmp_path / "law"
    root.mkdir()
    tally, stop = Tally(), threading.Event()
    mirror = Mirror(collection, scope="c", patience=Patience(limit_s=None, say=notes.say), tally=tally, observer=notes)
    follower = Follower(Folder(root), mirror, keep_removed=False, say=notes.say, settle_s=0.05)

    def changes() -> Iterator[set[Path]]:
        for paths in watched(root.resolve()):
            if stop.is_set():
                return
            yield set(paths)

    following = threading.Thread(target=follow, args=(follower, mirror, changes()), kwargs={"rescan_s": 3600.0})
    following.start()

    def wait_for(wanted: dict[str, bytes]) -> None:
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline and collection.named() != wanted:
            time.sleep(0.05)
        assert collection.named() == wanted

    try:
        (root / "a").write_text("1")
        wait_for({"a": b"1"})
        (root / "deep").mkdir()
        (root / "deep" / "b").write_text("2")
        wait_for({"a": b"1", "deep/b": b"2"})
        (root / "a").write_text("changed")
        (root / "deep" / "b").rename(root / "b")
        wait_for({"a": b"changed", "b": b"2"})
        (root / "a").unlink()
        wait_for({"b": b"2"})
    finally:
        stop.set()
        following.join(timeout=30)
    assert not following.is_alive()


@pytest.mark.parametrize("status", [401, 404])
def test_a_server_that_wants_nothing_more_ends_the_following(tmp_path: Path, status: int) -> None:
    followed = Followed(tmp_path / "law")
    followed.write("a", "1")
    followed.collection.troubles = [Refused("No.", status=status)]

    def changes() -> Iterator[set[Path]]:
        while True:
            followed.now += 1
            yield set()

    with pytest.raises(Refused):
        follow(followed.follower, followed.mirror, changes(), rescan_s=300, clock=followed.clock)
