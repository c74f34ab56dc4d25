"""app.evaluation.intervals: intervals are repeatable, cover what they should, and pair what is paired."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.evaluation.intervals import RESAMPLES, combine, difference, estimate

values = st.lists(st.floats(0, 1), min_size=1, max_size=30)


@settings(max_examples=30)
@given(values=values)
def test_the_same_seed_gives_the_same_interval_around_the_mean(values: list[float]) -> None:
    found = estimate(values, seed=3)

    assert found == estimate(values, seed=3)
    assert found.value == pytest.approx(np.mean(values))
    assert min(values) - 1e-9 <= found.low <= found.high <= max(values) + 1e-9
    assert found.n == len(values)


def test_the_interval_of_a_mean_is_about_two_standard_errors_wide() -> None:
    sample = np.random.default_rng(0).normal(0.5, 0.1, size=400)

    found = estimate(sample.tolist())

    error = sample.std() / 20
    assert found.low == pytest.approx(found.value - 1.96 * error, abs=0.2 * error)
    assert found.high == pytest.approx(found.value + 1.96 * error, abs=0.2 * error)


def test_percentiles_are_of_the_values_and_not_of_their_means() -> None:
    waits = [float(number) for number in range(101)]

    assert estimate(waits, statistic="p50").value == 50
    assert estimate(waits, statistic="p95").value == 95


def test_sets_count_the_same_however_many_questions_they_have() -> None:
    found = combine([[1.0] * 10, [0.0]])

    assert (found.value, found.n) == (0.5, 11)
    assert found.low == found.high == 0.5


def test_sets_are_resampled_apart() -> None:
    coin = [0.0, 1.0] * 20

    alone, together = estimate(coin), combine([coin, coin])

    assert together.high - together.low < 0.85 * (alone.high - alone.low)


@settings(max_examples=30)
@given(values=values)
def test_the_difference_of_a_run_from_itself_is_zero_with_p_1(values: list[float]) -> None:
    found = difference([values], [values])

    assert (found.change, found.low, found.high, found.p) == (0, 0, 0, 1)


def test_a_paired_difference_is_significant_though_both_intervals_overlap() -> None:
    before = np.random.default_rng(1).uniform(0, 0.9, size=50)
    after = before + 0.02

    found = difference([before.tolist()], [after.tolist()])

    assert estimate(before.tolist()).high > estimate(after.tolist()).low
    assert found.change == pytest.approx(0.02)
    assert found.low > 0
    assert found.p == 1 / RESAMPLES


@pytest.mark.parametrize(("changed", "p"), [(1, 1.0), (2, 0.5), (5, 1 / 16), (20, 1 / RESAMPLES)])
def test_few_changed_questions_are_no_proof_however_alike_they_changed(changed: int, p: float) -> None:
    found = difference([[0.0] * changed], [[1.0] * changed])

    assert (found.change, found.low, found.high) == (1.0, 1.0, 1.0)
    assert found.p == p


def test_noise_is_not_a_difference_and_its_direction_is_after_less_before() -> None:
    found = difference([[0.0, 1.0, 0.0, 1.0]], [[0.0, 1.0, 0.0, 0.0]])

    assert found.change == -0.25
    assert found.low < 0 <= found.high
    assert found.p > 0.2


def test_values_too_many_to_draw_at_once_give_an_interval_too() -> None:
    found = estimate(([0.0] * 3 + [1.0]) * 1000)

    assert found.low < 0.25 < found.high
    assert found.high - found.low < 0.04
