"""Two workers on one database: what one of them lost, the other finishes alone, and the bill is that of one."""

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.db.session import Database
from app.types import Document
from ingestion.errors import Malformed, ParserCrashed
from tests.app.db.samples import Library
from tests.app.jobs.bench import PATIENCE_SECONDS, Bench, eventually
from tests.app.jobs.test_worker import LONG
from tests.databases import database, migrated_file, postgres_database, sqlite_database

__all__ = ["database", "migrated_file", "postgres_database", "sqlite_database"]


class Pair:
    """A worker that is held up until another has taken its job over and finished it."""

    def __init__(self, database: Database, folder: Path) -> None:
        self.library = Library(database)
        self.held = threading.Event()
        self.resume = threading.Event()
        # all of the first stands still, its parser too: it must not take its own job again
        self.first = Bench(self.library, folder, boot_id="boot-1", may_claim=lambda: not self.held.is_set())
        self.second = Bench(self.library, folder, boot_id="boot-2")

    def hold(self) -> None:
        """Stand still, as a process that is stopped."""
        self.held.set()
        assert self.resume.wait(timeout=PATIENCE_SECONDS)

    def finish(self, document: Document) -> Document:
        """What becomes of the document that the first is held up with."""
        self.first.worker.start()
        assert self.held.wait(timeout=PATIENCE_SECONDS)
        assert self.second.jobs.requeue_orphans("boot-2") == 1
        self.second.worker.start()
        ended = self.second.until(document, "indexed")
        self.resume.set()
        eventually(lambda: self.ended("lost") == 1)
        return self.library.get(ended.id)

    def ended(self, outcome: str) -> float:
        """The attempts of the first worker that ended so."""
        labels = {"outcome": outcome}
        return self.first.metrics.registry.get_sample_value("footnote_documents_ingested_total", labels) or 0.0

    def billed(self, document: Document) -> int:
        """The tokens of all rows of the document's job."""
        return sum(row.input_tokens for row in self.first.bill(document))


@pytest.fixture
def pair(database: Database, tmp_path: Path) -> Iterator[Pair]:
    pair = Pair(database, tmp_path)
    yield pair
    pair.resume.set()
    for bench in (pair.first, pair.second):
        bench.worker.stop()


def test_a14_what_a_worker_embedded_of_a_job_it_lost_is_neither_written_nor_billed_twice(pair: Pair) -> None:
    pair.first.embedder.before = lambda texts: pair.hold()
    document = pair.first.upload("The keeper of the lighthouse counted ships.")

    indexed = pair.finish(document)

    assert indexed.status == "indexed"
    assert pair.billed(document) == indexed.embedding_tokens
    assert [row.status for row in pair.first.bill(document)] == ["error", "completed"]
    assert len(pair.first.chunks.visible_keys()) == indexed.chunks == 1


def test_a14_the_blocks_that_the_first_kept_are_on_its_bill_and_the_rest_on_that_of_the_second(pair: Pair) -> None:
    def hold_at_the_third(texts: object) -> None:
        if len(pair.first.embedder.calls) == 2:
            pair.hold()

    pair.first.embedder.before = hold_at_the_third
    document = pair.first.upload(LONG)

    indexed = pair.finish(document)

    first, second = (row.input_tokens for row in pair.first.bill(document))
    assert 0 < first < second
    assert first + second == indexed.embedding_tokens
    pair.first.worker.stop()
    assert len(pair.first.embedder.calls) == 3, "it stopped at the block that it could not keep"


@pytest.mark.parametrize("error", [Malformed("It breaks off."), ParserCrashed("It broke down.")])
def test_a14_a_worker_that_lost_its_job_does_not_fail_it_for_the_other(pair: Pair, error: Exception) -> None:
    pair.first.extractor.gate.clear()
    document = pair.first.upload("Words that the second reads.")
    pair.first.worker.start()
    assert pair.first.extractor.started.wait(timeout=PATIENCE_SECONDS)
    pair.second.jobs.requeue_orphans("boot-2")
    pair.second.embedder.before = lambda texts: pair.hold()
    pair.second.worker.start()
    assert pair.held.wait(timeout=PATIENCE_SECONDS)

    pair.first.extractor.error = error
    pair.first.extractor.gate.set()
    eventually(lambda: pair.ended("failed") + pair.ended("postponed") == 1)

    assert pair.library.get(document.id).status == "embedding"
    pair.resume.set()
    indexed = pair.second.until(document, "indexed")
    assert (indexed.error_code, pair.billed(document)) == (None, indexed.embedding_tokens)


def test_a14_an_error_after_a_job_was_lost_does_not_bill_what_the_other_pays_for(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(versions: object) -> None:
        raise RuntimeError("a bug in the commit, when all is embedded")

    pair.first.embedder.before = lambda texts: pair.hold()
    monkeypatch.setattr(pair.first.jobs, "commit_all", fail)
    document = pair.first.upload("The keeper of the lighthouse counted ships.")
    pair.first.worker.start()
    assert pair.held.wait(timeout=PATIENCE_SECONDS)
    pair.second.jobs.requeue_orphans("boot-2")
    pair.second.worker.start()
    pair.second.until(document, "indexed")
    pair.resume.set()
    eventually(lambda: pair.ended("failed") == 1)

    indexed = pair.library.get(document.id)
    assert (indexed.status, indexed.error_code) == ("indexed", None)
    assert pair.billed(document) == indexed.embedding_tokens
