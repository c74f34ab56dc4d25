"""`footnote ingest` uploads each file once, and again only when it changes."""

import json
import os
from io import StringIO
from pathlib import Path
from typing import Any, cast

import httpx
import pytest
from fastapi.testclient import TestClient
from rich.console import Console

from app.cli.folder import Folder, LocalFile, find_files
from app.cli.ingest import report
from app.cli.mirror import Mirror
from app.cli.progress import PlainProgress, counted, in_flight, progress_of
from app.cli.remote_collection import FileRefused, HttpCollection, RemoteCollection, collection_id_of
from app.cli.retries import Patience
from app.cli.tally import Tally, UploadResult
from app.client import Client, Refused
from app.errors import SetupError
from tests.app.api.conftest import client, state
from tests.app.cli.memory_collection import MemoryCollection, Notes

__all__ = ["client", "state"]


def run(collection: RemoteCollection, files: list[LocalFile], *, notes: Notes | None = None) -> Tally:
    """One `footnote ingest` of these files."""
    tally, notes = Tally(), notes or Notes()
    slept: list[float] = []
    mirror = Mirror(
        collection,
        scope="col_1",
        patience=Patience(limit_s=60, say=notes.say, sleep=slept.append),
        tally=tally,
        observer=notes,
        sleep=slept.append,
    )
    mirror.load()
    mirror.put_all(files)
    mirror.drain()
    assert sum(job for job in notes.stages[-1].values()) == 0
    return tally


