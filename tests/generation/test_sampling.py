"""generation.sampling draws from exactly the distribution it promises."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from generation.sampling import _keep_candidates, draw, keep, sample, uniform
from generation.types import SamplingParams

torch.set_num_threads(1)


def params(*, temperature: float = 1.0, top_k: int = 0, top_p: float = 1.0) -> SamplingParams:
    return SamplingParams(max_tokens=1, temperature=temperature, top_k=top_k, top_p=top_p)


def keep_by_lists(logits: list[float], *, top_k: int, top_p: float) -> list[int]:
    """The rule in plain Python: best first, ties by id, mass strictly before below `top_p`."""
    order = sorted(range(len(logits)), key=lambda token: (-logits[token], token))
    order = order[:top_k] if top_k else order
    weights = [math.exp(logits[token] - logits[order[0]]) for token in order]
    kept: list[int] = []
    before = 0.0
    for token, weight in zip(order, weights, strict=True):
        if kept and before / math.fsum(weights) >= top_p:
            break
        kept.append(token)
        before += weight
    return kept


# eighths, so that ties are common; and top_p off the sums of such weights, so that rounding decides nothing
logit_lists = st.lists(st.integers(-24, 24).map(lambda eighths: eighths / 8), min_size=1, max_size=40)
top_ps = st.sampled_from([0.0517, 0.2931, 0.5113, 0.7919, 0.9013, 0.9973])


@settings(deadline=None)
@given(logits=logit_lists, top_k=st.integers(0, 45), top_p=top_ps)
def test_what_is_kept_equals_the_rule_spelled_out(logits: list[float], top_k: int, top_p: float) -> None:
    scaled = torch.tensor(logits, dtype=torch.float64)

    assert keep(scaled, top_k=top_k, top_p=top_p).tolist() == keep_by_lists(logits, top_k=top_k, top_p=top_p)


@settings(deadline=None)
@given(
    seed=st.integers(0, 2**31),
    spread=st.sampled_from([0.1, 1.0, 4.0]),
    rounding=st.sampled_from([0.5, 1e-3]),
    top_k=st.sampled_from([0, 1, 20, 255, 256, 257]),
    top_p=st.one_of(top_ps, st.just(1.0)),
)
def test_the_short_cut_keeps_what_the_full_sort_keeps(
    seed: int, spread: float, rounding: float, top_k: int, top_p: float
) -> None:
    noise = torch.randn(1500, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    scaled = (noise * spread / rounding).round() * rounding  # coarse rounding makes ties at the edge

    short = _keep_candidates(scaled, top_k=top_k, top_p=top_p)

    assert short is None or short.tolist() == keep(scaled, top_k=top_k, top_p=top_p).tolist()


def test_the_short_cut_is_taken_for_peaked_rows() -> None:
    scaled = torch.linspace(0, -50, 5000, dtype=torch.float64)

    assert _keep_candidates(scaled, top_k=0, top_p=0.9) is not None
    assert _keep_candidates(scaled, top_k=40, top_p=1.0) is not None


@settings(deadline=None)
@given(logits=logit_lists, top_k=st.integers(0, 45), top_p=top_ps, seed=st.integers(-(2**70), 2**70))
def test_a_draw_never_leaves_the_nucleus(logits: list[float], top_k: int, top_p: float, seed: int) -> None:
    drawn = sample(torch.tensor(logits), params(top_k=top_k, top_p=top_p), seed=seed, position=7)

    assert int(drawn) in keep_by_lists(logits, top_k=top_k, top_p=top_p)


@settings(deadline=None)
@given(logits=logit_lists, temperature=st.sampled_from([0.0, 9e-6]))
def test_without_temperature_the_best_token_wins_and_the_lower_id_breaks_ties(
    logits: list[float], temperature: float
) -> None:
    drawn = sample(torch.tensor(logits), params(temperature=temperature), seed=1, position=1)

    assert int(drawn) == logits.index(max(logits))


def test_a_masked_token_is_never_drawn() -> None:
    logits = torch.full((50,), float("-inf"))
    logits[17] = -3.0

    assert {int(sample(logits, params(temperature=t), seed=s, position=s)) for t in (0.0, 1.0) for s in range(20)} == {
        17
    }


def chi_square(counts: Tensor, expected: Tensor) -> float:
    return float(((counts - expected) ** 2 / expected).sum())


@pytest.mark.parametrize(
    ("temperature", "top_k", "top_p"),
    [(1.0, 0, 1.0), (0.7, 0, 1.0), (2.0, 0, 1.0), (1.0, 5, 1.0), (1.0, 0, 0.8), (0.7, 8, 0.9), (1.3, 3, 0.6)],
)
def test_draws_have_the_exact_distribution(temperature: float, top_k: int, top_p: float) -> None:
    logits = torch.tensor([2.0, 1.5, 1.5, 1.0, 0.3, 0.0, -0.4, -1.0, -2.0, 1.5])
    kept = keep_by_lists((logits.double() / temperature).tolist(), top_k=top_k, top_p=top_p)
    law = torch.zeros(10, dtype=torch.float64)
    law[kept] = torch.softmax(logits.double()[kept] / temperature, 0)
    asked = params(temperature=temperature, top_k=top_k, top_p=top_p)
    draws = 2500

    drawn = torch.stack([sample(logits, asked, seed=11, position=position) for position in range(draws)])

    counts = torch.bincount(drawn, minlength=10).double()
    assert counts[law == 0].sum() == 0
    # 9 degrees of freedom at most: 40 is beyond the 1e-5 quantile, and the seed is fixed
    assert chi_square(counts[law > 0], law[law > 0] * draws) < 40


def test_seeds_and_positions_give_independent_noise() -> None:
    ids = torch.arange(64)
    rows = [uniform(ids, seed=seed, position=position) for seed in range(16) for position in range(16)]
    grid = torch.stack(rows)

    assert grid.unique().numel() == grid.numel()
    counts = torch.histc(grid, bins=32, min=0, max=1)
    assert chi_square(counts, torch.full_like(counts, grid.numel() / 32)) < 75  # 31 degrees, 1e-5 quantile is 75
    correlation = torch.corrcoef(grid)
    correlation.fill_diagonal_(0)
    assert float(correlation.abs().max()) < 0.65  # 32640 pairs of 64 values: 5 standard deviations are 0.63


def test_the_noise_is_frozen() -> None:
    """A seed promises the same tokens from one release to the next."""
    assert uniform(torch.tensor([0, 1, 49151]), seed=42, position=100).tolist() == [
        0.33619304511476994,
        0.42146832993461336,
        0.9443706111630478,
    ]


def splitmix64(state: int) -> int:
    """Steele, Lea and Flood's finaliser in unbounded integers."""
    state &= 2**64 - 1
    state = (state ^ (state >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
    state = (state ^ (state >> 27)) * 0x94D049BB133111EB % 2**64
    return state ^ (state >> 31)


@settings(deadline=None)
@given(seed=st.integers(-(2**65), 2**65), position=st.integers(0, 2**20), token=st.integers(0, 2**20))
def test_the_noise_equals_splitmix64_in_unbounded_integers(seed: int, position: int, token: int) -> None:
    golden = 0x9E3779B97F4A7C15
    key = splitmix64(splitmix64(seed + golden) + position * golden)
    expected = (splitmix64(key + (token + 1) * golden) + 0.5) / 2**64

    assert float(uniform(torch.tensor([token]), seed=seed, position=position)) == pytest.approx(expected, rel=1e-12)


def test_noise_near_zero_keeps_its_precision() -> None:
    """The smaller the exponential, the rarer the token it can save: a 53-bit grid would round these values."""
    smallest = uniform(torch.arange(1_000_000), seed=3, position=0).sort().values[:100]

    assert float(smallest[-1]) < 2e-4
    assert int(((smallest * 2.0**53) % 1 != 0).sum()) > 90


def test_rare_tokens_are_drawn_as_often_as_they_should_be() -> None:
    """A hundred thousand tokens of mass 1e-3 together, against one: some of them must win."""
    values = torch.full((100_001,), math.log(1e-8), dtype=torch.float64)
    values[0] = 0.0
    ids = torch.arange(100_001)

    wins = sum(int(draw(values, ids, seed=seed, position=0)) != 0 for seed in range(40))

    assert wins == 0  # expected 0.04
    values[0] = math.log(1e-3)
    wins = sum(int(draw(values, ids, seed=seed, position=0)) != 0 for seed in range(40))
    assert 10 <= wins <= 30  # expected 20, standard deviation 3.2
