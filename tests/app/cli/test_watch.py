"""`footnote ingest --watch` keeps documents equal to a folder, whatever happens to its files."""

import tempfile
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from app.cli.tally import UploadResult
from app.cli.watch import SETTLE_S
from app.client import Refused
from tests.app.cli.followed import Followed
from tests.app.cli.memory_collection import MemoryCollection


def test_what_is_added_changed_and_removed_happens_to_the_documents(tmp_path: Path) -> None:
    followed = Followed(tmp_path / "law")
    followed.write("a", "1")
    followed.write("deep/b", "2")
    followed.start()
    assert followed.collection.named() == {"a": b"1", "deep/b": b"2"}
    first = {document.external_id: document.id for document in followed.collection.list()}

    followed.write("a", "changed")
    followed.write("c", "3")
    (followed.root / "deep" / "b").unlink()
    followed.touch("a", "c", "deep/b")
    followed.settle()

    assert followed.collection.named() == {"a": b"changed", "c": b"3"}
    assert followed.collection.uploads == ["a", "deep/b", "a", "c"]
    assert {document.id for document in followed.collection.list()} >= {first["a"]}, "the same document, a new version"


def test_a_file_that_is_still_being_written_is_left_alone(tmp_path: Path) -> None:
    followed = Followed(tmp_path / "law").start()
    for length in range(1, 6):
        followed.write("a", "x" * length)
        followed.touch("a")
        followed.follower.tick()
        followed.now += SETTLE_S * 0.9
        followed.follower.tick()
        assert not followed.collection.uploads
    followed.settle()

    assert followed.collection.named() == {"a": b"xxxxx"}
    assert followed.collection.uploads == ["a"]


def test_a_file_that_changes_while_it_is_uploaded_is_uploaded_again(tmp_path: Path) -> None:
    class Written(MemoryCollection):
        def upload(self, path: Path, **options):
            receipt = super().upload(path, **options)
            if len(self.uploads) == 1:
                followed.write("a", "second")
            return receipt

    followed = Followed(tmp_path / "law", Written())
    followed.write("a", "first")
    followed.start()

    assert followed.collection.named() == {"a": b"second"}


def test_a_renamed_folder_is_uploaded_under_its_new_name_before_the_old_goes(tmp_path: Path) -> None:
    followed = Followed(tmp_path / "law")
    followed.write("old/a", "1")
    followed.write("old/b", "2")
    followed.start()
    (followed.root / "old").rename(followed.root / "new")
    followed.touch("old", "new")
    followed.settle()

    assert followed.collection.named() == {"new/a": b"1", "new/b": b"2"}
    assert [outcome for outcome, _ in followed.notes.outcomes][-4:].count(UploadResult.REMOVED) == 2
    assert followed.collection.uploads == ["old/a", "old/b", "new/a", "new/b"]


def test_what_happened_while_nobody_followed_is_found_at_the_start(tmp_path: Path) -> None:
    before = Followed(tmp_path / "law")
    for name in "abc":
        before.write(name, name)
    before.start()
    (tmp_path / "law" / "a").unlink()
    before.write("b", "changed")
    before.write("d", "d")
    after = Followed(tmp_path / "law", before.collection).start()

    assert after.collection.named() == {"b": b"changed", "c": b"c", "d": b"d"}
    assert after.collection.uploads == ["a", "b", "c", "b", "d"], "c was not sent again"


def test_documents_that_did_not_come_from_this_folder_are_left_alone(tmp_path: Path) -> None:
    followed = Followed(tmp_path / "law")
    followed.collection.keep(b"web", filename="w", external_id=None, folder=None)
    followed.collection.keep(b"api", filename="x", external_id="crm-17", folder=None)
    followed.collection.keep(b"other", filename="y", external_id="y", folder="tax#12345678")
    followed.write("a", "1")
    followed.start()
    (followed.root / "a").unlink()
    followed.follower.rescan()
    followed.settle()

    assert followed.collection.named() == {"crm-17": b"api", "y": b"other"}
    assert len(followed.collection.documents) == 3


def test_a_document_that_the_file_was_found_to_be_goes_with_the_file(tmp_path: Path) -> None:
    followed = Followed(tmp_path / "law")
    followed.collection.keep(b"1", filename="a", external_id="a", folder=None)
    followed.write("a", "1")
    followed.write("b", "2")
    followed.start()
    (followed.root / "a").unlink()
    followed.touch("a")
    followed.settle()

    assert followed.collection.uploads == ["b"]
    assert followed.collection.named() == {"b": b"2"}


