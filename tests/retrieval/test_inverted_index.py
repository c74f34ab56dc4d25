"""retrieval.inverted_index finds nearly what brute force finds, with exact scores where the vectors are known."""

import numpy as np
import pytest

from retrieval.inverted_index import InvertedIndex
from retrieval.key_set import KeySet
from retrieval.ports import VectorIndex, Vectors
from tests.retrieval.exact_index import ExactIndex
from tests.retrieval.test_vector_index_contract import Inverted


def clustered(count: int, *, queries: int, seed: int = 0) -> tuple[Vectors, Vectors]:
    """Unit rows and queries about 100 centres of 32 dimensions: texts crowd about topics, noise does not."""
    random = np.random.default_rng(seed)
    centres = random.standard_normal((100, 32))
    noisy = centres[random.integers(0, 100, count + queries)] + 0.8 * random.standard_normal((count + queries, 32))
    unit = (noisy / np.linalg.norm(noisy, axis=1, keepdims=True)).astype(np.float32)
    return unit[:count], unit[count:]


class Narrow(Inverted):
    """Reads a sixteenth of its lists, as a large index does; a small one would be read whole."""

    def probes(self, share: float) -> int:
        return min(self.lists, int(self.lists / 16 / share) + 1)


@pytest.mark.parametrize(("share", "floor"), [(None, 0.98), (0.5, 0.98), (0.01, 0.95)])
def test_an_inverted_index_finds_nearly_all_that_brute_force_finds(share: float | None, floor: float) -> None:
    vectors, queries = clustered(20_000, queries=50)
    trained = InvertedIndex.train(vectors, lists=128, exact=None, threads=1)
    index = Narrow(32, trained=trained)
    exact = ExactIndex(32)
    index.add(np.arange(20_000), vectors)
    exact.add(np.arange(20_000), vectors)
    allowed = None if share is None else KeySet(np.arange(0, 20_000, int(1 / share)))

    def keys_found(index: VectorIndex) -> list[set[int]]:
        return [{key for key, _ in index.search(query, k=10, allowed=allowed)} for query in queries]

    found, right = keys_found(index), keys_found(exact)

    assert sum(len(a & b) for a, b in zip(found, right, strict=True)) / 500 >= floor


def test_scores_of_an_inverted_index_are_exact_where_the_vectors_are_known() -> None:
    vectors, queries = clustered(2_000, queries=5)
    index = Inverted(32)
    index.add(np.arange(2_000), vectors)
    index.lose(17)  # deleted from the store a moment ago: the approximate score stays

    for query in (*queries, vectors[17]):
        for key, score in index.search(query, k=30, allowed=None):
            assert score == pytest.approx(float(vectors[key] @ query), abs=0.05 if key == 17 else 1e-6)


def test_too_few_vectors_cannot_train_an_inverted_index() -> None:
    with pytest.raises(ValueError, match="8 lists cannot be trained on 3 vectors"):
        InvertedIndex.train(np.ones((3, 4), np.float32), lists=8, exact=None)
