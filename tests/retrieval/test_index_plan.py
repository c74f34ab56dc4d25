"""retrieval.index_file asks for another index only when the size is well beyond the last change."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrieval.index_file import IndexPlan


@pytest.mark.parametrize(
    ("count", "now", "lists"),
    [
        (0, None, 0),
        (49_999, None, 0),
        (49_999, 0, 0),
        (50_000, 0, 1024),
        (50_000, None, 1024),
        (30_000, 1024, 1024),
        (24_999, 1024, 0),
        (250_000, 1024, 1024),
        (270_000, 1024, 2048),
        (1_000_000, 2048, 2048),
        (1_000_000, None, 4096),
        (300_000, 4096, 4096),
        (200_000, 4096, 2048),
    ],
)
def test_the_index_fits_the_collection(count: int, now: int | None, lists: int) -> None:
    assert IndexPlan().lists(count, now=now) == lists


@given(count=st.integers(0, 20_000_000), now=st.none() | st.sampled_from([0, 512, 1024, 4096, 16384]))
def test_replanning_with_the_planned_number_of_lists_keeps_it(count: int, now: int | None) -> None:
    plan = IndexPlan()
    lists = plan.lists(count, now=now)

    assert plan.lists(count, now=lists) == lists
    assert lists <= count


@given(inverted_from=st.integers(2, 1000), count=st.integers(0, 2000))
def test_a_small_plan_never_asks_for_more_lists_than_it_can_train(inverted_from: int, count: int) -> None:
    plan = IndexPlan(inverted_from=inverted_from, flat_below=1 + inverted_from // 2)

    assert plan.lists(count) <= count


def test_bounds_the_wrong_way_round_are_refused() -> None:
    with pytest.raises(ValueError, match="flat_below"):
        IndexPlan(inverted_from=10, flat_below=11)
