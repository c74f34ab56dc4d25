"""Attention over ragged batches, plugged into unmodified transformers models.

transformers calls the registered function in every attention layer; the batch travels as a keyword
argument of the model's forward. An implementation that transformers has no mask function for gets no
mask from the model, so masking is done here.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import torch
from torch import Tensor
from torch.nn.functional import rms_norm, scaled_dot_product_attention

from generation.blocked_attention import attend_in_blocks
from generation.kv_cache import Slab

IMPLEMENTATION = "footnote_ragged"
# Keyword arguments that change the result and that this function does not compute.
_UNSUPPORTED = ("s_aux", "position_bias", "head_mask")
# Between these many queries of a row, stacking the heads that share keys is up to twice as fast on a CPU
# as letting the kernel repeat the keys (17 queries over 1,500 keys: 1.25 against 2.8 ms); outside it is not.
_FEW, _MANY = 5, 64


@dataclass(frozen=True, slots=True, eq=False)
class Rotation:
    """Positions that are still to be applied to queries and keys, by rotary embedding (Su et al., arXiv:2104.09864).

    Attributes:
        cos: [1, T, head_dim], the second half like the first.
        sin: Like `cos`.
        query_norm: [head_dim], the weight of an RMSNorm of each query head beforehand; None without one.
        key_norm: The same for keys.
        eps: Of both norms.
    """

    cos: Tensor
    sin: Tensor
    query_norm: Tensor | None = None
    key_norm: Tensor | None = None
    eps: float = 0.0

    def apply(self, query: Tensor, key: Tensor) -> tuple[Tensor, Tensor]:
        """[1, heads, T, head_dim] queries and keys, normalised and rotated."""
        return self._rotated(query, self.query_norm), self._rotated(key, self.key_norm)

    def _rotated(self, states: Tensor, norm: Tensor | None) -> Tensor:
        if norm is not None:
            states = rms_norm(states, norm.shape, norm, self.eps)
        cos, sin, half = self.cos[:, None], self.sin[:, None], states.shape[-1] // 2
        out = states * cos
        out[..., :half].addcmul_(states[..., half:], sin[..., :half], value=-1)
        out[..., half:].addcmul_(states[..., :half], sin[..., half:])
        return out


@dataclass(slots=True, eq=False)
class Row:
    """One sequence's share of a step: queries `start`…`stop` of the packed tokens, at position `past` onwards."""

    start: int
    stop: int
    past: int
    slab: Slab
    _masks: dict[int | None, Tensor] = field(default_factory=dict)
    _grouped_masks: dict[int | None, Tensor] = field(default_factory=dict)

    def mask(self, first_key: int, window: int | None, device: torch.device) -> Tensor:
        """[n, past + n - first_key] bool, True where query i may see key j: causal from the bottom right."""
        if window not in self._masks:  # the same for every layer with this window
            queries = torch.arange(self.past, self.past + self.stop - self.start, device=device)[:, None]
            keys = torch.arange(first_key, self.past + self.stop - self.start, device=device)[None, :]
            visible = keys <= queries
            self._masks[window] = visible if window is None else visible & (keys > queries - window)
        return self._masks[window]

    def grouped_mask(self, first_key: int, window: int | None, query: Tensor, groups: int) -> Tensor:
        """The mask for `groups` query heads stacked as rows: [groups * n, keys], 0 or -inf in `query`'s format."""
        if window not in self._grouped_masks:
            visible = self.mask(first_key, window, query.device)
            added = torch.zeros(visible.shape, dtype=query.dtype, device=query.device)
            self._grouped_masks[window] = added.masked_fill_(~visible, float("-inf")).repeat(groups, 1)
        return self._grouped_masks[window]


def register() -> None:
    """Register the function with transformers under `IMPLEMENTATION`. Idempotent."""
    from transformers import AttentionInterface

    AttentionInterface.register(IMPLEMENTATION, ragged_attention)


class Batch(Protocol):
    """The rows of one step over a cache of some layout."""

    def attend(
        self,
        layer: int,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        *,
        scaling: float | None,
        window: int | None,
        softcap: float | None,
        rotation: Rotation | None = None,
    ) -> Tensor:
        """Store the new keys and values, then attend, each row to itself; [1, T, heads, head_dim].

        Queries and keys are rotated beforehand where `rotation` is given.
        """
        ...


