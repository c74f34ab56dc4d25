"""app.jobs.worker: a job ends indexed, failed with its reason, or back in the queue, and its tokens are on the bill."""

import threading
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from app.db.chunks import ChunkRepository
from app.db.jobs import JobRepository
from app.files import FileStore
from app.index import LiveIndex
from app.jobs.worker import Worker
from app.lexical_index import LiveLexicalIndex
from app.telemetry import Metrics
from app.types import Document
from app.usage.ledger import Ledger
from ingestion.chunking import Chunker
from ingestion.errors import Malformed
from ingestion.pipeline import Pipeline
from ingestion.types import Block, BlockKind, Extraction, MediaType, Stage
from tests.app.db.samples import EMBEDDER, Library
from tests.databases import migrated_file, sqlite_database
from tests.ingestion.small_tokenizer import word_piece

__all__ = ["migrated_file", "sqlite_database"]


class FakeExtractor:
    """Reads text files; waits for `gate`, and raises what it is told to."""

    def __init__(self) -> None:
        self.error: Exception | None = None
        self.gate = threading.Event()
        self.gate.set()
        self.started = threading.Event()

    def extract(self, path: Path, *, filename: str) -> Extraction:
        self.started.set()
        self.gate.wait(timeout=20)
        if self.error is not None:
            raise self.error
        text = path.read_text()
        return Extraction(MediaType.TEXT, None, text, (), (Block(BlockKind.PARAGRAPH, 0, len(text), None, ()),))


class FakeEmbedder:
    """Deterministic unit vectors."""

    info = EMBEDDER

    def count_tokens(self, text: str) -> int:
        return len(text.split()) + 2

    def count_query(self, text: str) -> int:
        return min(self.count_tokens(text), self.info.max_tokens)

    def count_documents(self, texts, *, counted):
        return sum(counted)

    def embed_documents(self, texts, *, on_batch=None):
        if on_batch is not None:
            for done in range(1, len(texts) + 1):
                on_batch(done)
        rows = np.array([[len(text) + place for place in range(EMBEDDER.dim)] for text in texts], dtype=np.float32)
        return rows / np.linalg.norm(rows, axis=1, keepdims=True)

    def embed_query(self, text: str):
        return self.embed_documents([text])[0]


class CountingJobs(JobRepository):
    """Counts the progress that is written down: each time is a transaction."""

    written = 0

    def progress(self, job_id: str, stage: Stage, *, done: int, total: int) -> bool:
        self.written += 1
        return super().progress(job_id, stage, done=done, total=total)


class Bench:
    """A worker over a scratch library."""

    def __init__(self, library: Library, tmp_path: Path) -> None:
        self.library = library
        self.files = FileStore(tmp_path / "files")
        self.extractor = FakeExtractor()
        self.ledger = Ledger(library.database, boot_id="boot-1")
        chunks = ChunkRepository(library.database)
        self.index = LiveIndex(tmp_path / "index", embedder=EMBEDDER, generation=library.generation, chunks=chunks)
        self.lexical = LiveLexicalIndex(
            tmp_path / "lexical", database=library.database, chunks=chunks, engine="tantivy"
        )
        self.lexical.start()
        self.lexical.wait()
        embedder = FakeEmbedder()
        self.jobs = CountingJobs(library.database)
        self.worker = Worker(
            jobs=self.jobs,
            files=self.files,
            pipeline=Pipeline(self.extractor, Chunker(word_piece(), max_tokens=64, overlap=8), embedder),
            embedder=embedder,
            index=self.index,
            lexical=self.lexical,
            ledger=self.ledger,
            metrics=Metrics(),
            boot_id="boot-1",
        )

    def upload(self, text: str) -> Document:
        document = self.library.upload(text)
        path = self.files.path(document.id, 1)
        path.parent.mkdir(parents=True)
        path.write_text(text)
        self.worker.wake()
        return document

    def until(self, document: Document, *statuses: str) -> Document:
        deadline = time.monotonic() + 20
        while (now := self.library.get(document.id)).status not in statuses:
            assert time.monotonic() < deadline, now.status
            time.sleep(0.02)
        return now


def eventually(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


@pytest.fixture
def bench(sqlite_database, tmp_path):
    bench = Bench(Library(sqlite_database), tmp_path)
    bench.worker.start()
    yield bench
    bench.extractor.gate.set()
    bench.worker.stop()


def test_a_document_becomes_visible_with_its_vectors_and_its_bill(bench):
    document = bench.until(bench.upload("The keeper counted ships. " * 60), "indexed")
    eventually(lambda: bench.ledger.usage(document.job_id)[0].status == "completed")
    eventually(lambda: len(bench.index) == document.chunks)
    (row,) = bench.ledger.usage(document.job_id)

    assert document.chunks > 1
    assert (row.operation, row.input_tokens) == ("embed_doc", document.embedding_tokens)


def test_a_document_of_many_batches_does_not_write_its_progress_for_each(bench):
    document = bench.upload("\n\n".join(f"Paragraph {n} says that revenue rose by {n} percent." for n in range(400)))

    bench.until(document, "indexed")

    chunks = len(ChunkRepository(bench.library.database).visible_keys())
    assert chunks >= 50, "each of them is a batch and a report"
    assert 1 <= bench.jobs.written < chunks


def test_a_file_that_cannot_be_read_fails_with_its_reason_and_the_next_one_is_taken(bench):
    bench.extractor.error = Malformed("The file breaks off in the middle.")
    failed = bench.until(bench.upload("first"), "failed")
    bench.extractor.error = None
    bench.until(bench.upload("second document"), "indexed")

    assert (failed.error_code, failed.error_detail) == ("malformed", "The file breaks off in the middle.")
    assert bench.ledger.usage(failed.job_id) == (), "nothing was embedded, nothing is billed"


def test_a_bug_of_ours_fails_the_document_without_its_details_and_the_worker_lives(bench):
    bench.extractor.error = RuntimeError("secret detail")
    failed = bench.until(bench.upload("first"), "failed")

    assert failed.error_code == "internal-error"
    assert "secret" not in (failed.error_detail or "")
    assert bench.worker.alive()


def test_a_document_deleted_while_it_is_read_leaves_nothing(bench):
    bench.extractor.gate.clear()
    document = bench.upload("short lived")
    assert bench.extractor.started.wait(timeout=10)
    bench.library.documents.delete(document.id, tenant_id=bench.library.tenant_id)
    bench.extractor.gate.set()
    bench.until(bench.upload("another document"), "indexed")

    assert len(ChunkRepository(bench.library.database).visible_keys()) == 1


@pytest.mark.parametrize("error", [None, Malformed("The parser was stopped.")])
def test_stopping_puts_the_job_at_hand_back_into_the_queue(bench, error):
    bench.extractor.gate.clear()
    document = bench.upload("unfinished")
    assert bench.extractor.started.wait(timeout=10)
    bench.extractor.error = error
    stopping = threading.Thread(target=bench.worker.stop)
    stopping.start()
    time.sleep(0.1)
    bench.extractor.gate.set()
    stopping.join(timeout=20)

    assert bench.library.get(document.id).status == "queued"
    job = bench.library.jobs.get(document.job_id, tenant_id=bench.library.tenant_id)
    assert (job.status, job.attempts) == ("queued", 0)
