"""ingestion.child_extractor reads files in a child process that is killed beyond its limits."""

import contextlib
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Thread

import psutil
import pytest

from ingestion.child_extractor import ChildExtractor
from ingestion.errors import IngestionError, LimitExceeded, ParserCrashed
from ingestion.extraction import LocalExtractor
from ingestion.types import Extraction, ExtractionLimits
from tests.ingestion.pdf_file import pdf_bytes
from tests.ingestion.zip_file import ooxml_bytes

LIMITS = ExtractionLimits(seconds=2, memory_bytes=300 << 20)


@pytest.fixture
def extractor() -> Iterator[ChildExtractor]:
    """A child that does what files tell it to."""
    with ChildExtractor(LIMITS, module="tests.ingestion.hostile_child") as child:
        yield child


@pytest.fixture
def file(tmp_path: Path) -> Callable[[str], Path]:
    def write(text: str) -> Path:
        path = tmp_path / "upload"
        path.write_text(text)
        return path

    return write


def pid_of(extractor: ChildExtractor, file: Callable[[str], Path]) -> int:
    path = file("pid please")
    extractor.extract(path, filename=f"{path}.txt")
    return int(path.with_suffix(".pid").read_text())


def is_gone(pid: int, *, within: float = 5.0) -> bool:
    deadline = time.monotonic() + within
    while time.monotonic() < deadline:
        if not psutil.pid_exists(pid):
            return True
        time.sleep(0.02)
    return False


@pytest.mark.parametrize("order", ["sleep", "spin"])
def test_a_file_that_takes_too_long_is_given_up(
    extractor: ChildExtractor, file: Callable[[str], Path], order: str
) -> None:
    pid = pid_of(extractor, file)
    started = time.monotonic()

    with pytest.raises(LimitExceeded, match="longer than 2 seconds"):
        extractor.extract(file(order), filename="a.txt")

    assert time.monotonic() - started < 10
    assert is_gone(pid)
    assert extractor.extract(file("next"), filename="a.txt").text == "next"


def test_scanned_pages_may_together_take_longer_than_a_file(file: Callable[[str], Path]) -> None:
    limits = ExtractionLimits(seconds=1.5, ocr_page_seconds=10)

    with ChildExtractor(limits, module="tests.ingestion.hostile_child") as extractor:
        assert extractor.extract(file("scan 4 0.5"), filename="a.txt").text == "scan 4 0.5"


def test_what_follows_the_last_scanned_page_has_the_time_of_a_file(file: Callable[[str], Path]) -> None:
    limits = ExtractionLimits(seconds=10, ocr_page_seconds=0.1)

    with ChildExtractor(limits, module="tests.ingestion.hostile_child") as extractor:
        assert extractor.extract(file("scan 1 0.5"), filename="a.txt").text == "scan 1 0.5"


def test_a_scanned_page_that_takes_too_long_is_given_up_with_its_file(file: Callable[[str], Path]) -> None:
    limits = ExtractionLimits(seconds=50, ocr_page_seconds=0.5)

    with ChildExtractor(limits, module="tests.ingestion.hostile_child") as extractor:
        pid = pid_of(extractor, file)
        with pytest.raises(LimitExceeded, match=r"scanned page 1 of 3 took longer than 0\.5 seconds"):
            extractor.extract(file("stall"), filename="a.txt")

        assert is_gone(pid)
        assert extractor.extract(file("next"), filename="a.txt").text == "next"


@pytest.mark.parametrize("pages", [0, 50])
def test_a_child_that_reports_scanned_pages_for_ever_is_stopped_at_the_cap(
    file: Callable[[str], Path], pages: int
) -> None:
    limits = ExtractionLimits(ocr_pages=pages)

    with ChildExtractor(limits, module="tests.ingestion.hostile_child") as extractor:
        pid = pid_of(extractor, file)
        with pytest.raises(LimitExceeded, match=f"document has more than {pages} scanned pages"):
            extractor.extract(file("flood"), filename="a.txt")

        assert is_gone(pid)
        assert extractor.extract(file("next"), filename="a.txt").text == "next"


