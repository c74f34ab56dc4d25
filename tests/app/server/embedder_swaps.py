"""A running application whose embedder can be swapped: everything is real but the small hashing embedders."""

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from fastapi.testclient import TestClient

from app.answering.retrieving.finder import Finder
from app.answering.retrieving.question_vectors import QuestionVectors
from app.db.chunks import ChunkRepository
from app.db.index_generations import IndexGeneration
from app.db.vectors import VectorRepository
from app.documents.adapters.word_index import WordIndex
from app.documents.index_ports import VectorStore
from app.documents.indexes import Indexes
from app.documents.reembedding import Reembedder
from app.errors import SetupError
from app.jobs.attempt import Billing, Ingestion
from app.jobs.worker import Worker
from app.models.extractive import NoEngine
from app.server.assembly import vector_stores_of
from app.server.bootstrap import build
from app.server.embedder_swap import EmbedderStack, EmbedderSwap
from app.server.serving import Models, Serving
from app.server.state import State
from app.settings import Settings
from app.usage.ledger.ledger import Ledger
from ingestion.chunking import Chunker
from ingestion.extraction import LocalExtractor
from ingestion.pipeline import Pipeline
from retrieval.ports import Embedder, Vectors
from retrieval.search import Search
from tests.app.answering.answerers import make_answerer
from tests.app.api.conftest import ADMIN_KEY, client_of
from tests.app.server.stations import ANY_EVIDENCE
from tests.generation.fakes import LetterTokenizer
from tests.ingestion.small_tokenizer import word_piece
from tests.installation import installed
from tests.retrieval.fakes import HashingEmbedder

BLOCK = 4


class GatedEmbedder(HashingEmbedder):
    """Remembers the texts of documents it embedded; waits with them while its gate is closed."""

    def __init__(self, *, dim: int, before: Callable[[], None] = lambda: None) -> None:
        super().__init__(dim=dim, max_tokens=64)
        self.gate, self.reading = threading.Event(), threading.Event()
        self.gate.set()
        self.documents: list[str] = []
        self._before = before

    def embed_documents(self, texts: Sequence[str], *, on_batch: Callable[[int], None] | None = None) -> Vectors:
        self.reading.set()
        assert self.gate.wait(timeout=60)
        self._before()
        self.documents.extend(texts)
        return super().embed_documents(texts, on_batch=on_batch)


class Served:
    """A running application and an HTTP client of it."""

    def __init__(self, state: State, serving: Serving, client: TestClient, embedder_swap: EmbedderSwap) -> None:
        self.state, self.serving, self.http, self.embedder_swap = state, serving, client, embedder_swap

    def upload(self, *texts: str) -> list[str]:
        """Upload each text as a document, and return the ids once all of them are indexed."""
        ids = [
            self.http.post("/v1/documents", files={"file": (f"{hash(text)}.txt", text.encode())}).json()["id"]
            for text in texts
        ]
        wait_until(lambda: all(self.document(one)["status"] == "indexed" for one in ids))
        return ids

    def document(self, document_id: str) -> dict[str, object]:
        body: dict[str, object] = self.http.get(f"/v1/documents/{document_id}").json()
        return body

    def found(self, query: str, *, top_k: int = 1) -> list[str]:
        """Ids of documents that vector search finds, best first."""
        response = self.http.post("/v1/search", json={"query": query, "mode": "dense", "top_k": top_k})
        assert response.status_code == 200, response.text
        return [hit["document_id"] for hit in response.json()["data"]]

    def serves(self, embedder: Embedder) -> bool:
        """Whether requests are answered with this embedder."""
        return self.serving.current().embedder is embedder

    def generations(self) -> dict[int, str]:
        """Status by number."""
        listed = self.http.get("/v1/admin/generations").json()["data"]
        return {generation["id"]: generation["status"] for generation in listed}

    def swapped(self) -> None:
        """Wait until no generation is being built."""
        wait_until(lambda: self.embedder_swap.building is None)


