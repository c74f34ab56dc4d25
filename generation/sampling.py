"""Choosing the next token: free functions over one row of logits, exact and reproducible.

The order is the field's: float32 logits, temperature, top-k, top-p (renormalised after top-k), draw.
Ties are broken by (logit descending, token id ascending) everywhere.
"""

import math

import torch
from torch import Tensor

from generation.types import SamplingParams

_GREEDY_BELOW = 1e-5  # temperatures under this are greedy: dividing by them overflows
_CANDIDATES = 256  # rows are sorted in full only when the kept set may reach beyond the best 256
_MASK_32 = 0xFFFFFFFF


def sample(logits: Tensor, params: SamplingParams, *, seed: int, position: int) -> Tensor:
    """Draw one token.

    Args:
        logits: [V] float32, at least one finite, no NaN, no +inf.
        params: Temperature, top-k and top-p.
        seed: Any integer; its low 64 bits count.
        position: Absolute position of the token in its sequence.

    Returns:
        [] int64, the token id. Equal arguments give equal ids whatever else is in the batch.
    """
    if params.temperature < _GREEDY_BELOW:
        return logits.argmax()  # the lowest id among ties
    scaled = logits.double() / params.temperature
    ids = _keep_candidates(scaled, top_k=params.top_k, top_p=params.top_p)
    if ids is None:
        ids = keep(scaled, top_k=params.top_k, top_p=params.top_p)
    return draw(scaled[ids], ids, seed=seed, position=position)


def keep(scaled: Tensor, *, top_k: int, top_p: float) -> Tensor:
    """Ids that survive top-k, then top-p, by sorting the whole row: the reference.

    Nucleus sampling (Holtzman et al. 2020, arXiv:1904.09751): token i stays iff the mass strictly
    before it, in descending order, is below `top_p`. The best token always stays.

    Args:
        scaled: [V] float64 logits after temperature.
        top_k: How many of the best stay; 0 keeps all.
        top_p: Share of the mass that stays; 1 keeps all.

    Returns:
        [n] int64 ids, n ≥ 1, best first (ascending and unfiltered when nothing was asked for).
    """
    if top_k <= 0 and top_p >= 1:
        return torch.arange(scaled.shape[0], device=scaled.device)
    values, ids = torch.sort(scaled, descending=True, stable=True)
    total = torch.logsumexp(scaled, 0)
    if top_k > 0:
        values, ids = values[:top_k], ids[:top_k]
        total = torch.logsumexp(values, 0)
    return ids[: _nucleus_size(values, total, top_p)]


def _keep_candidates(scaled: Tensor, *, top_k: int, top_p: float) -> Tensor | None:
    """`keep` from the best 256 alone, or None when they cannot tell."""
    if scaled.shape[0] <= _CANDIDATES or top_k > _CANDIDATES or (top_k <= 0 and top_p >= 1):
        return None
    ids = torch.topk(scaled, _CANDIDATES, sorted=False).indices.sort().values
    values, order = torch.sort(scaled[ids], descending=True, stable=True)
    ids, edge = ids[order], values[-1]
    if top_k > 0:
        values, ids = values[:top_k], ids[:top_k]
        total = torch.logsumexp(values, 0)
    else:
        total = torch.logsumexp(scaled, 0)
    size = _nucleus_size(values, total, top_p)
    # Tokens outside may tie with the last candidate, and lower ids among them would come first.
    if size == _CANDIDATES or not bool(values[size - 1] > edge):
        return None
    return ids[:size]


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
    exponential = -torch.log1p(-uniform(ids, seed=seed, position=position))
    return ids[(values - exponential.log()).argmax()]


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
    key = _mix(torch.tensor(_signed(seed)) + _signed(0x9E3779B97F4A7C15))
    key = _mix(key + _signed(position * 0x9E3779B97F4A7C15))
    bits = _mix(key.to(ids.device) + (ids + 1) * _signed(0x9E3779B97F4A7C15))
    high, low = _shift_right(bits, 32).double(), (bits & _MASK_32).double()
    return (high * 2.0**-32 + (low + 0.5) * 2.0**-64).clamp(max=math.nextafter(1.0, 0.0))


def _mix(state: Tensor) -> Tensor:
    """SplitMix64's finaliser on int64, whose products wrap as unsigned ones do."""
    state = (state ^ _shift_right(state, 30)) * _signed(0xBF58476D1CE4E5B9)
    state = (state ^ _shift_right(state, 27)) * _signed(0x94D049BB133111EB)
    return state ^ _shift_right(state, 31)


def _shift_right(state: Tensor, bits: int) -> Tensor:
    """Logical shift: torch's own copies the sign."""
    return (state >> bits) & ((1 << (64 - bits)) - 1)


def _signed(value: int) -> int:
    """The low 64 bits as a two's complement int64."""
    value &= (1 << 64) - 1
    return value - (1 << 64) if value >> 63 else value
