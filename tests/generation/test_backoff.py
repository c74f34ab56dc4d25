"""generation.backoff doubles pauses up to the longest."""

import math

import pytest

from generation.backoff import Backoff


def test_pauses_double_up_to_the_longest() -> None:
    backoff = Backoff(first_s=0.5, longest_s=30.0)

    pauses = [backoff.after(failures) for failures in (1, 2, 3, 4, 5, 6, 7, 8, 10**6)]

    assert pauses == [0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 30.0, 30.0, 30.0]


def test_a_pause_is_at_least_what_is_asked_for_though_that_is_longer_than_the_longest() -> None:
    backoff = Backoff(first_s=1.0, longest_s=5.0)

    assert [backoff.after(1, least_s=least_s) for least_s in (0.5, 2.0, 60.0)] == [1.0, 2.0, 60.0]


def test_up_to_a_share_of_a_pause_is_added_to_it() -> None:
    backoff = Backoff(first_s=1.0, longest_s=4.0, jitter=0.25)

    drawn = {backoff.after(2, least_s=2.0) for _ in range(200)}

    assert len(drawn) > 10
    assert all(2.0 <= pause < 2.5 for pause in drawn)


@pytest.mark.parametrize("first_s", [0.0, -1.0, 31.0, math.nan])
def test_a_pause_that_is_none_or_above_the_longest_is_refused(first_s: float) -> None:
    with pytest.raises(ValueError, match="first_s"):
        Backoff(first_s=first_s, longest_s=30.0)
