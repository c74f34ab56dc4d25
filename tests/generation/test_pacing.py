"""generation.pacing sizes prompt chunks so that streams do not stand still."""

import pytest

from generation.pacing import PrefillPace


def pace_at(tokens_per_s: float, *, steps: int = 30) -> PrefillPace:
    """After some steps on a machine that reads so fast, each step costing 20 ms beside."""
    pace = PrefillPace(target_s=0.25, smallest=32, largest=512)
    for _ in range(steps):
        pace.observe(prefill_tokens=pace.budget, seconds=0.02 + pace.budget / tokens_per_s)
    return pace


@pytest.mark.parametrize("tokens_per_s", [300, 1000, 1800])
def test_a_step_comes_to_take_about_the_target(tokens_per_s: float) -> None:
    seconds = 0.02 + pace_at(tokens_per_s).budget / tokens_per_s

    assert 0.8 * 0.25 <= seconds <= 1.05 * 0.25


def test_a_fast_machine_reads_as_much_as_a_step_holds_and_a_slow_one_always_something() -> None:
    assert pace_at(1e6).budget == 512
    assert pace_at(10).budget == 32


def test_the_rest_of_a_prompt_says_nothing_about_speed() -> None:
    pace = pace_at(1000)
    before = pace.budget

    pace.observe(prefill_tokens=3, seconds=0.05)

    assert pace.budget == before
