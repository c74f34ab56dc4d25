"""The ingestion pipeline of a stored file: extract, chunk, embed."""

import hashlib
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ingestion.chunking import Chunker
from ingestion.ports import Extractor
from ingestion.types import ChunkDraft, Extraction, Stage, StageProgress
from retrieval.ports import Embedder, Timer, Vectors

BLOCK_PASSAGES = 256
"""How many passages are embedded at once, and kept at once by a job that may have to go on later."""


@dataclass(frozen=True, slots=True)
class EmbeddingBlock:
    """Texts that are embedded together: those of the passages from `first_ordinal` on, `tokens` for the embedder."""

    first_ordinal: int
    texts: tuple[str, ...]
    tokens: int

    @property
    def digest(self) -> str:
        """SHA-256 of the texts and where each of them ends."""
        digest = hashlib.sha256()
        for text in self.texts:
            data = text.encode("utf-8", "surrogatepass")
            digest.update(len(data).to_bytes(8, "little"))
            digest.update(data)
        return digest.hexdigest()


@dataclass(frozen=True, slots=True)
class ReadyVersion:
    """A document version ready to be embedded; `blocks` holds the texts of all passages, in order."""

    extraction: Extraction
    passages: tuple[ChunkDraft, ...]
    blocks: tuple[EmbeddingBlock, ...]

    @property
    def tokens(self) -> int:
        """The tokens to embed for all passages."""
        return sum(block.tokens for block in self.blocks)


class Pipeline:
    """Runs documents through the stages; holds no state between them, so several threads may use it.

    The texts of a document always form the same blocks, and a block of a document with several is embedded by
    itself: its vectors do not depend on which blocks were embedded before, or by which process.
    """

    def __init__(
        self,
        extractor: Extractor,
        chunker: Chunker,
        embedder: Embedder,
        *,
        block_passages: int = BLOCK_PASSAGES,
        timed: Timer = nullcontext,
    ) -> None:
        """`timed` times the parts of `prepare`."""
        assert block_passages > 0, "a block holds a passage"
        self._extractor = extractor
        self._chunker = chunker
        self._embedder = embedder
        self._block_passages = block_passages
        self._timed = timed

    @property
    def block_passages(self) -> int:
        """The most passages of a block."""
        return self._block_passages

    def prepare(
        self,
        path: Path,
        *,
        filename: str,
        password: str | None = None,
        on_progress: Callable[[StageProgress], None],
    ) -> ReadyVersion:
        """Extract and chunk the file at `path`, uploaded as `filename`; an error of `on_progress` ends it.

        Raises:
            IngestionError: The file cannot be read; the reason is its subclass and message.
        """
        with self._timed("extract"):
            extraction = self._extractor.extract(path, filename=filename, password=password)
        on_progress(StageProgress(Stage.EXTRACTING, 1, 1))
        ready = self.cut(extraction)
        on_progress(StageProgress(Stage.CHUNKING, 1, 1))
        return ready

    def cut(self, extraction: Extraction) -> ReadyVersion:
        """Cut a text that was read into passages."""
        with self._timed("chunk"):
            passages = self._chunker.chunk(extraction)
        assert passages, "an extraction has text, so it has passages"
        blocks = []
        for first in range(0, len(passages), self._block_passages):
            members = passages[first : first + self._block_passages]
            texts = tuple(passage.embedding_text for passage in members)
            counted = [passage.token_count for passage in members]
            blocks.append(EmbeddingBlock(first, texts, self._embedder.count_documents(texts, counted=counted)))
        return ReadyVersion(extraction, tuple(passages), tuple(blocks))

    def embed(
        self, blocks: Sequence[EmbeddingBlock], *, on_batch: Callable[[int], None] | None = None
    ) -> list[Vectors]:
        """Embed blocks in one call; `(len(texts), dim)` float32 a block. An error of `on_batch(done)` ends it."""
        texts = [text for block in blocks for text in block.texts]
        vectors = self._embedder.embed_documents(texts, on_batch=on_batch)
        assert len(vectors) == len(texts), "the embedder answers with one row per text"
        ends = np.cumsum([len(block.texts) for block in blocks])[:-1]
        return list(np.split(vectors, ends))
