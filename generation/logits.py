"""Changes one row of logits before sampling: bias, masks and penalties.

Free functions over [V] float32 that leave their argument alone and return a row of the same shape.
Ids at or beyond V name no token and are passed over.
"""

from collections import Counter
from collections.abc import Sequence

import torch
from torch import Tensor

from generation.types import SamplingParams


def process(
    logits: Tensor, params: SamplingParams, *, prompt: Sequence[int], output: Sequence[int], mask: Tensor | None
) -> Tensor:
    """Everything that comes before temperature, in the field's order.

    Bias, allowed tokens and mask, repetition penalty, presence and frequency penalties.

    Args:
        logits: [V] float32.
        params: The sampling parameters to apply.
        prompt: Token ids of the prompt.
        output: Token ids generated so far.
        mask: [V] bool, True where a constraint allows the token; None allows all.

    Returns:
        [V] float32; `logits` itself when nothing was asked for.
    """
    if params.logit_bias:
        logits = add_bias(logits, params.logit_bias)
    if params.allowed_tokens is not None:
        logits = allow_only(logits, params.allowed_tokens)
    if mask is not None:
        logits = apply_mask(logits, mask)
    if params.repetition_penalty != 1:
        logits = penalise_repetition(logits, [*prompt, *output], penalty=params.repetition_penalty)
    if params.presence_penalty != 0 or params.frequency_penalty != 0:
        logits = penalise_occurrence(
            logits, output, presence=params.presence_penalty, frequency=params.frequency_penalty
        )
    return logits


def add_bias(logits: Tensor, bias: Sequence[tuple[int, float]]) -> Tensor:
    """Add to single logits: `bias` holds (token id, added) pairs, each id at most once."""
    known = [(token, added) for token, added in bias if token < logits.shape[0]]
    ids = torch.tensor([token for token, _ in known], dtype=torch.long, device=logits.device)
    added = torch.tensor([added for _, added in known], dtype=logits.dtype, device=logits.device)
    return logits.index_add(0, ids, added)


def allow_only(logits: Tensor, allowed: Sequence[int]) -> Tensor:
    """-inf for every id that is not in `allowed`."""
    ids = _known_ids(allowed, logits)
    return torch.full_like(logits, float("-inf")).scatter_(0, ids, logits[ids])


def apply_mask(logits: Tensor, mask: Tensor) -> Tensor:
    """-inf where `mask`, [V] bool on any device, is False."""
    assert mask.shape == logits.shape, f"a mask of {tuple(mask.shape)} for logits of {tuple(logits.shape)}"
    return logits.masked_fill(~mask.to(logits.device), float("-inf"))


def penalise_repetition(logits: Tensor, tokens: Sequence[int], *, penalty: float) -> Tensor:
    """Make tokens that occurred less likely, once however often they did.

    CTRL (Keskar et al. 2019, arXiv:1909.05858), with transformers' amendment: a positive logit is
    divided by `penalty`, a negative one multiplied, so that both fall when it is above 1.
    """
    ids = _known_ids(tokens, logits)
    seen = logits[ids]
    return logits.scatter(0, ids, torch.where(seen < 0, seen * penalty, seen / penalty))


def penalise_occurrence(logits: Tensor, output: Sequence[int], *, presence: float, frequency: float) -> Tensor:
    """Subtract `presence` once and `frequency` per occurrence from the logits of tokens in `output`.

    As OpenAI's API defines the two: logit - presence * (count > 0) - frequency * count.
    """
    counts = Counter(output)
    return add_bias(logits, [(token, -(presence + frequency * count)) for token, count in counts.items()])


def _known_ids(tokens: Sequence[int], logits: Tensor) -> Tensor:
    """[n] int64 on the logits' device: checked on the host, for an index too high kills an accelerator's context."""
    ids = torch.tensor(tokens, dtype=torch.long)
    return ids[ids < logits.shape[0]].to(logits.device)
