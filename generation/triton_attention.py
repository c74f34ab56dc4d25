"""Launches the Triton kernels of attention over a paged cache.

Import only where Triton is installed. Tile sizes and splits depend on the model and on a row's own
length, never on the batch, so neither does a row's result. Those of single queries were tried on an H200
(docs/EXPERIMENTS.md), with 8 key heads of 128 for 32.
"""

import torch
import triton
from torch import Tensor

from generation.attention import HeadRotation
from generation.paged_index import SPLIT_KEYS, PagedIndex
from generation.triton_kernels import attend_kernel, reduce_kernel, rotate_and_store_kernel, store_kernel

_MIN_DOT = 16  # tl.dot needs every side at least this long
_LONG_LANES = 64  # queries times grouped heads that a program of a long row takes
_NARROW_BYTES = 256  # of a head: of such keys a program of few queries takes more at a time, and loads further ahead
_SPLITS_AT_ONCE = 8  # parts added up in one go
_SUPPORTED = (torch.float16, torch.bfloat16, torch.float32)


def store(keys: Tensor, values: Tensor, key: Tensor, value: Tensor, slots: Tensor) -> None:
    """Put new keys and values, [1, kv_heads, T, head_dim], into slots of a layer's cache.

    Args:
        keys: [blocks + 1, block_tokens, kv_heads, head_dim], contiguous; changed.
        values: Like `keys`; changed.
        key: Any strides.
        value: Any strides.
        slots: [T] int32; distinct but for padding.
    """
    assert keys.is_contiguous()
    assert values.is_contiguous()
    key, value = _dense_heads(key), _dense_heads(value)
    _, kv_heads, count, head_dim = key.shape
    store_kernel[(count,)](
        keys,
        values,
        key,
        value,
        slots,
        key.stride(1),
        key.stride(2),
        value.stride(1),
        value.stride(2),
        KV_HEADS=kv_heads,
        HEAD_DIM=head_dim,
        KV_HEADS_PADDED=triton.next_power_of_2(kv_heads),
        HEAD_DIM_PADDED=triton.next_power_of_2(head_dim),
    )


