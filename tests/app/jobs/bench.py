"""A worker over a scratch library, with an extractor and an embedder that tests hold by the reins."""

import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import sqlalchemy as sa

from app.db.chunks import ChunkRepository
from app.db.document_rows import ClaimedJob
from app.db.jobs import JobRepository
from app.db.tables.documents import chunk, chunk_vector, embedding_checkpoint
from app.db.tables.ledger import usage_event
from app.documents.adapters.faiss_vectors import FaissVectors
from app.documents.adapters.word_index import WordIndex
from app.documents.indexes import Indexes
from app.documents.passwords import Passwords
from app.documents.ports import new_object_name
from app.ids import new_id
from app.jobs.attempt import Billing, Ingestion
from app.jobs.worker import Worker
from app.telemetry.metrics import Metrics
from app.telemetry.timing import Instruments
from app.types import Document
from app.usage.ledger.events import UsageEvent
from app.usage.ledger.ledger import Ledger
from ingestion.chunking import Chunker
from ingestion.pipeline import Pipeline
from ingestion.types import Block, BlockKind, Extraction, MediaType, Stage
from retrieval.ports import Keys, Vectors
from tests.app.db.samples import EMBEDDER, Library
from tests.ingestion.small_tokenizer import word_piece
from tests.originals import files_in

PATIENCE_SECONDS = 60.0


class FakeExtractor:
    """Reads text files, noting their passwords; waits for `gate`, and raises what it is told to."""

    def __init__(self) -> None:
        self.passwords: list[str | None] = []
        self.error: Exception | None = None
        self.gate = threading.Event()
        self.gate.set()
        self.started = threading.Event()

    def extract(self, path: Path, *, filename: str, password: str | None = None) -> Extraction:
        self.passwords.append(password)
        self.started.set()
        self.gate.wait(timeout=20)
        if self.error is not None:
            raise self.error
        text = path.read_text()
        return Extraction(MediaType.TEXT, None, text, (), (Block(BlockKind.PARAGRAPH, 0, len(text), None, ()),))


class FakeEmbedder:
    """Deterministic unit vectors, a little different in other company: as a real one's are, by its padding."""

    info = EMBEDDER

    def __init__(self) -> None:
        self.calls: list[list[str]] = []
        self.before: Callable[[Sequence[str]], None] = lambda texts: None

    def count_tokens(self, text: str) -> int:
        return len(text.split()) + 2

    def count_query(self, text: str) -> int:
        return min(self.count_tokens(text), self.info.max_tokens)

    def count_documents(self, texts: Sequence[str], *, counted: Sequence[int]) -> int:
        return sum(counted)

    def embed_documents(self, texts: Sequence[str], *, on_batch: Callable[[int], None] | None = None) -> Vectors:
        self.before(texts)
        self.calls.append(list(texts))
        if on_batch is not None:
            for done in range(1, len(texts) + 1):
                on_batch(done)
        company = sum(map(len, texts)) % 97
        rows = np.array([[len(text) + place for place in range(EMBEDDER.dim)] for text in texts], dtype=np.float32)
        rows[:, 0] += company
        unit: Vectors = rows / np.linalg.norm(rows, axis=1, keepdims=True)
        return unit

    def embed_query(self, text: str) -> Vectors:
        row: Vectors = self.embed_documents([text])[0]
        return row


class CountingJobs(JobRepository):
    """Counts the progress that is written down: each time is a transaction."""

    written = 0

    def progress(self, claimed: ClaimedJob, stage: Stage, *, done: int, total: int) -> bool:
        self.written += 1
        return super().progress(claimed, stage, done=done, total=total)


class HookedIndex(FaissVectors):
    """Lets a test act between a commit and the moment the index learns of it."""

    before_add: Callable[[], None] = staticmethod(lambda: None)

    def add(self, keys: Keys, vectors: Vectors) -> None:
        self.before_add()
        super().add(keys, vectors)


class Bench:
    """A worker of one boot over a scratch library; blocks of four passages unless said otherwise."""

    def __init__(
        self,
        library: Library,
        folder: Path,
        *,
        boot_id: str = "boot-1",
        parsers: int = 1,
        block_passages: int = 4,
        ledger: Ledger | None = None,
        may_claim: Callable[[], bool] = lambda: True,
    ) -> None:
        self.library = library
        self.files = files_in(folder, library.database, boot_id=boot_id)
        self.extractor = FakeExtractor()
        self.embedder = FakeEmbedder()
        self.passwords = Passwords()
        self.metrics = Metrics()
        self.ledger = ledger or Ledger(library.database, boot_id=boot_id)
        self.chunks = ChunkRepository(library.database)
        self.index = HookedIndex(folder / "index", embedder=EMBEDDER, generation=library.generation, chunks=self.chunks)
        self.lexical = WordIndex(folder / "lexical", database=library.database, chunks=self.chunks, engine="sql")
        self.indexes = Indexes(self.index, self.lexical)
        self.jobs = CountingJobs(library.database, may_claim=lambda _: may_claim())
        chunker = Chunker(word_piece(), max_tokens=64, overlap=8)
        ingestion = Ingestion(
            jobs=self.jobs,
            files=self.files,
            pipeline=Pipeline(self.extractor, chunker, self.embedder, block_passages=block_passages),
            billing=Billing(self.ledger, self.embedder),
            instruments=Instruments(self.metrics),
            passwords=self.passwords,
        )
        self.worker = Worker(ingestion, indexes=self.indexes, boot_id=boot_id, parsers=parsers)

    def upload(self, text: str, **fields: object) -> Document:
        """As the intake does: the original is stored before the row is committed, and so before a worker reads it."""
        content = text.encode()
        received = self.files.spool.receive([content], name=new_id("in"), limit=len(content))
        with self.files.put(received, name=new_object_name()) as original:
            document = self.library.upload(text, original=original, **fields)  # type: ignore[arg-type]
        self.files.spool.discard(received)
        self.worker.wake()
        return document

    def delete(self, document: Document) -> None:
        """As the intake does: SQL forgets, then the indexes and the disk."""
        removal = self.library.documents.delete(
            document.id, tenant_id=self.library.tenant_id, follow=self.indexes.remove_in
        )
        self.indexes.forget(removal.keys)
        self.files.drop(removal.originals)

    def assert_consistent(self) -> None:
        """What can be found is what is stored, with its vectors, and nothing else."""
        visible = self.chunks.visible_keys()
        with self.library.database.read() as connection:
            for table in (chunk, chunk_vector):
                assert connection.execute(sa.select(sa.func.count()).select_from(table)).scalar() == len(visible)
            assert connection.execute(sa.select(sa.func.count()).select_from(embedding_checkpoint)).scalar() == 0
            reserved = usage_event.c.status == "reserved"
            assert connection.execute(sa.select(sa.func.count()).where(reserved)).scalar() == 0
        assert self.index.current().keys().tolist() == visible.tolist()

    def until(self, document: Document, *statuses: str) -> Document:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while (now := self.library.get(document.id)).status not in statuses:
            assert time.monotonic() < deadline, now.status
            time.sleep(0.02)
        return now

    def bill(self, document: Document) -> tuple[UsageEvent, ...]:
        """The ledger rows of a document's job, once none of them is open."""
        eventually(lambda: all(row.status != "reserved" for row in self.ledger.usage(document.job_id)))
        return self.ledger.usage(document.job_id)

    def vectors(self) -> bytes:
        """Every vector that is stored, in the order of the chunks."""
        keys = self.chunks.visible_keys()
        return self.chunks.vectors(keys.tolist(), generation=self.library.generation)[1].tobytes()


def eventually(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)