def test_the_child_refuses_a_scanned_page_too_many_before_it_is_killed_for_it(file: Callable[[str], Path]) -> None:
    limits = ExtractionLimits(ocr_pages=5)

    with ChildExtractor(limits, module="tests.ingestion.hostile_child") as extractor:
        pid = pid_of(extractor, file)
        with pytest.raises(LimitExceeded, match="files have more than 5 scanned pages"):
            extractor.extract(file("scan 6 0"), filename="a.txt")

        assert extractor.extract(file("scan 5 0"), filename="a.txt").text == "scan 5 0"
        assert pid_of(extractor, file) == pid


def test_a_scanned_page_renews_the_child_s_own_backstop(file: Callable[[str], Path]) -> None:
    path = file("backstop")

    with ChildExtractor(ExtractionLimits(ocr_page_seconds=1000), module="tests.ingestion.hostile_child") as extractor:
        extractor.extract(path, filename=f"{path}.txt")

    before, after = map(int, path.with_suffix(".backstop").read_text().split())
    assert after - before >= 4000, "four seconds of CPU each"


def test_closing_does_not_wait_for_the_file_at_hand(file: Callable[[str], Path]) -> None:
    path = file("linger")
    extractor = ChildExtractor(ExtractionLimits(seconds=50), module="tests.ingestion.hostile_child")
    failures: list[Exception] = []

    def read() -> None:
        try:
            extractor.extract(path, filename=f"{path}.txt")
        except IngestionError as error:
            failures.append(error)

    thread = Thread(target=read)
    thread.start()
    written = path.with_suffix(".pid")
    while not (written.exists() and written.read_text()):
        time.sleep(0.02)
    extractor.close()
    thread.join()

    assert [type(failure) for failure in failures] == [ParserCrashed], "killed, not timed out"
    assert is_gone(int(written.read_text()))


def test_a_file_that_takes_too_much_memory_is_given_up(file: Callable[[str], Path]) -> None:
    limits = ExtractionLimits(seconds=50, memory_bytes=300 << 20)

    with ChildExtractor(limits, module="tests.ingestion.hostile_child") as extractor:
        pid = pid_of(extractor, file)
        with pytest.raises(LimitExceeded, match="300 MiB of memory"):
            extractor.extract(file("allocate"), filename="a.txt")

        assert is_gone(pid)
        assert extractor.extract(file("next"), filename="a.txt").text == "next"


@pytest.mark.parametrize("order", ["crash", "exit", "raise"])
def test_a_child_that_dies_is_reported_and_replaced(
    extractor: ChildExtractor, file: Callable[[str], Path], order: str
) -> None:
    with pytest.raises(ParserCrashed, match="broke down on this document") as caught:
        extractor.extract(file(order), filename="a.txt")

    assert "secret" not in str(caught.value)
    assert extractor.extract(file("next"), filename="a.txt").text == "next"


def test_noise_on_standard_output_does_not_break_the_conversation(
    extractor: ChildExtractor, file: Callable[[str], Path]
) -> None:
    assert extractor.extract(file("babble on"), filename="a.txt").text == "babble on"
    assert extractor.extract(file("next"), filename="a.txt").text == "next"


def test_one_child_serves_many_files_and_is_then_replaced(file: Callable[[str], Path]) -> None:
    with ChildExtractor(LIMITS, recycle_after=3, module="tests.ingestion.hostile_child") as extractor:
        pids = [pid_of(extractor, file) for _ in range(4)]

    assert pids[0] == pids[1] == pids[2] != pids[3]
    assert all(is_gone(pid) for pid in pids)


def test_a_child_without_work_is_closed(file: Callable[[str], Path]) -> None:
    with ChildExtractor(LIMITS, idle_seconds=0.1, module="tests.ingestion.hostile_child") as extractor:
        pid = pid_of(extractor, file)

        assert is_gone(pid)
        assert extractor.extract(file("again"), filename="a.txt").text == "again"


