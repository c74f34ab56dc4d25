"""Attention of ragged batches over a paged cache: Triton's kernels on CUDA, plain torch elsewhere.

The plain version is the reference that the kernels are tested against.
"""

from collections.abc import Sequence
from typing import Literal, Self

import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention

from generation.attention import Rotation
from generation.paged_cache import PagedTensors
from generation.paged_index import SPLIT_KEYS, PagedIndex, PagedRow

# "static" is the reference for steps of one query a row whose description is refilled in place.
Kernels = Literal["triton", "reference", "static"]


class PagedBatch:
    """The rows of one step over a paged cache. Built once a step, used by every layer."""

    def __init__(self, tensors: PagedTensors, index: PagedIndex, *, kernels: Kernels | None = None) -> None:
        """Take an index.

        Args:
            tensors: The cache.
            index: Of the step's rows.
            kernels: Which implementation; None takes Triton on CUDA and the reference elsewhere.
        """
        self._tensors = tensors
        self._index = index
        self._kernels = kernels or ("triton" if tensors.device.type == "cuda" else "reference")

    @classmethod
    def build(
        cls,
        tensors: PagedTensors,
        rows: Sequence[PagedRow],
        *,
        reserve_tokens: int = 0,
        kernels: Kernels | None = None,
    ) -> Self:
        """Describe a step to the device, in one copy from the host.

        Args:
            tensors: The cache.
            rows: At least one, packed in order without gaps.
            reserve_tokens: Leave room for `refill` with rows of up to this length each.
            kernels: See the constructor.
        """
        return cls(tensors, PagedIndex(tensors, rows, reserve_tokens=reserve_tokens), kernels=kernels)

    def refill(self, rows: Sequence[PagedRow]) -> None:
        """Describe other rows, of the same query counts and within the reserve, in the same device memory."""
        self._index.refill(rows)

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
        """Store the new keys and values in their slots, then attend, each row to itself.

        Query i of a row sees the row's positions up to `past + i`. Nothing is read that this step or an
        earlier one did not write, nor what lies before the window of all of a row's queries.

        Args:
            layer: Index of the layer.
            query: [1, heads, T, head_dim], T tokens of all rows packed.
            key: [1, kv_heads, T, head_dim]; heads is a multiple of kv_heads.
            value: [1, kv_heads, T, head_dim].
            scaling: Factor of the scores; None is head_dim ** -0.5.
            window: How many last tokens a query sees, itself included; None sees all.
            softcap: Scores become softcap * tanh(score / softcap) (Gemma 2, arXiv:2408.00118).
            rotation: Positions that are not applied to queries and keys yet.

        Returns:
            [1, T, heads, head_dim].
        """
        tensors, index = self._tensors, self._index
        _, heads, count, head_dim = query.shape
        assert key.shape == value.shape == (1, tensors.kv_heads, count, tensors.head_dim)
        assert count == index.slots.numel(), "a batch of another step"
        assert head_dim == tensors.head_dim
        assert heads % tensors.kv_heads == 0
        assert query.dtype == key.dtype == value.dtype == tensors.keys.dtype
        assert window is None or window > 0
        scaling = head_dim**-0.5 if scaling is None else scaling
        keys, values = tensors.layer(layer)
        if self._kernels != "triton":
            if rotation is not None:
                query, key = rotation.apply(query, key)
            _store(keys, key, index)
            _store(values, value, index)
            plain = _attend if self._kernels == "reference" else _attend_static
            return plain(query, keys, values, index, scaling=scaling, window=window, softcap=softcap)
        # Triton is installed where there is a GPU, and its kernels are compiled for the device at first use.
        from generation import triton_attention

        if rotation is None:
            triton_attention.store(keys, values, key, value, index.slots)
        else:
            query = triton_attention.rotate_and_store(keys, values, query, key, value, index.slots, rotation)
        return triton_attention.attend(query, keys, values, index, scaling=scaling, window=window, softcap=softcap)


def _store(cache: Tensor, new: Tensor, index: PagedIndex) -> None:
    """Put [1, kv_heads, T, head_dim] into the slots of [blocks + 1, block_tokens, kv_heads, head_dim]."""
    cache.flatten(0, 1)[index.slots] = new[0].transpose(0, 1)


