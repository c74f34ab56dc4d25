"""retrieval.tantivy_index ranks as BM25 written out does, whatever the scope."""

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
from retrieval.tantivy_fields import LexicalEntry
from retrieval.tantivy_index import TantivyIndex
from tests.bm25 import bm25, lucene

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


def expected(passages: Sequence[str], query: Sequence[str], scope: Sequence[int] | None = None) -> dict[int, float]:
    """The score of each passage in scope that holds a word of the query, numbered from 1."""
    counts = {key: Counter(text.split()) for key, text in enumerate(passages, start=1)}
    lengths = {key: count.total() for key, count in counts.items()}
    return bm25(counts, lengths, query, scope=list(counts) if scope is None else scope, weigh=lucene)


@settings(deadline=None, max_examples=10)
@given(passages=texts, query=st.lists(st.sampled_from(WORDS), min_size=1, max_size=4, unique=True))
def test_scores_are_bm25(tmp_path_factory: pytest.TempPathFactory, passages: list[str], query: list[str]) -> None:
    index = TantivyIndex.create(tmp_path_factory.mktemp("index"))
    hold(index, passages)

    found = find(index, " ".join(query))
    index.close()

    assert dict(found) == pytest.approx(expected(passages, query), rel=1e-4)
    assert found == sorted(found, key=lambda each: (-each[1], each[0]))


@settings(deadline=None, max_examples=25)
@given(passages=texts, others=texts, query=st.lists(st.sampled_from(WORDS), min_size=1, max_size=4, unique=True))
def test_rarity_is_that_of_the_scope_whoever_else_is_there(
    tmp_path_factory: pytest.TempPathFactory, passages: list[str], others: list[str], query: list[str]
) -> None:
    index = TantivyIndex.create(tmp_path_factory.mktemp("index"))
    everything = [*passages, *others]
    for place, text in enumerate(everything):
        mine, key = place < len(passages), place + 1
        index.add([LexicalEntry(key, "t" if mine or key % 2 else "u", "c" if mine else "d", "", text)])
    index.add(LexicalEntry(key, "u", "e", "", "fig apple") for key in (1001, 1002))  # counted until it is merged away
    index.commit()
    index.remove([1001])
    index.commit()

    by_collection = find(index, " ".join(query), collection_ids=["c"])
    odd = [key for key in range(1, len(everything) + 1) if key <= len(passages) or key % 2]
    by_tenant = find(index, " ".join(query))
    index.close()

    held = [*everything, "fig apple", "fig apple"]  # whose lengths make the mean
    assert dict(by_collection) == pytest.approx(expected(held, query, range(1, len(passages) + 1)), rel=1e-4)
    assert dict(by_tenant) == pytest.approx(expected(held, query, odd), rel=1e-4)


def test_a_count_is_forgotten_with_the_next_commit(index: TantivyIndex) -> None:
    hold(index, ["fig", "plum", "pear"])
    index.add([LexicalEntry(9, "u", "c", "", "fig")])
    index.commit()
    find(index, "fig")
    index.add([LexicalEntry(4, "t", "c", "", "fig"), LexicalEntry(5, "t", "c", "", "plum")])
    index.commit()

    held = ["fig", "plum", "pear", "fig", "plum", "fig"]
    assert dict(find(index, "fig")) == pytest.approx(expected(held, ["fig"], range(1, 6)), rel=1e-4)


def test_many_collections_are_looked_up_as_a_set_with_the_same_result(index: TantivyIndex) -> None:
    index.add(LexicalEntry(key, "t", f"c{key % 80}", "", ("fig", "fig plum")[key % 2]) for key in range(1, 161))
    index.commit()
    few, many = ([f"c{number}" for number in range(count)] for count in (60, 70))
    nowhere = [f"none{number}" for number in range(70)]

    assert find(index, "fig", collection_ids=[*few, *nowhere]) == find(index, "fig", collection_ids=few)
    assert len(find(index, "fig", collection_ids=many, k=999)) == 140


def test_a_part_of_a_word_is_found_and_only_in_scope(index: TantivyIndex) -> None:
    index.add([LexicalEntry(1, "t", "c", "", "getUserById"), LexicalEntry(2, "u", "c", "", "getUserById setName")])
    index.commit()

    assert [key for key, _ in find(index, "etUserBy")] == [1]
    assert find(index, "etName") == []


@pytest.fixture(scope="module")
def fruit(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[TantivyIndex, list[str]]]:
    """Sixty passages in three segments and two collections, with many ties."""
    index = TantivyIndex.create(tmp_path_factory.mktemp("fruit"))
    draw = random.Random(0)
    passages = [" ".join(draw.choices(WORDS, k=draw.randint(1, 4))) for _ in range(60)]
    for start in (1, 21, 41):
        index.add(
            LexicalEntry(key, "t", ("even", "odd")[key % 2], "", passages[key - 1]) for key in range(start, start + 20)
        )
        index.commit()
    yield index, passages
    index.close()


@settings(deadline=None)
@given(
    query=st.lists(st.sampled_from(WORDS), min_size=1, max_size=3, unique=True),
    allowed=st.sets(st.integers(1, 80)) | st.none(),
    collections=st.sets(st.sampled_from(["even", "odd"])) | st.none(),
    k=st.integers(0, 30),
)
def test_keys_choose_from_the_ranking_of_the_collections(
    fruit: tuple[TantivyIndex, list[str]],
    query: list[str],
    allowed: set[int] | None,
    collections: set[str] | None,
    k: int,
) -> None:
    index, passages = fruit
    keys = None if allowed is None else KeySet(np.array(sorted(allowed), dtype=np.int64))
    names = None if collections is None else tuple(collections)

    ranking = find(index, " ".join(query), collection_ids=names)
    scope = [key for key in range(1, 61) if names is None or ("even", "odd")[key % 2] in names]

    assert dict(ranking) == pytest.approx(expected(passages, query, scope), rel=1e-4)
    inside = [(key, score) for key, score in ranking if allowed is None or key in allowed]
    assert find(index, " ".join(query), allowed=keys, collection_ids=names, k=k) == inside[:k]


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
