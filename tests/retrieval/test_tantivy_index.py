"""retrieval.tantivy_index ranks as BM25 written out does, whatever the scope."""

import math
import random
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from retrieval.errors import IndexCorrupt
from retrieval.key_set import KeySet
from retrieval.tantivy_index import LexicalEntry, TantivyIndex

WORDS = ("apple", "pear", "plum", "fig", "quince")
texts = st.lists(st.lists(st.sampled_from(WORDS), min_size=1, max_size=30).map(" ".join), min_size=1, max_size=12)


@pytest.fixture
def index(tmp_path: Path) -> Iterator[TantivyIndex]:
    index = TantivyIndex.create(tmp_path / "index")
    yield index
    index.close()


def hold(index: TantivyIndex, passages: Sequence[str]) -> None:
    index.add(LexicalEntry(key, "t", "c", "", text) for key, text in enumerate(passages, start=1))
    index.commit()


def find(index: TantivyIndex, query: str, **scope: object) -> list[tuple[int, float]]:
    given = {"tenant_id": "t", "collection_ids": None, "allowed": None, "k": 99} | scope
    return index.search(query, **given)  # type: ignore[arg-type]


def bm25(passages: Sequence[str], query: Sequence[str]) -> dict[int, float]:
    """Robertson and Zaragoza 2009, k1 = 1.2, b = 0.75, with Lucene's idf, which is never negative."""
    counts = [Counter(text.split()) for text in passages]
    mean = sum(count.total() for count in counts) / len(counts)
    scores: dict[int, float] = {}
    for key, count in enumerate(counts, start=1):
        for word in query:
            holding = sum(word in each for each in counts)
            if count[word]:
                idf = math.log(1 + (len(counts) - holding + 0.5) / (holding + 0.5))
                norm = 1.2 * (1 - 0.75 + 0.75 * count.total() / mean)
                scores[key] = scores.get(key, 0.0) + idf * count[word] * 2.2 / (count[word] + norm)
    return scores


@settings(deadline=None, max_examples=10)
@given(passages=texts, query=st.lists(st.sampled_from(WORDS), min_size=1, max_size=4, unique=True))
def test_scores_are_bm25(tmp_path_factory: pytest.TempPathFactory, passages: list[str], query: list[str]) -> None:
    index = TantivyIndex.create(tmp_path_factory.mktemp("index"))
    hold(index, passages)

    found = find(index, " ".join(query))
    index.close()

    assert dict(found) == pytest.approx(bm25(passages, query), rel=1e-4)
    assert found == sorted(found, key=lambda each: (-each[1], each[0]))


@pytest.fixture(scope="module")
def fruit(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TantivyIndex]:
    """Sixty passages in three segments and two collections, with many ties."""
    index = TantivyIndex.create(tmp_path_factory.mktemp("fruit"))
    draw = random.Random(0)
    for start in (1, 21, 41):
        index.add(
            LexicalEntry(key, "t", ("even", "odd")[key % 2], "", " ".join(draw.choices(WORDS, k=draw.randint(1, 4))))
            for key in range(start, start + 20)
        )
        index.commit()
    yield index
    index.close()


@settings(deadline=None)
@given(
    query=st.lists(st.sampled_from(WORDS), min_size=1, max_size=3).map(" ".join),
    allowed=st.sets(st.integers(1, 80)) | st.none(),
    collections=st.sets(st.sampled_from(["even", "odd"])) | st.none(),
    k=st.integers(0, 30),
)
def test_a_scoped_search_is_the_whole_ranking_less_what_is_out_of_scope(
    fruit: TantivyIndex, query: str, allowed: set[int] | None, collections: set[str] | None, k: int
) -> None:
    keys = None if allowed is None else KeySet(np.array(sorted(allowed), dtype=np.int64))
    names = None if collections is None else tuple(collections)

    inside = [
        (key, score)
        for key, score in find(fruit, query)
        if (allowed is None or key in allowed) and (names is None or ("even", "odd")[key % 2] in names)
    ]

    assert find(fruit, query, allowed=keys, collection_ids=names, k=k) == inside[:k]


def test_a_large_set_of_keys_is_read_off_a_longer_ranking(index: TantivyIndex) -> None:
    hold(index, ["fig fig"] * 700 + ["fig and other words"] * 60)
    far_away = np.arange(10_000, 15_000)
    few = find(index, "fig", allowed=KeySet(np.concatenate([[705, 730], far_away])), k=5)

    assert [key for key, _ in few] == [705, 730]


def test_what_is_removed_and_added_again_is_replaced_and_nothing_shows_before_the_commit(index: TantivyIndex) -> None:
    index.add([LexicalEntry(1, "t", "c", "", "old"), LexicalEntry(2, "t", "c", "", "x")])
    index.remove([1, 2, 3])
    index.add([LexicalEntry(1, "t", "c", "", "new")])
    assert len(index) == 0
    index.commit()

    assert index.keys().tolist() == [1]
    assert [find(index, word) for word in ("old", "x")] == [[], []]
    assert len(find(index, "new")) == 1


def test_keys_are_listed_however_far_apart_they_are(index: TantivyIndex) -> None:
    keys = [0, 99_999, 100_000, 123_456_789_012]
    index.add(LexicalEntry(key, "t", "c", "", "x") for key in keys)
    index.commit()

    assert index.keys().tolist() == keys


def test_decomposed_letters_are_the_composed_ones(index: TantivyIndex) -> None:
    hold(index, ["Zu\u0308rich"])

    assert len(find(index, "zürich")) == len(find(index, "zurich")) == len(find(index, "ZU\u0308RICH")) == 1


def test_a_folder_without_an_index_is_refused(tmp_path: Path) -> None:
    with pytest.raises(IndexCorrupt):
        TantivyIndex.open(tmp_path / "none")