def test_the_child_ends_with_its_parent_s_end_of_the_pipe(
    extractor: ChildExtractor, file: Callable[[str], Path]
) -> None:
    pid = pid_of(extractor, file)

    extractor.close()

    assert is_gone(pid)


def test_a_child_killed_between_files_is_replaced(extractor: ChildExtractor, file: Callable[[str], Path]) -> None:
    psutil.Process(pid_of(extractor, file)).kill()

    # It may still look alive when it is asked; then this file is lost with it, and only this one.
    with contextlib.suppress(ParserCrashed):
        extractor.extract(file("next"), filename="a.txt")
    assert extractor.extract(file("after"), filename="a.txt").text == "after"


def test_the_child_sees_no_secret_of_ours(
    extractor: ChildExtractor, file: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FOOTNOTE_SECRET", "fn_123")
    path = file("environment")

    extractor.extract(path, filename=f"{path}.txt")

    seen = path.with_suffix(".environment").read_text().split()
    assert "FOOTNOTE_SECRET" in os.environ
    assert "FOOTNOTE_SECRET" not in seen
    assert "HF_HUB_OFFLINE" in seen


def test_a_password_is_not_on_the_child_s_command_line(file: Callable[[str], Path]) -> None:
    path = file("command please")

    with ChildExtractor(module="tests.ingestion.hostile_child") as extractor:
        extractor.extract(path, filename=f"{path}.txt", password="hunter2")
        *command, password, folder = path.with_suffix(".command").read_text().splitlines()
        assert Path(folder).is_dir()

    assert password == "hunter2"
    assert "hunter2" not in " ".join(command)
    assert not Path(folder).exists(), "what a parser writes goes with it"


def test_threads_take_turns(extractor: ChildExtractor, tmp_path: Path) -> None:
    texts = [f"text of thread {number}" for number in range(6)]
    read: dict[str, str] = {}

    def work(text: str) -> None:
        path = tmp_path / text.replace(" ", "-")
        path.write_text(text)
        read[text] = extractor.extract(path, filename="a.txt").text

    threads = [Thread(target=work, args=[text]) for text in texts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert read == {text: text for text in texts}


FILES = {
    "a.txt": "Ein Text.\n\nNoch ein Absatz. 🦆".encode("utf-16"),
    "a.md": b"# Title\n\n- item\n- *item*\n\n| a | b |\n|---|---|\n| 1 | 2 |\n",
    "a.csv": b"name;age\nAda;36\n",
    "a.rtf": rb"{\rtf1 rich}",
    "a.eml": b"Subject: s\n\nwords",
    "a.py": b"def f():\n    pass\n",
    "a.pdf": pdf_bytes([["Page one"], [], ["Page three"]], title="Three pages"),
    "empty.pdf": b"",
    "scan.pdf": pdf_bytes([[]]),
    "liar.docx": pdf_bytes([["x"]]),
    "broken.docx": ooxml_bytes("word"),
    "page.html": b"<title>t</title><h1>Head</h1><p>Some <b>bold</b> text.<ul><li>one<li>two</ul>",
}


def test_the_child_equals_its_oracle_on_every_kind_of_file(tmp_path: Path) -> None:
    def outcome(extractor: ChildExtractor | LocalExtractor, name: str) -> Extraction | tuple[type, str]:
        path = tmp_path / name
        path.write_bytes(FILES[name])
        try:
            return extractor.extract(path, filename=name)
        except IngestionError as error:
            return type(error), str(error)

    with ChildExtractor() as child:
        outcomes = {name: outcome(child, name) for name in FILES}

    for name, found in outcomes.items():
        assert found == outcome(LocalExtractor(), name), name
        if isinstance(found, tuple):
            assert "/" not in found[1], "a message names no path"
    assert [name for name, found in outcomes.items() if isinstance(found, tuple)] == [
        "empty.pdf", "scan.pdf", "liar.docx", "broken.docx",
    ]  # fmt: skip