@contextmanager
def served(data_dir: Path, configured: Embedder, *others: Embedder, **settings_of_its_own: Any) -> Iterator[Served]:
    """The application over `data_dir`, as the composition root would start it, and a client of its administrator.

    `configured` is what its settings ask for, `others` are on the machine, too.
    """
    with running(data_dir, configured, *others, **settings_of_its_own) as (state, serving, embedder_swap):
        with client_of(state) as client:
            yield Served(state, serving, client, embedder_swap)


@contextmanager
def running(
    data_dir: Path, configured: Embedder, *others: Embedder, **settings_of_its_own: Any
) -> Iterator[tuple[State, Serving, EmbedderSwap]]:
    """As `served`, without a client."""
    settings = Settings(data_dir=installed(data_dir), admin_key=ADMIN_KEY, _env_file=None, **settings_of_its_own)
    with ExitStack() as stack:
        state = stack.enter_context(build(settings, with_models=False))
        serving = state.serving
        chunks, ledger = ChunkRepository(state.database), Ledger(state.database, boot_id="boot-1")
        lexical = WordIndex(data_dir / "lexical", database=state.database, chunks=chunks)

        def line(generation: IndexGeneration) -> EmbedderStack:
            for embedder in (configured, *others):
                if generation.is_of(embedder.info):
                    return _line(embedder, state, chunks, ledger, lexical)
            raise SetupError("The embedder is not on this machine.")

        standing = state.corpus.generations.prepare(configured.info, source="configured")
        first = line(standing.active)
        serving.install(first.assemble(first.open_index(standing.active.id)))
        stack.callback(serving.close_index)
        serving.current().worker.start()
        stack.callback(serving.stop_worker)
        vectors = VectorRepository(state.database)
        embedder_swap = EmbedderSwap(
            generations=state.corpus.generations,
            vectors=vectors,
            reembedder=Reembedder(vectors, ledger, block=BLOCK),
            serving=serving,
            load=line,
            stack=first,
            stores=vector_stores_of(settings, state.database, chunks),
        )
        serving.embedder_swap = embedder_swap
        embedder_swap.start(standing)
        stack.callback(embedder_swap.close)
        yield state, serving, embedder_swap


def wait_until(true: Callable[[], bool], *, seconds: float = 60.0) -> None:
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.01)


def _line(
    embedder: Embedder, state: State, chunks: ChunkRepository, ledger: Ledger, lexical: WordIndex
) -> EmbedderStack:
    chunker = Chunker(word_piece(), max_tokens=64, overlap=8)

    def open_index(generation: int) -> VectorStore:
        return vector_stores_of(state.settings, state.database, chunks).open(generation, embedder.info)

    def assemble(index: VectorStore) -> Models:
        engine = NoEngine(revision="1", context_window=2000)
        ingestion = Ingestion(
            jobs=state.corpus.jobs,
            files=state.corpus.files,
            pipeline=Pipeline(LocalExtractor(), chunker, embedder),
            billing=Billing(ledger, embedder),
            instruments=state.telemetry.instruments,
        )
        worker = Worker(ingestion, indexes=Indexes(index, lexical), boot_id="boot-1")
        answerer = make_answerer(
            finder=Finder(search=Search(index, lexical, chunks), vectors=QuestionVectors(embedder)),
            engine=engine,
            tokenizer=LetterTokenizer(),
            contents=state.corpus.contents,
            ledger=ledger,
            limits=ANY_EVIDENCE,
        )
        unused: Any = None
        return Models(
            embedder=embedder,
            engine=engine,
            tokenizer=LetterTokenizer(),
            index=index,
            lexical=lexical,
            answerer=answerer,
            worker=worker,
            inline=unused,
        )

    return EmbedderStack(embedder, chunker.embedding_text, open_index, assemble)
