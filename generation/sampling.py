"""Samples the next token: functions over one row of logits, exact and reproducible.

The order is the field's: float32 logits, temperature, min-p, top-k, top-p (renormalised after the
others), draw. Ties are broken by (logit descending, token id ascending) everywhere.
"""

import math
from typing import Any

import numpy as np
import torch
from torch import Tensor

from generation.types import SamplingParams

_GREEDY_BELOW = 1e-5  # temperatures under this are greedy: dividing by them overflows
_REACHES = (8.0, 16.0)  # nats below the best token within which candidates are looked for
_TOTAL_ERROR = 1e-5  # bounds the relative error of a float32 sum of exponentials over a vocabulary
_BLOCK = 4096  # tokens whose numbers stay in a core's cache
_MASK_32 = 0xFFFFFFFF
_MASK_64 = (1 << 64) - 1
_GOLDEN = 0x9E3779B97F4A7C15

_Integers = Any  # [n] int64, of torch or of numpy: the same expressions serve both


def is_greedy(params: SamplingParams) -> bool:
    """Whether the best token is taken and nothing drawn."""
    return params.temperature < _GREEDY_BELOW


def sample(logits: Tensor, params: SamplingParams, *, seed: int, position: int) -> Tensor:
    """Draw one token.

    Args:
        logits: [V] float32, at least one finite, no NaN, no +inf.
        params: Temperature, min-p, top-k and top-p.
        seed: Any integer; its low 64 bits count.
        position: Absolute position of the token in its sequence.

    Returns:
        [] int64, the token id. Equal arguments give equal ids whatever else is in the batch.
    """
    if is_greedy(params):
        return logits.argmax()  # the lowest id among ties
    if params.min_p <= 0 and params.top_k <= 0 and params.top_p >= 1:
        ids = torch.arange(logits.shape[0], device=logits.device)
        return draw(logits.double() / params.temperature, ids, seed=seed, position=position)
    ids = keep_candidates(logits, params)
    return draw(logits[ids].double() / params.temperature, ids, seed=seed, position=position)


def keep(scaled: Tensor, *, min_p: float, top_k: int, top_p: float) -> Tensor:
    """Ids that survive min-p, then top-k, then top-p, by sorting the whole row: the reference.

    Min-p (Nguyen et al. 2024, arXiv:2407.01082): token i stays iff its probability is at least
    `min_p` times the best one's. Nucleus sampling (Holtzman et al. 2020, arXiv:1904.09751): token i
    stays iff the mass strictly before it, in descending order, is below `top_p`. The best token
    always stays, a token at -inf never.

    Args:
        scaled: [V] float64 logits after temperature, at least one finite.
        min_p: Share of the best token's probability that is needed; 0 keeps all.
        top_k: How many of the best stay; 0 keeps all.
        top_p: Share of the mass that stays; 1 keeps all.

    Returns:
        [n] int64 ids, n ≥ 1, best first.
    """
    values, ids = torch.sort(scaled, descending=True, stable=True)
    size = _truncated_size(values, min_p=min_p, top_k=top_k)
    values, ids = values[:size], ids[:size]
    total = torch.logsumexp(values if min_p > 0 or top_k > 0 else scaled, 0)
    return ids[: _nucleus_size(values, total, top_p)]


def keep_candidates(logits: Tensor, params: SamplingParams) -> Tensor:
    """`keep` of the row over its temperature, mostly without sorting the row.

    Proof that the result is the same. Dividing float32 logits by the temperature in float64 keeps
    their order and their ties, so the ids whose logit is at least some floor are a prefix of the sorted
    row, ties at its end included; what is kept is a prefix too. The kept one is known to end within
    the candidates as soon as one of them falls below min-p's bound, or there are `top_k` of them, or
    their mass reaches `top_p`. Where none of this holds the floor is lowered, then set to the k-th best
    logit; in the end the reference sorts all logits above -inf.

    Args:
        logits: [V] float32 before temperature, at least one finite, no NaN, no +inf.
        params: Temperature (not greedy), min-p, top-k and top-p.

    Returns:
        [n] int64 ids, n ≥ 1, best first.
    """
    peak, lowest = float(logits.amax()), torch.finfo(torch.float32).min
    for reach in _REACHES:
        floor = float(np.float32(max(lowest, peak - reach * params.temperature)))
        if (ids := _keep_above(logits, floor, peak, params)) is not None:
            return ids
    finite = _at_least(logits, lowest)
    if 0 < params.top_k < finite.shape[0] and finite.shape[0] > _BLOCK:
        floor = float(torch.topk(logits, params.top_k, sorted=False).values.amin())
        if (ids := _keep_above(logits, floor, peak, params)) is not None:
            return ids
    scaled = logits[finite].double() / params.temperature
    return finite[keep(scaled, min_p=params.min_p, top_k=params.top_k, top_p=params.top_p)]


def _keep_above(logits: Tensor, floor: float, peak: float, params: SamplingParams) -> Tensor | None:
    """The result of `keep` from the logits that are at least `floor`; None when they do not suffice."""
    ids = _at_least(logits, floor)
    values, order = torch.sort(logits[ids].double() / params.temperature, descending=True, stable=True)
    size = _truncated_size(values, min_p=params.min_p, top_k=params.top_k)
    ids, values = ids[order[:size]], values[:size]
    if params.min_p > 0 or params.top_k > 0:
        if size == order.shape[0] and size != params.top_k:
            return None  # min-p and top-k may reach further
        return ids[: _nucleus_size(values, torch.logsumexp(values, 0), params.top_p)]
    # Top-p alone. A float32 total decides unless the boundary is within its error.
    mass = torch.exp(values - values[0]).cumsum(0)
    edge = params.top_p * float(((logits - peak) / params.temperature).exp_().sum())
    edges = torch.tensor([edge * (1 - _TOTAL_ERROR), edge * (1 + _TOTAL_ERROR)], dtype=mass.dtype, device=mass.device)
    before, after = torch.searchsorted(mass, edges).tolist()  # how many are below each
    if before == after:
        return ids[: 1 + before] if before < size else None
    if before == size:
        return None
    total = torch.logsumexp(logits.double() / params.temperature, 0)
    kept = _nucleus_size(values, total, params.top_p)
    return ids[:kept] if kept < size else None