def write(root: Path, **contents: str) -> Path:
    for name, content in contents.items():
        path = root / name.replace("__", "/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    return root


def names(paths: list[Path], prefix: str = "") -> list[str | None]:
    return [file.external_id for file in find_files(paths, prefix=prefix).files]


class TestWhichFiles:
    def test_a_file_in_a_folder_is_known_by_its_path_there(self, tmp_path: Path) -> None:
        write(tmp_path, b="1", deep__a="2")

        assert names([tmp_path]) == ["b", "deep/a"]
        assert names([tmp_path], prefix="law") == names([tmp_path], prefix="law/") == ["law/b", "law/deep/a"]

    def test_a_file_named_by_itself_is_known_by_its_bytes_unless_a_prefix_names_it(self, tmp_path: Path) -> None:
        write(tmp_path, a="1")

        assert names([tmp_path / "a"]) == [None]
        assert names([tmp_path / "a"], prefix="x") == ["x/a"]

    def test_hidden_files_lock_files_and_links_that_lead_out_are_left_out(self, tmp_path: Path) -> None:
        root = write(tmp_path / "root", a="1", **{".b": "2", ".c__d": "3", "~$e.docx": "4"})
        write(tmp_path / "outside", secret="5")
        (root / "out").symlink_to(tmp_path / "outside" / "secret")
        (root / "out_folder").symlink_to(tmp_path / "outside")
        (root / "to_hidden").symlink_to(root / ".b")
        (root / "loop").symlink_to(root / "loop")
        (root / "gone").symlink_to(root / "nothing")
        (root / "inside").symlink_to(root / "a")
        os.mkfifo(root / "pipe")

        found = Folder(root).scan()

        assert [file.external_id for file in found.files] == ["a", "inside"]
        assert [item.name for item in found.unreadable] == ["loop"], "a loop is an error, not a file that went away"

    def test_a_name_that_is_no_unicode_or_too_long_is_reported(self, tmp_path: Path) -> None:
        (tmp_path / os.fsdecode(b"caf\xe9.txt")).write_text("1")
        deep = tmp_path / ("d" * 200) / ("e" * 200) / ("f" * 200)
        write(deep, a="2")

        found = Folder(tmp_path).scan()

        assert not found.files
        assert sorted(item.reason for item in found.unreadable) == [
            "its name is not valid Unicode",
            "its path has more than 512 characters",
        ]
        assert not found.hidden, "neither was ever on the server"

    def test_one_file_given_twice_is_one_and_two_of_one_name_are_refused(self, tmp_path: Path) -> None:
        one, two = write(tmp_path / "one", a="1"), write(tmp_path / "two", a="2")

        assert names([one, one / "a", one]) == ["a"]
        with pytest.raises(SetupError, match="'a' would name two files"):
            find_files([one, two])

    def test_two_folders_of_one_name_have_marks_of_their_own_and_a_prefix_is_one(self, tmp_path: Path) -> None:
        one, two = tmp_path / "1" / "law", tmp_path / "2" / "law"
        one.mkdir(parents=True)
        two.mkdir(parents=True)

        assert Folder(one).mark.startswith("law#")
        assert Folder(one).mark != Folder(two).mark
        assert Folder(one, prefix="x/").mark == Folder(two, prefix="x").mark == "x"


class TestWhatIsSent:
    def test_the_second_run_sends_nothing_and_the_third_what_changed(self, tmp_path: Path) -> None:
        collection = MemoryCollection()
        write(tmp_path, a="1", b="2", c="3")
        first = run(collection, find_files([tmp_path]).files)
        second = run(collection, find_files([tmp_path]).files)
        write(tmp_path, b="other", d="4")
        third = run(collection, find_files([tmp_path]).files)

        assert collection.uploads == ["a", "b", "c", "b", "d"]
        assert first.outcomes == {UploadResult.INDEXED: 3}
        assert (first.pages, first.chunks, first.tokens) == (3, 6, 300)
        assert second.outcomes == {UploadResult.UNCHANGED: 3}
        assert third.outcomes == {UploadResult.INDEXED: 2, UploadResult.UNCHANGED: 2}
        assert len(collection.documents) == 4, "a changed file is a version of its document"

    def test_a_failed_file_is_reported_again_but_not_sent_again(self, tmp_path: Path) -> None:
        collection = MemoryCollection()
        write(tmp_path, a="bad", b="refused")
        run(collection, find_files([tmp_path]).files)
        again = run(collection, find_files([tmp_path]).files)

        assert collection.uploads == ["a"]
        assert again.failures == {"a": "It holds no text.", "b": "Not a type we read."}

    def test_what_is_still_in_flight_from_an_earlier_run_is_waited_for(self, tmp_path: Path) -> None:
        collection = MemoryCollection(reads=3)
        files = find_files([write(tmp_path, a="1")]).files
        collection.upload(files[0].path, filename="a", external_id="a", folder=None, idempotency_key="k")

        assert run(collection, files).outcomes == {UploadResult.INDEXED: 1}
        assert collection.uploads == ["a"]

    def test_bytes_that_were_uploaded_without_a_name_are_not_sent_again(self, tmp_path: Path) -> None:
        collection = MemoryCollection()
        collection.keep(b"1", filename="from the web page.txt", external_id=None, folder=None)

        assert run(collection, find_files([write(tmp_path, a="1")]).files).outcomes == {UploadResult.UNCHANGED: 1}

    def test_two_files_of_the_same_bytes_named_by_themselves_are_one_document(self, tmp_path: Path) -> None:
        collection = MemoryCollection()
        write(tmp_path, a="1", b="1")

        tally = run(collection, find_files([tmp_path / "a", tmp_path / "b"]).files)

        assert tally.outcomes == {UploadResult.INDEXED: 1, UploadResult.UNCHANGED: 1}

    def test_more_files_than_may_be_in_flight_all_arrive(self, tmp_path: Path) -> None:
        collection, notes = MemoryCollection(reads=2), Notes()
        write(tmp_path, **{f"n{number}": str(number) for number in range(150)})

        tally = run(collection, find_files([tmp_path]).files, notes=notes)

        assert tally.outcomes == {UploadResult.INDEXED: 150}
        assert max(sum(stages.values()) for stages in notes.stages) == 64

    def test_an_archive_counts_by_its_members(self, tmp_path: Path) -> None:
        collection = MemoryCollection()
        tally = run(collection, find_files([write(tmp_path, **{"a.zip": "zip:x=1\ny=bad"})]).files)

        assert tally.files == 2
        assert tally.outcomes == {UploadResult.INDEXED: 1, UploadResult.FAILED: 1}
        assert tally.failures == {"a.zip/y": "It holds no text."}

    def test_a_file_that_goes_before_it_is_read_is_a_failure_of_its_own(self, tmp_path: Path) -> None:
        files = find_files([write(tmp_path, a="1", b="2")]).files
        (tmp_path / "a").unlink()

        tally = run(MemoryCollection(), files)

        assert tally.failures == {"a": "cannot be read: No such file or directory"}
        assert tally.outcomes[UploadResult.INDEXED] == 1


class TestPatience:
    def test_a_busy_server_is_waited_for_under_the_same_key(self, tmp_path: Path) -> None:
        collection, notes = MemoryCollection(), Notes()
        collection.troubles = [
            Refused("The server is full.", status=503, retry_after_s=7),
            Refused("Too many requests.", status=429, retry_after_s=2),
            Refused("The server cannot be reached."),
        ]

        tally = run(collection, find_files([write(tmp_path, a="1")]).files, notes=notes)

        assert tally.outcomes == {UploadResult.INDEXED: 1}
        assert len(collection.keys) == 4
        assert len(set(collection.keys)) == 1
        assert notes.lines == ["Waiting: The server is full."]

    def test_a_file_that_returns_to_what_it_was_has_a_key_of_its_own(self, tmp_path: Path) -> None:
        collection = MemoryCollection()
        for content in ("1", "2", "1"):
            run(collection, find_files([write(tmp_path, a=content)]).files)

        assert len(set(collection.keys)) == 3, "an answer kept under the first key would be given instead of a version"
        assert collection.named() == {"a": b"1"}

    def test_the_pause_is_what_was_asked_for_or_doubles_to_a_minute(self) -> None:
        slept: list[float] = []
        refusals = [Refused("", status=503)] * 8 + [Refused("", status=503, retry_after_s=5)]

        def call() -> str:
            if refusals:
                raise refusals.pop(0)
            return "done"

        assert Patience(limit_s=None, say=lambda _: None, sleep=slept.append)(call) == "done"
        assert slept == [1, 2, 4, 8, 16, 32, 60, 60, 5]

    @pytest.mark.parametrize("status", [401, 403, 404, 409, 422])
    def test_what_does_not_pass_is_raised_at_once(self, status: int) -> None:
        def call() -> None:
            raise Refused("No.", status=status)

        with pytest.raises(Refused):
            Patience(limit_s=None, say=lambda _: None, sleep=lambda _: pytest.fail("waited"))(call)

    def test_a_wait_beyond_the_limit_is_raised_instead(self) -> None:
        def call() -> None:
            raise Refused("The budget is used up.", status=429, retry_after_s=86_400)

        with pytest.raises(Refused, match="budget"):
            Patience(limit_s=300, say=lambda _: None, sleep=lambda _: pytest.fail("waited"))(call)

    def test_a_refusal_of_every_file_ends_the_run(self, tmp_path: Path) -> None:
        collection = MemoryCollection()
        collection.troubles = [Refused("The key is not valid.", status=401)]

        with pytest.raises(Refused, match="not valid"):
            run(collection, find_files([write(tmp_path, a="1", b="2")]).files)
        assert not collection.uploads


class TestAgainstTheApplication:
    """The HTTP side of the port, against the application itself; nothing is indexed, as it has no models."""

    @pytest.fixture
    def collection(self, client: TestClient) -> HttpCollection:
        http = Client(cast(httpx.Client, client))
        return HttpCollection(http, collection_id_of(http, "law", make=True))

    def send(self, collection: HttpCollection, path: Path, *, key: str, folder: str | None = "law#1") -> Any:
        return collection.upload(path, filename=path.name, external_id="a.txt", folder=folder, idempotency_key=key)

    def test_a_changed_file_is_a_new_version_with_the_metadata_it_had(
        self, collection: HttpCollection, tmp_path: Path, client: TestClient
    ) -> None:
        path = write(tmp_path, **{"a.txt": "The first text."}) / "a.txt"
        made = self.send(collection, path, key="1").documents[0]
        client.patch(f"/v1/documents/{made.id}", json={"metadata": {"folder": "law#1", "year": 2025}})
        path.write_text("The second text.")
        changed = self.send(collection, path, key="2", folder=None)
        same = self.send(collection, path, key="3", folder=None)

        assert changed.documents[0].id == made.id
        assert not changed.known
        assert same.known == {made.id}
        [listed] = collection.list()
        assert (listed.external_id, listed.folder, listed.sha256) == ("a.txt", "law#1", changed.documents[0].sha256)
        body = client.get(f"/v1/documents/{made.id}").json()
        assert body["version"] == 2
        assert body["metadata"] == {"folder": "law#1", "year": 2025}

    def test_a_file_it_does_not_take_is_told_from_a_server_that_takes_nothing(
        self, collection: HttpCollection, tmp_path: Path, client: TestClient
    ) -> None:
        write(tmp_path, empty="")
        (tmp_path / "picture").write_bytes(b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR")
        for name in ("empty", "picture"):
            with pytest.raises(FileRefused):
                self.send(collection, tmp_path / name, key=name)
        client.headers["Authorization"] = "Bearer fn_wrong"
        with pytest.raises(Refused) as refused:
            self.send(collection, write(tmp_path, a="1") / "a", key="a")
        assert refused.value.status == 401

    def test_what_is_gone_reads_as_none_and_deletes_in_peace(self, collection: HttpCollection, tmp_path: Path) -> None:
        made = self.send(collection, write(tmp_path, a="Some text.") / "a", key="1").documents[0]

        assert collection.read(made.id) == made
        collection.delete(made.id)
        collection.delete(made.id)
        assert collection.read(made.id) is None
        assert list(collection.list()) == []


class TestWhatIsShown:
    def tally(self) -> tuple[Tally, list[float]]:
        now = [0.0]
        tally = Tally(clock=lambda: now[0])
        tally.expect(files=10, size=1000)
        return tally, now

    def test_the_time_left_is_the_pace_so_far_without_what_needed_no_work(self) -> None:
        tally, now = self.tally()
        for number in range(5):
            tally.settle(UploadResult.UNCHANGED, str(number), size=100)
        assert tally.remaining_s() is None
        now[0] = 30
        tally.settle(UploadResult.INDEXED, "x", size=100)

        assert tally.remaining_s() == pytest.approx(120)
        assert counted(tally) == "6/10 files · 5 unchanged · about 0:02:00 left"

    def test_the_speed_is_that_of_the_last_half_minute(self) -> None:
        tally, now = self.tally()
        tally.embedded(pages=1, chunks=1, tokens=1_000_000)
        now[0] = 60
        tally.embedded(pages=2, chunks=3, tokens=3_000)
        tally.stages = {"embedding": 2, "queued": 1}

        assert tally.tokens_per_s() == 100
        assert in_flight(tally) == "3 pages · 4 chunks · 100 tokens/s · in flight: 2 embedding, 1 queued"

    def test_a_file_indexed_after_a_failure_is_not_counted_as_failed(self) -> None:
        tally, _ = self.tally()
        tally.settle(UploadResult.FAILED, "a", size=1, reason="no")
        tally.settle(UploadResult.INDEXED, "a", size=1)

        assert not tally.failures

    def test_without_a_terminal_there_are_plain_lines_every_ten_seconds(self) -> None:
        tally, _ = self.tally()
        console, now = Console(width=200, record=True, file=StringIO()), [0.0]
        assert isinstance(progress_of(console, each=False), PlainProgress)
        with PlainProgress(console, each=False, clock=lambda: now[0]) as progress:
            for second in range(25):
                now[0] = second
                tally.settle(UploadResult.INDEXED, str(second), size=1)
                progress.settled(UploadResult.INDEXED, str(second), "")
                progress.show(tally)
            progress.settled(UploadResult.FAILED, "[red]x[/red]", "no text")
        lines = console.export_text().splitlines()

        assert [line.split(" ")[0] for line in lines] == ["11/10", "21/10", "failed"]
        assert lines[-1] == "failed  [red]x[/red]: no text"

    def test_on_a_terminal_there_is_a_bar_and_failures_stay_above_it(self) -> None:
        tally, _ = self.tally()
        console = Console(width=100, record=True, force_terminal=True, file=StringIO())
        with progress_of(console, each=False) as progress:
            tally.settle(UploadResult.FAILED, "a.pdf", size=1, reason="no text")
            progress.show(tally)
            progress.settled(UploadResult.FAILED, "a.pdf", "no text")
        shown = console.export_text()

        assert "failed  a.pdf: no text" in shown
        assert "1/10 files · 1 failed" in shown

    def test_the_end_is_a_table_of_failures_and_the_sums(self) -> None:
        tally, _ = self.tally()
        tally.settle(UploadResult.INDEXED, "a", size=1)
        tally.settle(UploadResult.FAILED, "b.pdf", size=1, reason="The PDF holds no text.")
        tally.embedded(pages=3, chunks=40, tokens=5_000)
        console = Console(width=100, record=True, file=StringIO())
        report(console, tally)
        shown = console.export_text()

        assert "b.pdf" in shown
        assert "The PDF holds no text." in shown
        assert "1 indexed, 0 unchanged, 1 failed (3 pages, 40 chunks, 5,000 tokens)" in shown


def test_json_of_a_filter_is_checked_before_anything_is_called(tmp_path: Path) -> None:
    from typer.testing import CliRunner

    from app.cli.main import cli

    for arguments in (["--filter", "[]"], ["--filter", json.dumps({})], [], ["doc_1", "--filter", "{}"]):
        result = CliRunner().invoke(cli, ["delete", "--yes", *arguments], env={"FOOTNOTE_DATA_DIR": str(tmp_path)})
        assert isinstance(result.exception, SetupError), arguments
    result = CliRunner().invoke(cli, ["delete", "doc_1"], env={"FOOTNOTE_DATA_DIR": str(tmp_path)})
    assert "nobody to ask" in str(result.exception)
