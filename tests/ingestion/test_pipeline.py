"""ingestion.pipeline: extract, chunk, embed, with the price known before it is paid."""

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingestion.chunking import Chunker
from ingestion.errors import NoText
from ingestion.extraction import LocalExtractor
from ingestion.pipeline import EmbeddingBlock, Pipeline, ReadyVersion
from ingestion.types import Stage, StageProgress
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


def pipeline_of(events: list[object], *, block_passages: int = 4) -> Pipeline:
    chunker = Chunker(word_piece(), max_tokens=48, overlap=8)
    return Pipeline(LocalExtractor(), chunker, LengthEmbedder(events), block_passages=block_passages)


def prepare(path: Path, events: list[object]) -> ReadyVersion:
    return pipeline_of(events).prepare(path, filename="a.txt", on_progress=events.append)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    file = tmp_path / "upload"
    file.write_text("The quick brown fox jumps over the lazy dog. " * 60)
    return file


def test_the_blocks_hold_the_passages_in_order(path: Path) -> None:
    prepared = prepare(path, [])

    assert len(prepared.passages) > 8
    assert [len(block.texts) for block in prepared.blocks[:-1]] == [4] * (len(prepared.blocks) - 1)
    assert [block.first_ordinal for block in prepared.blocks] == list(range(0, len(prepared.passages), 4))
    texts = [text for block in prepared.blocks for text in block.texts]
    assert texts == [passage.embedding_text for passage in prepared.passages]
    assert prepared.extraction.text == path.read_text()


def test_every_passage_gets_the_vector_of_its_embedding_text(path: Path) -> None:
    events: list[object] = []
    prepared = prepare(path, [])

    vectors = pipeline_of(events).embed(prepared.blocks)

    assert events == ["embedding begins"], "all blocks given at once are one call"
    assert [len(rows) for rows in vectors] == [len(block.texts) for block in prepared.blocks]
    rows = [row for block in vectors for row in block.tolist()]
    assert rows == [[len(passage.embedding_text), 1] for passage in prepared.passages]


def test_the_exact_price_is_known_before_anything_is_embedded(path: Path) -> None:
    events: list[object] = []

    prepared = prepare(path, events)

    assert prepared.tokens == sum(token_count(word_piece(), each.embedding_text) + 1 for each in prepared.passages)
    assert "embedding begins" not in events


def test_progress_tells_the_stages_as_they_end(path: Path) -> None:
    events: list[object] = []

    prepare(path, events)

    assert events == [StageProgress(Stage.EXTRACTING, 1, 1), StageProgress(Stage.CHUNKING, 1, 1)]


def test_what_progress_raises_ends_the_preparation(path: Path) -> None:
    class GoneError(Exception):
        pass

    def refuse(_: StageProgress) -> None:
        raise GoneError

    with pytest.raises(GoneError):
        pipeline_of([]).prepare(path, filename="a.txt", on_progress=refuse)


def test_a_file_that_cannot_be_read_costs_nothing(tmp_path: Path) -> None:
    blank = tmp_path / "upload"
    blank.write_text(" \n ")

    with pytest.raises(NoText):
        prepare(blank, [])


@given(st.lists(st.text(max_size=4), max_size=4), st.lists(st.text(max_size=4), max_size=4))
def test_blocks_have_the_same_digest_only_if_their_texts_are_the_same(first: list[str], second: list[str]) -> None:
    digests = [EmbeddingBlock(0, tuple(texts), 1).digest for texts in (first, second)]

    assert (digests[0] == digests[1]) == (first == second)