def test_a_file_that_becomes_a_folder_makes_room_for_what_is_in_it(tmp_path: Path) -> None:
    followed = Followed(tmp_path / "law")
    path = followed.write("a", "1")
    followed.start()
    path.unlink()
    followed.write("a/b", "2")
    followed.touch("a", "a/b")
    followed.settle()

    assert followed.collection.named() == {"a/b": b"2"}
    assert followed.collection.uploads == ["a", "a/b"]


def test_removed_files_keep_their_documents_when_that_is_asked_for(tmp_path: Path) -> None:
    followed = Followed(tmp_path / "law", keep_removed=True)
    followed.write("a", "1")
    followed.write("b", "2")
    followed.start()
    (followed.root / "a").unlink()
    followed.touch("a")
    followed.follower.rescan()
    followed.settle()

    assert followed.collection.named() == {"a": b"1", "b": b"2"}


def test_the_members_of_an_archive_come_change_and_go_with_it(tmp_path: Path) -> None:
    followed = Followed(tmp_path / "law")
    followed.write("a.zip", "zip:x=1\ny=2")
    followed.start()
    assert followed.collection.named() == {"a.zip/x": b"1", "a.zip/y": b"2"}
    followed.follower.rescan()
    followed.settle()
    assert followed.collection.uploads == ["a.zip"], "a look at everything sends no archive again"
    assert followed.collection.named() == {"a.zip/x": b"1", "a.zip/y": b"2"}

    followed.write("a.zip", "zip:x=1\nz=3")
    followed.touch("a.zip")
    followed.settle()
    assert followed.collection.named() == {"a.zip/x": b"1", "a.zip/z": b"3"}

    (followed.root / "a.zip").unlink()
    followed.touch("a.zip")
    followed.settle()
    assert followed.collection.named() == {}


def test_hidden_files_change_unnoticed(tmp_path: Path) -> None:
    followed = Followed(tmp_path / "law").start()
    followed.touch(".git/index", ".git", "~$a.docx")

    assert followed.follower.idle


NAMES = st.sampled_from(["a", "b", "d/a", "d/b", "d/e/c", "z.zip", ".hidden"])


CONTENTS = st.sampled_from(["1", "2", "3\n"])


ARCHIVES = {"1": "zip:x=1", "2": "zip:x=2\ny=1", "3\n": "zip:y=1\nz=4"}


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("write"), NAMES, CONTENTS),
        st.tuples(st.just("remove"), NAMES, st.none()),
        st.tuples(st.just("rename"), NAMES, NAMES),
        st.tuples(st.sampled_from(["tick", "rescan", "restart", "poll", "away"]), st.none(), st.none()),
    ),
    max_size=25,
)


@settings(max_examples=40)
@given(steps=STEPS, told=st.lists(st.booleans(), min_size=25, max_size=25))
def test_after_any_history_the_documents_are_the_files(
    steps: list[tuple[str, str | None, str | None]], told: list[bool]
) -> None:
    with tempfile.TemporaryDirectory() as place:
        followed = Followed(Path(place) / "law", MemoryCollection(reads=2)).start()
        followed.write("always", "here")  # an emptied folder is a matter of its own
        for (step, name, other), is_told in zip(steps, told, strict=False):
            match step, name, other:
                case "write", str(), str():
                    followed.write(name, ARCHIVES[other] if name == "z.zip" else other)
                case "remove", str(), None:
                    (followed.root / name).unlink(missing_ok=True)
                case "rename", str(), str():
                    if (followed.root / name).exists() and (name == "z.zip") == (other == "z.zip"):
                        (followed.root / other).parent.mkdir(parents=True, exist_ok=True)
                        (followed.root / name).rename(followed.root / other)
                case "tick", _, _:
                    followed.follower.tick()
                    followed.now += SETTLE_S * 0.7
                case "rescan", _, _:
                    followed.follower.rescan()
                case "poll", _, _:
                    followed.mirror.poll()
                case "away", _, _:
                    followed.collection.troubles.append(Refused("Full.", status=503, retry_after_s=1))
                case "restart", _, _:
                    written = followed.writes
                    followed = Followed(followed.root, followed.collection)
                    followed.writes = written
                    followed.follower.rescan()
            if is_told:
                followed.touch(*(changed for changed in (name, other) if changed in {"a", "b", "d/a", "d/b", "d/e/c"}))
        followed.follower.rescan()
        followed.settle()

        wanted: dict[str, bytes] = {}
        for file, content in followed.files().items():
            if file.startswith("."):
                continue
            if content.startswith(b"zip:"):
                wanted |= {f"{file}/{line[:1].decode()}": line[2:] for line in content[4:].splitlines()}
            else:
                wanted[file] = content
        assert followed.collection.named() == wanted
        assert {document.status for document in followed.collection.list()} <= {"indexed"}
        assert followed.mirror.in_flight == 0