def _at_least(logits: Tensor, floor: float) -> Tensor:
    """[n] int64: ascending ids of the logits that are at least `floor`."""
    if logits.device.type == "cpu":  # numpy is several times as fast at this
        return torch.from_numpy(np.flatnonzero(logits.numpy() >= np.float32(floor)))
    return (logits >= floor).nonzero().squeeze(1)


def _truncated_size(values: Tensor, *, min_p: float, top_k: int) -> int:
    """How many of the descending [n] float64 `values` are finite and survive min-p and top-k, at least 1."""
    bound = float(values[0]) + math.log(min_p) if min_p > 0 else torch.finfo(values.dtype).min
    size = int((values >= bound).sum())
    return min(size, top_k) if top_k > 0 else size


def _nucleus_size(values: Tensor, total: Tensor, top_p: float) -> int:
    """How many of the descending [n] `values` have less than `top_p` of exp(`total`) before them, at least 1."""
    if top_p >= 1:
        return values.shape[0]
    mass = torch.exp(values - total).cumsum(0)
    return min(values.shape[0], 1 + int((mass < top_p).sum()))


def draw(values: Tensor, ids: Tensor, *, seed: int, position: int) -> Tensor:
    """The Gumbel-max draw (Gumbel 1954): argmax of logit + Gumbel noise has the softmax's law.

    Args:
        values: [n] float64 logits; need not be normalised.
        ids: [n] int64 token ids, the noise's keys.
        seed: Any integer; its low 64 bits count.
        position: Absolute position of the token in its sequence.

    Returns:
        [] int64, one of `ids`.
    """
    tokens = ids.shape[0]
    block = _BLOCK if ids.device.type == "cpu" else tokens
    scores = []
    for start in range(0, tokens, block):
        noise = uniform(ids[start : start + block], seed=seed, position=position)
        scores.append(values[start : start + block] - torch.log1p(-noise).neg_().log_())
    best = torch.cat(scores).argmax()
    return ids.index_select(0, best.view(1)).squeeze(0)  # `ids[best]` would wait for the device to read `best`


def uniform(ids: Tensor, *, seed: int, position: int) -> Tensor:
    """Uniforms in (0, 1) that depend on (seed, position, id) alone.

    SplitMix64 (Steele, Lea and Flood 2014, doi:10.1145/2660193.2660195) used as a counter-based
    generator: the key is mixed from seed and position, the id is the counter. All 64 bits count, so
    values near 0 keep full relative precision: with 24 or 32 bits rare tokens are never drawn.

    Args:
        ids: [n] int64.
        seed: Any integer; its low 64 bits count.
        position: Any integer; its low 64 bits count.

    Returns:
        [n] float64.
    """
    counters: _Integers = ids.numpy() if ids.device.type == "cpu" else ids  # small operations cost numpy a third
    return keyed_uniform(counters, noise_key(seed, position))


def noise_key(seed: int, position: int) -> int:
    """What `uniform` mixes of a seed and a position, as an int64."""
    return _signed(_mix_integer(_mix_integer(seed + _GOLDEN) + position * _GOLDEN) + _GOLDEN)


def keyed_uniform(ids: _Integers, key: _Integers) -> Tensor:
    """`uniform` of ids under a key of `noise_key`, or [n, m] ids under [n, 1] keys; the same numbers either way."""
    bits = _mix(ids * _signed(_GOLDEN) + key)
    high, low = _double(_shift_right(bits, 32)), _double(bits & _MASK_32)
    # one rounding: the products with powers of two are exact
    return high.mul_(2.0**-32).add_(low.add_(0.5), alpha=2.0**-64).clamp_(max=math.nextafter(1.0, 0.0))


def _mix(state: _Integers) -> _Integers:
    """SplitMix64's finaliser on int64, whose products wrap as unsigned ones do."""
    state = (state ^ _shift_right(state, 30)) * _signed(0xBF58476D1CE4E5B9)
    state = (state ^ _shift_right(state, 27)) * _signed(0x94D049BB133111EB)
    return state ^ _shift_right(state, 31)


def _mix_integer(state: int) -> int:
    """The same on the low 64 bits of one integer: a key needs no arrays."""
    state &= _MASK_64
    state = (state ^ (state >> 30)) * 0xBF58476D1CE4E5B9 & _MASK_64
    state = (state ^ (state >> 27)) * 0x94D049BB133111EB & _MASK_64
    return state ^ (state >> 31)


def _shift_right(state: _Integers, bits: int) -> _Integers:
    """Logical shift: the arrays' own copies the sign."""
    return (state >> bits) & ((1 << (64 - bits)) - 1)


def _double(integers: _Integers) -> Tensor:
    return (integers if isinstance(integers, Tensor) else torch.from_numpy(integers)).double()


def _signed(value: int) -> int:
    """The low 64 bits as a two's complement int64."""
    value &= _MASK_64
    return value - (1 << 64) if value >> 63 else value