def _attend(
    query: Tensor,
    keys: Tensor,
    values: Tensor,
    index: PagedIndex,
    *,
    scaling: float,
    window: int | None,
    softcap: float | None,
) -> Tensor:
    """[1, T, heads, head_dim]: every row's keys gathered from its blocks, then attention as torch has it."""
    out = torch.empty_like(query.transpose(1, 2))
    block_tokens = keys.shape[1]
    for row, table in zip(index.rows, index.tables, strict=True):
        first = 0 if window is None else max(0, row.past - window + 1)  # the first query's horizon
        used = table[first // block_tokens :]
        span = slice(first % block_tokens, row.length - first // block_tokens * block_tokens)
        row_keys, row_values = (cache[used].flatten(0, 1)[span].transpose(0, 1)[None] for cache in (keys, values))
        row_query = query[:, :, row.start : row.stop]
        mask: Tensor | None = None
        if row.stop - row.start > 1:
            query_positions = torch.arange(row.past, row.length, device=query.device)[:, None]
            key_positions = torch.arange(first, row.length, device=query.device)[None, :]
            mask = key_positions <= query_positions
            if window is not None:
                mask &= key_positions > query_positions - window
        if softcap is None:
            attended = scaled_dot_product_attention(
                row_query, row_keys, row_values, attn_mask=mask, scale=scaling, enable_gqa=True
            )
        else:
            attended = _attend_softcapped(row_query, row_keys, row_values, mask, scaling=scaling, softcap=softcap)
        out[:, row.start : row.stop] = attended.transpose(1, 2)
    return out


def _attend_static(
    query: Tensor,
    keys: Tensor,
    values: Tensor,
    index: PagedIndex,
    *,
    scaling: float,
    window: int | None,
    softcap: float | None,
) -> Tensor:
    """`_attend` for rows of one query each, as the kernels see them: from the index's tensors alone.

    Of the step only the shape of its reserve is used, so a recording of these operations
    holds for every step of that shape.
    """
    _, heads, count, head_dim = query.shape
    assert index.short.shape[0] == count, "rows of one query each"
    block_tokens = keys.shape[1]
    positions = torch.arange(index.splits * SPLIT_KEYS, device=query.device)
    past, entry = index.short[:, 2:3], index.short[:, 3:4]
    visible = positions <= past  # [n, keys]
    if window is not None:
        visible &= positions > past - window
    # A weight of 0 does not help against NaN: what is not visible is neither looked up nor read.
    blocks = index.blocks[torch.where(visible, entry + positions // block_tokens, 0)]
    slots = blocks * block_tokens + positions % block_tokens
    row_keys, row_values = (
        cache.flatten(0, 1)[slots].masked_fill(~visible[:, :, None, None], 0).transpose(1, 2)
        for cache in (keys, values)
    )  # [n, kv_heads, keys, head_dim]
    row_query, mask = query[0].transpose(0, 1)[:, :, None], visible[:, None, None]
    if softcap is None:
        attended = scaled_dot_product_attention(
            row_query, row_keys, row_values, attn_mask=mask, scale=scaling, enable_gqa=True
        )
    else:
        mask = mask[:, :, None]
        attended = _attend_softcapped(row_query, row_keys, row_values, mask, scaling=scaling, softcap=softcap)
    return attended.reshape(1, count, heads, head_dim)


def _attend_softcapped(
    query: Tensor, keys: Tensor, values: Tensor, mask: Tensor | None, *, scaling: float, softcap: float
) -> Tensor:
    """Spelled out: no fused kernel of torch caps scores. Scores and softmax are at least float32."""
    precision = torch.promote_types(query.dtype, torch.float32)
    rows, heads, count, head_dim = query.shape
    grouped = query.reshape(rows, keys.shape[1], -1, count, head_dim).to(precision)
    scores = grouped @ keys[:, :, None].to(precision).transpose(-1, -2) * scaling
    scores = softcap * torch.tanh(scores / softcap)
    if mask is not None:
        scores = scores.masked_fill(~mask, float("-inf"))
    return (
        (torch.softmax(scores, dim=-1) @ values[:, :, None].to(precision))
        .reshape(rows, heads, count, head_dim)
        .to(query.dtype)
    )