def rotate_and_store(
    keys: Tensor, values: Tensor, query: Tensor, key: Tensor, value: Tensor, slots: Tensor, rotation: HeadRotation
) -> Tensor:
    """Normalise and rotate queries and keys, and store keys and values as `store` does.

    Args:
        keys: See `store`, as the others.
        values: Changed.
        query: [1, heads, T, head_dim], any strides.
        key: Not rotated yet.
        value: Any strides.
        slots: [T] int32.
        rotation: What `HeadRotation.apply` would do; all of it is float32 here and rounded once.

    Returns:
        [1, heads, T, head_dim]: the queries to attend with.
    """
    assert keys.is_contiguous()
    assert values.is_contiguous()
    cos, sin = rotation.cos.contiguous(), rotation.sin.contiguous()
    query, key, value = _dense_heads(query), _dense_heads(key), _dense_heads(value)
    _, heads, count, head_dim = query.shape
    kv_heads = key.shape[1]
    assert cos.shape == sin.shape == (1, count, head_dim), "positions of a part of each head"
    rotated = torch.empty((1, count, heads, head_dim), dtype=query.dtype, device=query.device)
    normed = rotation.query_norm is not None
    rotate_and_store_kernel[(count, kv_heads)](
        rotated,
        keys,
        values,
        query,
        key,
        value,
        cos,
        sin,
        rotation.query_norm if normed else cos,
        rotation.key_norm if normed else cos,
        slots,
        query.stride(1),
        query.stride(2),
        key.stride(1),
        key.stride(2),
        value.stride(1),
        value.stride(2),
        rotation.eps,
        KV_HEADS=kv_heads,
        GROUP=heads // kv_heads,
        HEAD_DIM=head_dim,
        GROUP_PADDED=triton.next_power_of_2(heads // kv_heads),
        HALF_PADDED=triton.next_power_of_2(head_dim // 2),
        NORM=normed,
        num_warps=1,
    )
    return rotated.transpose(1, 2)


def attend(
    query: Tensor,
    keys: Tensor,
    values: Tensor,
    index: PagedIndex,
    *,
    scaling: float,
    window: int | None,
    softcap: float | None,
) -> Tensor:
    """[1, T, heads, head_dim] attention of [1, heads, T, head_dim] queries over a layer of the cache.

    See `PagedBatch.attend`; the new keys and values are stored already.
    """
    assert query.dtype in _SUPPORTED, f"no kernels for {query.dtype}"
    assert keys.is_contiguous()
    assert values.is_contiguous()
    query = _dense_heads(query)
    _, heads, count, head_dim = query.shape
    _, block_tokens, kv_heads, _ = keys.shape
    group = heads // kv_heads
    padded = max(_MIN_DOT, triton.next_power_of_2(head_dim))
    out = torch.empty((1, count, heads, head_dim), dtype=query.dtype, device=query.device)
    # Kernels at the edge of shared memory: wider heads get fewer keys at a time. Divides SPLIT_KEYS.
    tile_keys = 64 if padded <= 128 else 32

    def launch(target: Tensor, stats: Tensor, rows: Tensor, tokens: int, splits: int, lanes: int, split: int) -> None:
        single = split > 0 and tokens == rows.shape[0]
        # Every row may leave its last tile unfilled: some programs find nothing to do.
        tiles = tokens if single else tokens // (lanes // group) + rows.shape[0]
        few = split > 0 and padded * keys.element_size() <= _NARROW_BYTES
        attend_kernel[(tiles, kv_heads, splits)](
            target,
            stats,
            query,
            keys,
            values,
            rows,
            index.blocks,
            rows.shape[0],
            int(single),
            splits,
            query.stride(1),
            query.stride(2),
            scaling,
            1.0 if softcap is None else softcap,
            KV_HEADS=kv_heads,
            GROUP=group,
            HEAD_DIM=head_dim,
            HEAD_DIM_PADDED=padded,
            BLOCK_TOKENS=block_tokens,
            LANES=lanes,
            TILE_KEYS=128 if few else tile_keys,
            SPLIT=split,
            WINDOW=window or 0,
            SOFTCAP=softcap is not None,
            WIDEN=_interpreted() and query.dtype == torch.bfloat16,
            num_warps=4,
            num_stages=3 if few else 2,
        )

    smallest = triton.next_power_of_2(group)
    if index.long.shape[0]:
        tokens = count - index.short_tokens.shape[0]
        launch(out, out, index.long, tokens, 1, max(_LONG_LANES, smallest), 0)
    if short := index.short_tokens.shape[0]:
        parts = torch.empty((short, heads, index.splits, head_dim), dtype=torch.float32, device=query.device)
        stats = torch.empty((short, heads, index.splits, 2), dtype=torch.float32, device=query.device)
        launch(parts, stats, index.short, short, index.splits, max(_MIN_DOT, smallest), SPLIT_KEYS)
        reduce_kernel[(short, heads)](
            out,
            parts,
            stats,
            index.short_tokens,
            index.splits,
            HEADS=heads,
            HEAD_DIM=head_dim,
            HEAD_DIM_PADDED=triton.next_power_of_2(head_dim),
            SPLIT=SPLIT_KEYS,
            AT_ONCE=_SPLITS_AT_ONCE,
            WINDOW=window or 0,
            num_warps=1,
        )
    return out


def _dense_heads(states: Tensor) -> Tensor:
    """The same, every head vector contiguous."""
    return states if states.stride(-1) == 1 else states.contiguous()


def _interpreted() -> bool:
    """Whether the kernels run in Triton's interpreter, which multiplies bfloat16 by its bits, wrongly."""
    return not isinstance(attend_kernel, triton.JITFunction)
