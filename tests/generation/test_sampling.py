"""generation.sampling draws from exactly the distribution it promises."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from transformers import MinPLogitsWarper, TopKLogitsWarper, TopPLogitsWarper

from generation.sampling import draw, keep, keep_candidates, sample, uniform
from generation.types import SamplingParams

torch.set_num_threads(1)


def params(*, temperature: float = 1.0, min_p: float = 0.0, top_k: int = 0, top_p: float = 1.0) -> SamplingParams:
    return SamplingParams(max_tokens=1, temperature=temperature, min_p=min_p, top_k=top_k, top_p=top_p)


def keep_by_lists(logits: list[float], *, min_p: float, top_k: int, top_p: float) -> list[int]:
    """The rule in plain Python: best first, ties by id, mass strictly before below `top_p`."""
    order = sorted(range(len(logits)), key=lambda token: (-logits[token], token))
    best = logits[order[0]]
    order = [token for token in order if logits[token] > -math.inf and math.exp(logits[token] - best) >= min_p]
    order = order[:top_k] if top_k else order
    weights = [math.exp(logits[token] - best) for token in order]
    kept: list[int] = []
    before = 0.0
    for token, weight in zip(order, weights, strict=True):
        if kept and before / math.fsum(weights) >= top_p:
            break
        kept.append(token)
        before += weight
    return kept


# eighths, so that ties are common; and shares off the (sums of) such weights, so that rounding decides nothing
logit_lists = st.lists(
    st.integers(-24, 24).map(lambda eighths: eighths / 8) | st.just(-math.inf), min_size=1, max_size=40
).filter(lambda logits: max(logits) > -math.inf)
top_ps = st.sampled_from([0.0517, 0.2931, 0.5113, 0.7919, 0.9013, 0.9973])
min_ps = st.sampled_from([0.0, 0.0, 0.0517, 0.2931])


@settings(deadline=None)
@given(logits=logit_lists, min_p=min_ps, top_k=st.integers(0, 45), top_p=top_ps)
def test_kept_tokens_equal_a_plain_reference_of_top_k_top_p_and_min_p(
    logits: list[float], min_p: float, top_k: int, top_p: float
) -> None:
    scaled = torch.tensor(logits, dtype=torch.float64)
    expected = keep_by_lists(logits, min_p=min_p, top_k=top_k, top_p=top_p)

    assert keep(scaled, min_p=min_p, top_k=top_k, top_p=top_p).tolist() == expected


@pytest.mark.parametrize(
    ("min_p", "top_k", "top_p"), [(0.1, 0, 1.0), (0.003, 0, 1.0), (0.0, 20, 1.0), (0.0, 0, 0.7), (0.0, 0, 0.97)]
)
def test_what_is_kept_equals_transformers_on_rows_without_ties(min_p: float, top_k: int, top_p: float) -> None:
    logits = torch.randn(20, 300, generator=torch.Generator().manual_seed(0), dtype=torch.float64) * 2
    warper = MinPLogitsWarper(min_p) if min_p else TopKLogitsWarper(top_k) if top_k else TopPLogitsWarper(top_p)
    left = warper(torch.empty(20, 0, dtype=torch.long), logits)  # type: ignore[arg-type]

    for row, warped in zip(logits, left, strict=True):
        kept = keep(row, min_p=min_p, top_k=top_k, top_p=top_p)
        assert kept.sort().values.tolist() == warped.isfinite().nonzero().squeeze(1).tolist()


def make_row(seed: int, *, vocab: int, kind: str, rounding: float) -> Tensor:
    """[vocab] float32 of a kind; coarse rounding makes ties at every edge."""
    noise = torch.randn(vocab, generator=torch.Generator().manual_seed(seed))
    if kind == "flat":
        return torch.zeros(vocab)
    if kind == "one-hot":
        return torch.zeros(vocab).index_fill_(0, torch.tensor([seed % vocab]), 40.0)
    row = (noise * {"near-flat": 0.1, "usual": 3.0, "peaked": 12.0, "masked": 3.0}[kind] / rounding).round() * rounding
    if kind == "masked":
        left = row[seed % vocab].clone()
        row[torch.arange(vocab) % 50 != seed % 50] = -math.inf
        row[seed % vocab] = left
    return row


@settings(deadline=None, max_examples=300)
@given(
    seed=st.integers(0, 2**31),
    vocab=st.sampled_from([1, 2, 255, 256, 257, 1500, 5000]),
    kind=st.sampled_from(["flat", "one-hot", "near-flat", "usual", "peaked", "masked"]),
    rounding=st.sampled_from([0.5, 1e-3]),
    temperature=st.sampled_from([1e-4, 0.3, 1.0, 5.0, 100.0]),
    min_p=st.sampled_from([0.0, 0.0, 1e-9, 0.0517, 0.9]),
    top_k=st.sampled_from([0, 0, 1, 20, 255, 256, 257, 4999]),
    top_p=st.one_of(top_ps, st.just(1.0), st.just(1e-9), st.just(0.9999999)),
)
def test_the_short_cut_keeps_what_the_full_sort_keeps(
    seed: int,
    vocab: int,
    kind: str,
    rounding: float,
    temperature: float,
    min_p: float,
    top_k: int,
    top_p: float,
) -> None:
    logits = make_row(seed, vocab=vocab, kind=kind, rounding=rounding)

    kept = keep_candidates(logits, params(temperature=temperature, min_p=min_p, top_k=top_k, top_p=top_p))

    reference = keep(logits.double() / temperature, min_p=min_p, top_k=top_k, top_p=top_p)
    assert kept.tolist() == reference.tolist()


@pytest.mark.parametrize("tokens", [1, 3, 10, 100])
def test_a_nucleus_that_ends_within_rounding_of_its_bound_is_the_reference(tokens: int) -> None:
    """The float32 total cannot tell whether the mass of equal tokens is below k / n: float64 decides, as ever."""
    logits = torch.full((6000,), -60.0)
    logits[:100] = 1.0

    for nudge in (-1e-6, 0.0, 1e-6):
        top_p = min(1.0, tokens / 100 + nudge)
        kept = keep_candidates(logits, params(top_p=top_p))
        assert kept.tolist() == keep(logits.double(), min_p=0, top_k=0, top_p=top_p).tolist()


@settings(deadline=None)
@given(logits=logit_lists, min_p=min_ps, top_k=st.integers(0, 45), top_p=top_ps, seed=st.integers(-(2**70), 2**70))
def test_a_draw_never_leaves_the_nucleus(
    logits: list[float], min_p: float, top_k: int, top_p: float, seed: int
) -> None:
    drawn = sample(torch.tensor(logits), params(min_p=min_p, top_k=top_k, top_p=top_p), seed=seed, position=7)

    assert int(drawn) in keep_by_lists(logits, min_p=min_p, top_k=top_k, top_p=top_p)


def test_a_million_draws_never_leave_the_nucleus() -> None:
    """The noise of each position is drawn from in one piece: a position's `draw` over its own ids."""
    logits = torch.tensor([2.0, 1.5, 1.5, 1.0, 0.3, 0.0, -0.4, -1.0, -2.0, -math.inf])
    for asked in (params(top_p=0.8), params(min_p=0.3, temperature=0.8), params(top_k=4, top_p=0.95)):
        scaled = logits.double() / asked.temperature
        kept = keep_candidates(logits, asked)
        inside = keep_by_lists(scaled.tolist(), min_p=asked.min_p, top_k=asked.top_k, top_p=asked.top_p)
        # ids beyond the row are counters like any other: 350 000 draws' noise at once
        counters = torch.arange(350_000 * len(kept))
        noise = uniform(counters, seed=17, position=3).view(-1, len(kept))
        drawn = kept[(scaled[kept] - (-torch.log1p(-noise)).log()).argmax(dim=1)]

        assert set(drawn.tolist()) == set(inside)


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


