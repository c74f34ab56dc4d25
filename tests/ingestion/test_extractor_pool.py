"""ingestion.child_extractor: one slow file does not hold up another's."""

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from ingestion.child_extractor import ExtractorPool
from ingestion.errors import Malformed
from ingestion.types import Extraction, MediaType


class GatedExtractor:
    """Reads nothing; waits on files called "slow" and breaks on files called "broken"."""

    def __init__(self, gate: threading.Event) -> None:
        self.gate = gate
        self.files: list[str] = []
        self.busy = threading.Lock()
        self.closed = False

    def extract(self, path: Path, *, filename: str, password: str | None = None) -> Extraction:
        assert self.busy.acquire(blocking=False), "one file at a time"
        try:
            self.files.append(filename)
            if filename == "slow":
                assert self.gate.wait(timeout=20)
            if filename == "broken":
                raise Malformed("It breaks off.")
            return Extraction(MediaType.TEXT, password, filename, (), ())
        finally:
            self.busy.release()

    def close(self) -> None:
        self.closed = True


def test_files_are_read_while_a_slow_one_is_read() -> None:
    gate = threading.Event()
    extractors = [GatedExtractor(gate), GatedExtractor(gate)]
    pool = ExtractorPool(extractors)

    with ThreadPoolExecutor(1) as threads:
        slow = threads.submit(pool.extract, Path("x"), filename="slow")
        while not any(extractor.busy.locked() for extractor in extractors):
            pass
        read = [pool.extract(Path("x"), filename=name, password="secret") for name in ("a", "b", "c")]
        assert not slow.done()
        gate.set()

    assert slow.result().text == "slow"
    assert [(each.text, each.title) for each in read] == [("a", "secret"), ("b", "secret"), ("c", "secret")]
    assert sorted(len(extractor.files) for extractor in extractors) == [1, 3]


def test_one_that_failed_reads_again_and_all_are_closed() -> None:
    extractor = GatedExtractor(threading.Event())
    pool = ExtractorPool([extractor])

    with pytest.raises(Malformed):
        pool.extract(Path("x"), filename="broken")

    assert pool.extract(Path("x"), filename="a").text == "a"
    pool.close()
    assert extractor.closed
    assert len(pool) == 1
