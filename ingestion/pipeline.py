"""A stored file to passages with vectors: extract, chunk, embed."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from ingestion.chunking import Chunker
from ingestion.ports import Extractor
from ingestion.types import Extraction, Passage, Progress, Stage
from retrieval.ports import Embedder, Vectors


@dataclass(frozen=True, slots=True)
class Ingested:
    """A document version ready to be stored.

    `vectors` is (len(passages), dim) float32, row n belonging to `passages[n]`; `embedding_tokens`
    is what the embedder read for them.
    """

    extraction: Extraction
    passages: tuple[Passage, ...]
    vectors: Vectors
    embedding_tokens: int


class Pipeline:
    """Runs one document at a time through its three stages; holds no state between documents."""

    def __init__(self, extractor: Extractor, chunker: Chunker, embedder: Embedder) -> None:
        self._extractor = extractor
        self._chunker = chunker
        self._embedder = embedder

    def run(
        self,
        path: Path,
        *,
        filename: str,
        on_progress: Callable[[Progress], None],
        before_embedding: Callable[[int], None],
    ) -> Ingested:
        """Ingest the file at `path`, uploaded as `filename`.

        `before_embedding` is called once, with the exact number of tokens that embedding will cost,
        before the first of them is spent. What either callback raises ends the run.

        Raises:
            IngestionError: The file cannot be read; the reason is its subclass and message.
        """
        on_progress(Progress(Stage.EXTRACTING, 0, 1))
        extraction = self._extractor.extract(path, filename=filename)
        on_progress(Progress(Stage.EXTRACTING, 1, 1))

        on_progress(Progress(Stage.CHUNKING, 0, 1))
        passages = self._chunker.chunk(extraction)
        assert passages, "an extraction has text, so it has passages"
        on_progress(Progress(Stage.CHUNKING, 1, 1))

        total = len(passages)
        texts = [passage.embedding_text for passage in passages]
        tokens = self._embedder.count_documents(texts, counted=[passage.token_count for passage in passages])
        before_embedding(tokens)
        on_progress(Progress(Stage.EMBEDDING, 0, total))
        vectors = self._embedder.embed_documents(
            texts,
            on_batch=lambda done: on_progress(Progress(Stage.EMBEDDING, done, total)),
        )
        assert len(vectors) == total, "the embedder answers with one row per text"
        return Ingested(extraction, tuple(passages), vectors, embedding_tokens=tokens)