def critical(degrees: int) -> float:
    """The chi-square law's 1 - 1e-4 quantile, by Wilson and Hilferty (1931)."""
    ninth = 2 / (9 * degrees)
    return degrees * float(1 - ninth + 3.719 * math.sqrt(ninth)) ** 3


@pytest.mark.parametrize("temperature", [0.7, 2.0])
@pytest.mark.parametrize(
    ("min_p", "top_k", "top_p"),
    [(0.0, 0, 1.0), (0.0, 5, 1.0), (0.0, 0, 0.8), (0.15, 0, 1.0), (0.05, 8, 0.9), (0.0, 3, 0.6), (0.3, 0, 0.7)],
)
def test_draws_have_the_exact_distribution(temperature: float, min_p: float, top_k: int, top_p: float) -> None:
    logits = torch.tensor([2.0, 1.5, 1.5, 1.0, 0.3, 0.0, -0.4, -1.0, -2.0, 1.5])
    kept = keep_by_lists((logits.double() / temperature).tolist(), min_p=min_p, top_k=top_k, top_p=top_p)
    law = torch.zeros(10, dtype=torch.float64)
    law[kept] = torch.softmax(logits.double()[kept] / temperature, 0)
    asked = params(temperature=temperature, min_p=min_p, top_k=top_k, top_p=top_p)
    draws = 800

    drawn = torch.stack([sample(logits, asked, seed=11, position=position) for position in range(draws)])

    counts = torch.bincount(drawn, minlength=10).double()
    assert counts[law == 0].sum() == 0
    if len(kept) > 1:
        assert chi_square(counts[law > 0], law[law > 0] * draws) < critical(len(kept) - 1)


def test_neighbouring_positions_draw_independently() -> None:
    logits = torch.tensor([1.0, 0.5, 0.0, -0.5])
    law = torch.softmax(logits.double(), 0)
    drawn = torch.stack([sample(logits, params(), seed=23, position=position) for position in range(2501)])

    pairs = torch.bincount(drawn[:-1] * 4 + drawn[1:], minlength=16).double()

    # overlapping pairs: less the singles' own statistic, it has 12 degrees of freedom (Good 1953)
    singles = torch.bincount(drawn[:-1], minlength=4).double()
    statistic = chi_square(pairs, torch.outer(law, law).flatten() * 2500) - chi_square(singles, law * 2500)
    assert statistic < critical(12)


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
