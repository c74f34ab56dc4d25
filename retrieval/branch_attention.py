"""Attention over a prefix and branches behind it: causal in the prefix; a branch sees the prefix and itself.

Equal to one attention a branch over prefix and branch (the tests compare), without computing the
prefix more than once and without the products of one branch with another.
"""

from collections.abc import Sequence, Sized
from typing import Any, Protocol

import torch
from torch import Tensor

IMPLEMENTATION = "footnote_branches"


class Branched(Protocol):
    """Tokens in a row: those of a prefix, then those of each branch."""

    @property
    def prefix(self) -> Sized:
        """As long as the prefix."""
        ...

    @property
    def branches(self) -> Sequence[Sized]:
        """Each as long as its branch."""
        ...


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
    pack: Branched,
    **_: Any,
) -> tuple[Tensor, None]:
    """The attention function that transformers calls in every layer.

    Args:
        module: The layer's attention.
        query: (1, heads, tokens, width).
        key: (1, key heads, tokens, width); each serves heads / key heads neighbouring heads.
        value: As `key`.
        attention_mask: Not used: the pack says who sees whom.
        scaling: Of the scores.
        pack: The tokens' layout.

    Returns:
        (1, tokens, heads, width), and no weights.
    """
    del module, attention_mask
    groups, width = key.shape[1], key.shape[3]
    shared = query.shape[1] // groups
    start = len(pack.prefix)
    # Heads of a group one under the other: (groups, shared * tokens, width).
    asked = query[0].reshape(groups, shared, -1, width) * scaling
    keys, values = key[0], value[0]
    prefix = _causal(asked[:, :, :start], keys[:, :start], values[:, :start])
    pieces, at = [prefix], start
    for branch in pack.branches:
        end = at + len(branch)
        seen_keys = torch.cat([keys[:, :start], keys[:, at:end]], dim=1)
        seen_values = torch.cat([values[:, :start], values[:, at:end]], dim=1)
        pieces.append(_causal(asked[:, :, at:end], seen_keys, seen_values))
        at = end
    joined = torch.cat(pieces, dim=2)  # (groups, shared, tokens, width)
    return joined.reshape(1, groups * shared, -1, width).transpose(1, 2), None


def _causal(asked: Tensor, keys: Tensor, values: Tensor) -> Tensor:
    """Causal attention of a sequence's last tokens over the whole sequence."""
    groups, shared, length, width = asked.shape
    total = keys.shape[1]
    scores = (asked.reshape(groups, shared * length, width) @ keys.transpose(1, 2)).view(groups, shared, length, total)
    later = torch.ones(length, total, dtype=torch.bool, device=asked.device).triu(total - length + 1)
    weights = scores.masked_fill(later, -torch.inf).softmax(-1)
    return (weights.view(groups, shared * length, total) @ values).view(groups, shared, length, width)
