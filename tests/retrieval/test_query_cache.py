"""retrieval.query_cache caches the embeddings of recent questions per tenant."""

from collections.abc import Callable, Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrieval.ports import Vectors
from retrieval.query_cache import QueryCache
from retrieval.types import EmbedderInfo


class CountingEmbedder:
    """Implements `Embedder`; notes every question it computes."""

    info = EmbedderInfo(model="counting", revision="r", dim=2, max_tokens=9)

    def __init__(self) -> None:
        self.asked: list[str] = []

    def count_tokens(self, text: str) -> int:
        return len(text) + 2

    def count_query(self, text: str) -> int:
        return min(self.count_tokens(text), self.info.max_tokens)

    def count_documents(self, texts: Sequence[str], *, counted: Sequence[int]) -> int:
        return sum(counted)

    def embed_documents(self, texts: Sequence[str], *, on_batch: Callable[[int], None] | None = None) -> Vectors:
        if on_batch is not None:
            on_batch(len(texts))
        return np.stack([_vector(text) for text in texts])

    def embed_query(self, text: str) -> Vectors:
        self.asked.append(text)
        return _vector(text)


def _vector(text: str) -> Vectors:
    angle = float(sum(map(ord, text)))
    return np.array([np.cos(angle), np.sin(angle)], dtype=np.float32)


def test_a_question_asked_again_is_not_computed_and_costs_nothing() -> None:
    embedder = CountingEmbedder()
    cache = QueryCache(embedder, size=2)

    first, again = cache.embed_counted("who?"), cache.embed_counted("who?")

    assert (first.tokens, again.tokens) == (6, 0)
    assert embedder.asked == ["who?"]
    np.testing.assert_array_equal(first.vector, again.vector)


def test_e5_a_question_another_tenant_asked_is_computed_though_the_same_tenants_is_remembered() -> None:
    embedder = CountingEmbedder()
    cache = QueryCache(embedder, size=4)
    cache.embed_counted("a question", salt="acme")

    same, other = (cache.embed_counted("a question", salt=salt) for salt in ("acme", "rival"))

    assert same.tokens == 0
    assert other.tokens == embedder.count_query("a question")
    assert len(embedder.asked) == 2, "what the rival waits for is computed for it"


def test_the_question_unused_for_longest_is_forgotten_first() -> None:
    embedder = CountingEmbedder()
    cache = QueryCache(embedder, size=2)

    for text in ("a", "b", "a", "c", "a", "b"):
        cache.embed_query(text)

    assert embedder.asked == ["a", "b", "c", "b"]


@given(texts=st.lists(st.text("aB ", max_size=3), max_size=30), size=st.integers(1, 4))
def test_every_answer_is_the_embedders_own(texts: list[str], size: int) -> None:
    embedder = CountingEmbedder()
    cache = QueryCache(embedder, size=size)

    costs = [cache.embed_counted(text).tokens for text in texts]

    assert sum(costs) == sum(embedder.count_tokens(text) for text in embedder.asked)
    for text in texts:
        np.testing.assert_array_equal(cache.embed_query(text), _vector(text))


def test_what_is_handed_out_cannot_be_changed() -> None:
    vector = QueryCache(CountingEmbedder(), size=1).embed_query("who?")

    with pytest.raises(ValueError, match="read-only"):
        vector[0] = 1


def test_documents_pass_through_with_their_progress() -> None:
    embedder = CountingEmbedder()
    done: list[int] = []

    rows = QueryCache(embedder, size=1).embed_documents(["a", "b"], on_batch=done.append)

    assert rows.shape == (2, 2)
    assert done == [2]
    assert embedder.asked == []


def test_a_cache_of_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="at least 1"):
        QueryCache(CountingEmbedder(), size=0)