class SlabBatch:
    """Rows whose keys and values are in one slab each."""

    def __init__(self, rows: Sequence[Row], *, blocked: bool = False) -> None:
        """Take the rows; `blocked` has prompts attend in blocks of queries (`generation.blocked_attention`)."""
        self._rows = rows
        self._blocked = blocked

    def attend(
        self,
        layer: int,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        *,
        scaling: float | None,
        window: int | None,
        softcap: float | None,
        rotation: Rotation | None = None,
    ) -> Tensor:
        """See `Batch.attend`; arguments as `ragged_attention`'s."""
        if rotation is not None:
            query, key = rotation.apply(query, key)
        out = torch.empty_like(query.transpose(1, 2))
        for row in self._rows:
            span = slice(row.start, row.stop)
            keys, values = row.slab.write(layer, row.past, key[0, :, span], value[0, :, span])
            mine = query[:, :, span]
            if self._blocked and softcap is None and row.stop - row.start > _MANY:
                factor = query.shape[3] ** -0.5 if scaling is None else scaling
                out[:, span] = attend_in_blocks(mine, keys, values, past=row.past, scaling=factor, window=window)
                continue
            attended = _attend(mine, keys, values, row, scaling=scaling, window=window, softcap=softcap)
            out[:, span] = attended.transpose(1, 2)
        return out


def ragged_attention(
    module: torch.nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    *,
    ragged_batch: Batch,
    scaling: float | None = None,
    sliding_window: int | None = None,
    softcap: float | None = None,
    **kwargs: Any,
) -> tuple[Tensor, None]:
    """Write the new keys and values to the cache and attend, each row to itself.

    Args:
        module: The calling layer; `layer_idx` chooses the cache's layer.
        query: [1, heads, T, head_dim], T tokens of all rows packed, positions applied.
        key: [1, kv_heads, T, head_dim].
        value: [1, kv_heads, T, head_dim].
        attention_mask: None.
        ragged_batch: How the T tokens are shared out, and where their keys and values are.
        scaling: Factor of the scores; None is head_dim ** -0.5.
        sliding_window: How many last tokens a query attends to, itself included; None means all.
        softcap: Scores become softcap * tanh(score / softcap) (Gemma 2, arXiv:2408.00118).
        kwargs: Other arguments of the model; refused when they would change the result.

    Returns:
        [1, T, heads, head_dim], and no weights.

    Raises:
        NotImplementedError: the layer needs something this function does not compute.
    """
    assert attention_mask is None, "transformers made a mask for us"
    if asked := [name for name in _UNSUPPORTED if kwargs.get(name) is not None]:
        raise NotImplementedError(f"attention with {', '.join(asked)}")
    if kwargs.get("is_causal") is False or getattr(module, "is_causal", True) is False:
        raise NotImplementedError("attention that is not causal")
    layer: int = module.layer_idx  # type: ignore[assignment]
    out = ragged_batch.attend(layer, query, key, value, scaling=scaling, window=sliding_window, softcap=softcap)
    return out, None


def _attend(
    query: Tensor,
    keys: Tensor,
    values: Tensor,
    row: Row,
    *,
    scaling: float | None,
    window: int | None,
    softcap: float | None,
) -> Tensor:
    """[1, heads, n, D] queries over [kv_heads, S, D] keys and values, giving [1, heads, n, D]."""
    first_key = 0 if window is None else max(0, row.past - window + 1)  # the first query's horizon
    keys, values = keys[None, :, first_key:], values[None, :, first_key:]
    count = query.shape[2]
    if softcap is not None:
        mask = row.mask(first_key, window, query.device)
        return _attend_softcapped(query, keys, values, mask, scaling=scaling, softcap=softcap)
    if count == 1:
        # The queries that share a key head become its rows: nothing is repeated, nothing is masked.
        grouped = query.reshape(1, keys.shape[1], -1, query.shape[3])
        return scaled_dot_product_attention(grouped, keys, values, scale=scaling).reshape(query.shape)
    if row.past == 0 and (window is None or count <= window):
        return scaled_dot_product_attention(query, keys, values, is_causal=True, scale=scaling, enable_gqa=True)
    groups = query.shape[1] // keys.shape[1]
    if groups > 1 and _FEW < count <= _MANY:
        # Drafts being verified, small chunks: as above, each key is read once for all the heads that share it.
        grouped = query.reshape(1, keys.shape[1], groups * count, query.shape[3])
        mask = row.grouped_mask(first_key, window, query, groups)
        return scaled_dot_product_attention(grouped, keys, values, attn_mask=mask, scale=scaling).reshape(query.shape)
    mask = row.mask(first_key, window, query.device)
    return scaled_dot_product_attention(query, keys, values, attn_mask=mask, scale=scaling, enable_gqa=True)


def _attend_softcapped(
    query: Tensor, keys: Tensor, values: Tensor, mask: Tensor, *, scaling: float | None, softcap: float
) -> Tensor:
    """Spelled out: no fused kernel caps scores. The softmax is float32, as in the models' own code."""
    _, heads, count, head_dim = query.shape
    grouped = query.reshape(1, keys.shape[1], -1, count, head_dim)
    scores = grouped @ keys[:, :, None].transpose(-1, -2) * (head_dim**-0.5 if scaling is None else scaling)
    scores = (torch.tanh(scores / softcap) * softcap).masked_fill(~mask, float("-inf"))
    weights = torch.softmax(scores, dim=-1, dtype=torch.float32).to(query.dtype)
    return (weights @ values[:, :, None]).reshape(1, heads, count, head_dim)
