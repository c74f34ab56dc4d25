"""Attention over a question and candidates behind it: causal in the question; a candidate sees it and itself.

Equal to one attention a candidate over question and candidate (the tests compare), without reading the question more
than once.
"""

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from retrieval.judge_layout import JudgeInput

IMPLEMENTATION = "footnote_branches"


def register() -> None:
    """Registers the attention with transformers; idempotent."""
    from transformers import AttentionInterface

    AttentionInterface.register(IMPLEMENTATION, branch_attention)


def branch_attention(
    module: torch.nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    *,
    scaling: float,
    layout: JudgeInput,
    **_: Any,
) -> tuple[Tensor, None]:
    """The attention function that transformers calls in every layer.

    Args:
        module: The layer's attention.
        query: (1, heads, tokens, width).
        key: (1, key heads, tokens, width); each serves heads / key heads neighbouring heads.
        value: As `key`.
        attention_mask: Not used: the layout says who sees whom.
        scaling: Of the scores.
        layout: The tokens' layout.

    Returns:
        (1, tokens, heads, width), and no weights.
    """
    del module, attention_mask
    start = len(layout.prefix)
    prefix = (key[:, :, :start], value[:, :, :start])
    pieces = [_attended(query[:, :, :start], *prefix, scaling)]
    at = start
    for branch in layout.branches:
        end = at + len(branch)
        keys, values = (torch.cat([kept, own[:, :, at:end]], 2) for kept, own in zip(prefix, (key, value), strict=True))
        pieces.append(_attended(query[:, :, at:end], keys, values, scaling))
        at = end
    return torch.cat(pieces, 2).transpose(1, 2), None


def _attended(query: Tensor, keys: Tensor, values: Tensor, scaling: float) -> Tensor:
    """Causal attention of a sequence's last tokens over the whole sequence."""
    length, total = query.shape[2], keys.shape[2]
    seen = torch.ones(length, total, dtype=torch.bool, device=query.device).tril(total - length)
    return functional.scaled_dot_product_attention(query, keys, values, attn_mask=seen, scale=scaling, enable_gqa=True)
