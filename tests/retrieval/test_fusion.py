"""retrieval.fusion ranks by reciprocal ranks."""

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrieval.fusion import reciprocal_rank_fusion

rankings = st.lists(st.lists(st.integers(0, 20), unique=True, max_size=12), max_size=4)


def test_a_score_is_the_sum_of_reciprocal_ranks() -> None:
    fused = dict(reciprocal_rank_fusion([[7, 8], [8]], k=60))

    assert fused == pytest.approx({8: 1 / 62 + 1 / 61, 7: 1 / 61})


def test_a_key_high_in_both_rankings_beats_the_first_of_one() -> None:
    assert [key for key, _ in reciprocal_rank_fusion([[1, 2, 3], [4, 2, 5]])] == [2, 1, 4, 3, 5]


def test_equal_ranks_tie_and_the_lower_key_goes_first() -> None:
    fused = reciprocal_rank_fusion([[9, 3, 5], [3, 5, 9], [5, 9, 3]])

    assert [key for key, _ in fused] == [3, 5, 9]
    assert len({score for _, score in fused}) == 1


def test_a_ranking_alone_keeps_its_order() -> None:
    assert [key for key, _ in reciprocal_rank_fusion([[5, 1, 9]])] == [5, 1, 9]


def test_a_key_twice_in_a_ranking_is_our_mistake() -> None:
    with pytest.raises(AssertionError):
        reciprocal_rank_fusion([[1, 1]])


@given(rankings=rankings, seed=st.randoms())
def test_the_order_of_the_rankings_does_not_matter(rankings: list[list[int]], seed: Random) -> None:
    shuffled = rankings.copy()
    seed.shuffle(shuffled)

    assert reciprocal_rank_fusion(rankings) == reciprocal_rank_fusion(shuffled)


@given(rankings=rankings)
def test_every_key_comes_out_once_best_first(rankings: list[list[int]]) -> None:
    fused = reciprocal_rank_fusion(rankings)

    assert sorted(key for key, _ in fused) == sorted({key for ranking in rankings for key in ranking})
    assert fused == sorted(fused, key=lambda pair: (-pair[1], pair[0]))
