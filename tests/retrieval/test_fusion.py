"""retrieval.fusion makes one ranking of two, by scores."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrieval.fusion import convex_combination


def test_a_convex_combination_weighs_each_search_against_its_own_best() -> None:
    dense, lexical = [(1, 0.8), (2, 0.3)], [(2, 12.0), (3, 6.0)]

    fused = dict(convex_combination(dense, lexical, dense_weight=0.6))

    # 1 is the best by meaning; 3 is no more similar than the last that was listed, 2
    assert fused == pytest.approx({1: 0.6, 2: 0.6 * 0.5 + 0.4, 3: 0.6 * 0.5 + 0.4 * 0.5})


def test_much_the_best_match_by_meaning_goes_before_a_key_a_little_better_in_words() -> None:
    """What ranks forget: both are first and second, by very different margins."""
    dense, lexical = [(1, 0.9), (2, 0.2)], [(2, 10.0), (1, 9.8)]

    assert [key for key, _ in convex_combination(dense, lexical)] == [1, 2]


@pytest.mark.parametrize(("dense", "lexical"), [([(5, 0.5), (1, 0.2)], []), ([], [(5, 7.0), (1, 2.0)])])
def test_a_search_alone_keeps_its_order_and_its_best_is_1(
    dense: list[tuple[int, float]], lexical: list[tuple[int, float]]
) -> None:
    fused = convex_combination(dense, lexical)

    assert [key for key, _ in fused] == [5, 1]
    assert fused[0][1] == 1.0


def test_nothing_similar_and_nothing_worded_is_0_not_a_division() -> None:
    assert convex_combination([(1, -0.5), (2, -0.9)], [(1, 0.0)]) == [(1, 0.0), (2, 0.0)]


scored = st.dictionaries(st.integers(0, 20), st.floats(-1.0, 1.0), max_size=12)
# Scores so small that half of one is nothing do not scale.
worded = st.dictionaries(st.integers(0, 20), st.just(0.0) | st.floats(1e-6, 1e6), max_size=12)


def _ranked(scores: dict[int, float]) -> list[tuple[int, float]]:
    return sorted(scores.items(), key=lambda pair: (-pair[1], pair[0]))


@given(dense=scored, lexical=worded, weight=st.floats(0.0, 1.0))
def test_every_key_of_either_search_comes_out_once_with_a_share_of_1(
    dense: dict[int, float], lexical: dict[int, float], weight: float
) -> None:
    fused = convex_combination(_ranked(dense), _ranked(lexical), dense_weight=weight)

    assert sorted(key for key, _ in fused) == sorted({*dense, *lexical})
    assert all(0.0 <= score <= 1.0 + 1e-9 for _, score in fused)
    assert fused == _ranked(dict(fused))


@given(dense=scored, lexical=worded, factor=st.floats(0.01, 100.0))
def test_the_scale_of_lexical_scores_does_not_matter(
    dense: dict[int, float], lexical: dict[int, float], factor: float
) -> None:
    as_they_are = dict(convex_combination(_ranked(dense), _ranked(lexical)))
    scaled = dict(convex_combination(_ranked(dense), _ranked({key: s * factor for key, s in lexical.items()})))

    assert scaled == pytest.approx(as_they_are, abs=1e-6)
