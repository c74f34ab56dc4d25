"""ingestion.pipeline: extract, chunk, embed, with the price known before it is paid."""

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest

from ingestion.chunking import Chunker
from ingestion.errors import NoText
from ingestion.extraction import LocalExtractor
from ingestion.pipeline import Ingested, Pipeline
from ingestion.types import Progress, Stage
from retrieval.ports import Vectors
from retrieval.types import EmbedderInfo
from tests.ingestion.small_tokenizer import token_count, word_piece


class LengthEmbedder:
    """Embeds a text as its length: enough to see which row belongs to which text."""

    info = EmbedderInfo(model="length", revision="1", dim=2, max_tokens=48)

    def __init__(self, events: list[object]) -> None:
        self._events = events

    def count_tokens(self, text: str) -> int:
        return token_count(word_piece(), text)

    def count_query(self, text: str) -> int:
        return min(self.count_tokens(text), self.info.max_tokens)

    def count_documents(self, texts: Sequence[str], *, counted: Sequence[int]) -> int:
        return sum(counted) + len(texts)  # a prompt of one token

    def embed_documents(self, texts: Sequence[str], *, on_batch: Callable[[int], None] | None = None) -> Vectors:
        self._events.append("embedding begins")
        if on_batch:
            on_batch(len(texts))
        return np.array([[len(text), 1] for text in texts], dtype=np.float32)

    def embed_query(self, text: str) -> Vectors:
        return np.array([len(text), 1], dtype=np.float32)


def run(path: Path, events: list[object], before_embedding: Callable[[int], None] | None = None) -> Ingested:
    pipeline = Pipeline(LocalExtractor(), Chunker(word_piece(), max_tokens=48, overlap=8), LengthEmbedder(events))
    return pipeline.run(
        path, filename="a.txt", on_progress=events.append, before_embedding=before_embedding or events.append
    )


@pytest.fixture
def path(tmp_path: Path) -> Path:
    file = tmp_path / "upload"
    file.write_text("The quick brown fox jumps over the lazy dog. " * 30)
    return file


def test_every_passage_gets_the_vector_of_its_embedding_text(path: Path) -> None:
    ingested = run(path, [])

    assert len(ingested.passages) > 3
    assert ingested.vectors.tolist() == [[len(passage.embedding_text), 1] for passage in ingested.passages]
    assert ingested.extraction.text == path.read_text()


def test_the_exact_price_is_announced_once_before_anything_is_embedded(path: Path) -> None:
    events: list[object] = []

    ingested = run(path, events)

    tokens = sum(token_count(word_piece(), passage.embedding_text) + 1 for passage in ingested.passages)
    assert ingested.embedding_tokens == tokens
    assert [event for event in events if isinstance(event, int)] == [tokens]
    assert events.index(tokens) < events.index("embedding begins")


def test_progress_tells_each_stage(path: Path) -> None:
    events: list[object] = []

    total = len(run(path, events).passages)

    assert [event for event in events if isinstance(event, Progress)] == [
        Progress(Stage.EXTRACTING, 0, 1),
        Progress(Stage.EXTRACTING, 1, 1),
        Progress(Stage.CHUNKING, 0, 1),
        Progress(Stage.CHUNKING, 1, 1),
        Progress(Stage.EMBEDDING, 0, total),
        Progress(Stage.EMBEDDING, total, total),
    ]


def test_a_price_that_is_refused_ends_the_run_unpaid(path: Path) -> None:
    class OverBudgetError(Exception):
        pass

    def refuse(tokens: int) -> None:
        raise OverBudgetError

    events: list[object] = []
    with pytest.raises(OverBudgetError):
        run(path, events, refuse)

    assert "embedding begins" not in events


def test_a_file_that_cannot_be_read_costs_nothing(tmp_path: Path) -> None:
    blank = tmp_path / "upload"
    blank.write_text(" \n ")
    events: list[object] = []

    with pytest.raises(NoText):
        run(blank, events)

    assert "embedding begins" not in events
