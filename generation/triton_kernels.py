"""Triton kernels for attention over a paged cache: rotate, store, attend, and the reduction of split keys.

One kernel attends; a program of it takes a tile of queries, all that share a key head (grouped heads x
tokens), and walks the row's block table with the online softmax of FlashAttention-2 (Dao 2023,
arXiv:2307.08691). For rows of few queries there are too few tiles to fill a GPU, so their keys are split
among programs as well (Flash-Decoding) and a second kernel adds up the parts. Design after the Triton
backend of vLLM (arXiv:2511.11581).

Scores and sums are float32 whatever the dtype of the cache; weights are rounded to it before they meet the
values.
"""
# Kernels are written in Triton's language: arguments have no Python types, constants are in capitals, and a
# kernel is one function, for what it calls is compiled into it anyway.
# mypy: disable-error-code="no-untyped-def, untyped-decorator"
# ruff: noqa: N803, PLR0915

import triton
import triton.language as tl

from generation.paged_index import ROW_FIELDS

_LOG2_E = tl.constexpr(1.4426950408889634)
_FIELDS = tl.constexpr(ROW_FIELDS)

# What differs from step to step compiles nothing anew: numbers of rows, and where the parts of a step's index lie in
# their buffer (`PagedIndex`), for a kernel that may count on 16 bytes is another one.


@triton.jit(do_not_specialize_on_alignment=["slots"])
def store_kernel(
    keys,  # [slots, KV_HEADS, HEAD_DIM]
    values,
    key,  # [kv_heads, T, HEAD_DIM] with strides
    value,
    slots,  # [T]
    key_head_stride,
    key_token_stride,
    value_head_stride,
    value_token_stride,
    KV_HEADS: tl.constexpr,
    HEAD_DIM: tl.constexpr,
    KV_HEADS_PADDED: tl.constexpr,
    HEAD_DIM_PADDED: tl.constexpr,
):
    """One token per program."""
    token = tl.program_id(0).to(tl.int64)
    slot = tl.load(slots + token).to(tl.int64)
    heads = tl.arange(0, KV_HEADS_PADDED)[:, None].to(tl.int64)
    dims = tl.arange(0, HEAD_DIM_PADDED)[None, :]
    present = (heads < KV_HEADS) & (dims < HEAD_DIM)
    target = slot * (KV_HEADS * HEAD_DIM) + heads * HEAD_DIM + dims
    new_key = tl.load(key + heads * key_head_stride + token * key_token_stride + dims, mask=present)
    new_value = tl.load(value + heads * value_head_stride + token * value_token_stride + dims, mask=present)
    tl.store(keys + target, new_key, mask=present)
    tl.store(values + target, new_value, mask=present)


@triton.jit
def _rotate(states, norm, cos, sin, dims, present, eps, HEAD_DIM: tl.constexpr, NORM: tl.constexpr):
    """Both halves of heads, normalised and rotated, float32; `states` points at their first numbers."""
    HALF: tl.constexpr = HEAD_DIM // 2  # noqa: N806 - Triton's spelling of a constant
    in_half = dims < HALF
    first = tl.load(states + dims, mask=present & in_half, other=0.0).to(tl.float32)
    second = tl.load(states + HALF + dims, mask=present & in_half, other=0.0).to(tl.float32)
    if NORM:
        squares = tl.sum(first * first + second * second, axis=1)[:, None]
        factor = 1 / tl.sqrt(squares / HEAD_DIM + eps)
        first *= factor * tl.load(norm + dims, mask=in_half, other=0.0).to(tl.float32)
        second *= factor * tl.load(norm + HALF + dims, mask=in_half, other=0.0).to(tl.float32)
    first_cos = tl.load(cos + dims, mask=in_half, other=0.0).to(tl.float32)
    first_sin = tl.load(sin + dims, mask=in_half, other=0.0).to(tl.float32)
    second_cos = tl.load(cos + HALF + dims, mask=in_half, other=0.0).to(tl.float32)
    second_sin = tl.load(sin + HALF + dims, mask=in_half, other=0.0).to(tl.float32)
    return first * first_cos - second * first_sin, second * second_cos + first * second_sin


@triton.jit(do_not_specialize_on_alignment=["slots"])
def rotate_and_store_kernel(
    rotated,  # [T, heads, HEAD_DIM]
    keys,  # [slots, KV_HEADS, HEAD_DIM]
    values,
    query,  # [heads, T, HEAD_DIM] with strides
    key,  # [kv_heads, T, HEAD_DIM] with strides
    value,
    cos,  # [T, HEAD_DIM]
    sin,
    query_norm,  # [HEAD_DIM], not read without NORM
    key_norm,
    slots,  # [T]
    query_head_stride,
    query_token_stride,
    key_head_stride,
    key_token_stride,
    value_head_stride,
    value_token_stride,
    eps,
    KV_HEADS: tl.constexpr,
    GROUP: tl.constexpr,
    HEAD_DIM: tl.constexpr,
    GROUP_PADDED: tl.constexpr,
    HALF_PADDED: tl.constexpr,
    NORM: tl.constexpr,
):
    """One token and one key head per program, with the queries that share it."""
    HALF: tl.constexpr = HEAD_DIM // 2  # noqa: N806 - Triton's spelling of a constant
    token = tl.program_id(0).to(tl.int64)
    kv_head = tl.program_id(1).to(tl.int64)
    dims = tl.arange(0, HALF_PADDED)[None, :]
    in_half = dims < HALF
    one = tl.zeros([1, 1], dtype=tl.int64)
    cos += token * HEAD_DIM
    sin += token * HEAD_DIM

    slot = tl.load(slots + token).to(tl.int64)
    target = (slot * KV_HEADS + kv_head) * HEAD_DIM + dims
    new_key = key + kv_head * key_head_stride + token * key_token_stride + one
    first, second = _rotate(new_key, key_norm, cos, sin, dims, one == 0, eps, HEAD_DIM, NORM)
    tl.store(keys + target, first.to(keys.dtype.element_ty), mask=in_half)
    tl.store(keys + target + HALF, second.to(keys.dtype.element_ty), mask=in_half)
    new_value = value + kv_head * value_head_stride + token * value_token_stride + dims
    tl.store(values + target, tl.load(new_value, mask=in_half), mask=in_half)
    tl.store(values + target + HALF, tl.load(new_value + HALF, mask=in_half), mask=in_half)

    group = tl.arange(0, GROUP_PADDED)[:, None].to(tl.int64)
    heads = kv_head * GROUP + group
    states = query + heads * query_head_stride + token * query_token_stride
    first, second = _rotate(states, query_norm, cos, sin, dims, group < GROUP, eps, HEAD_DIM, NORM)
    target = (token * (KV_HEADS * GROUP) + heads) * HEAD_DIM + dims
    tl.store(rotated + target, first.to(rotated.dtype.element_ty), mask=(group < GROUP) & in_half)
    tl.store(rotated + target + HALF, second.to(rotated.dtype.element_ty), mask=(group < GROUP) & in_half)


@triton.jit
def _find_row(rows, count, single, tile, TOKENS: tl.constexpr):
    """The row that a tile belongs to: the last one whose first tile is not after it. Where `single`, its own.

    A row's first tile is before // TOKENS + its number, which leaves room for what does not divide evenly.
    """
    left = single * (tile + 1)
    right = tl.maximum((1 - single) * count, left)
    while left < right:
        middle = (left + right) // 2
        before = tl.load(rows + middle * _FIELDS + 4)
        if before // TOKENS + middle <= tile:
            left = middle + 1
        else:
            right = middle
    return left - 1


@triton.jit(do_not_specialize=["row_count", "single", "splits"], do_not_specialize_on_alignment=["rows", "blocks"])
def attend_kernel(
    out,  # [T, heads, HEAD_DIM]; with SPLIT the parts, [s, heads, splits, HEAD_DIM] float32
    stats,  # with SPLIT the parts' log2 of the highest weight and their sum of weights, [s, heads, splits, 2]
    query,  # [heads, T, HEAD_DIM] with strides
    keys,  # [blocks + 1, BLOCK_TOKENS, KV_HEADS, HEAD_DIM]
    values,
    rows,  # [row_count, _FIELDS]
    blocks,  # the rows' block tables
    row_count,
    single,  # 1 where every row has one query: a tile for each then
    splits,
    query_head_stride,
    query_token_stride,
    scaling,
    softcap,
    KV_HEADS: tl.constexpr,
    GROUP: tl.constexpr,
    HEAD_DIM: tl.constexpr,
    HEAD_DIM_PADDED: tl.constexpr,
    BLOCK_TOKENS: tl.constexpr,
    LANES: tl.constexpr,
    TILE_KEYS: tl.constexpr,
    SPLIT: tl.constexpr,
    WINDOW: tl.constexpr,
    SOFTCAP: tl.constexpr,
    WIDEN: tl.constexpr,
):
    """One tile of queries, one key head and, with SPLIT, one range of SPLIT keys per program.

    LANES is the height of the tile: LANES // GROUP tokens of GROUP heads each, the rest idle. WINDOW 0 is none.
    """
    TOKENS: tl.constexpr = LANES // GROUP  # noqa: N806 - Triton's spelling of a constant
    tile = tl.program_id(0)
    kv_head = tl.program_id(1)
    split = tl.program_id(2)
    row = _find_row(rows, row_count, single, tile, TOKENS)
    start = tl.load(rows + row * _FIELDS)
    count = tl.load(rows + row * _FIELDS + 1)
    past = tl.load(rows + row * _FIELDS + 2)
    table = blocks + tl.load(rows + row * _FIELDS + 3)
    before = tl.load(rows + row * _FIELDS + 4)
    first = (1 - single) * (tile - (before // TOKENS + row)) * TOKENS

    # Keys that some query of the tile sees: [low, high).
    low = 0
    if WINDOW > 0:
        low = tl.maximum(past + first - WINDOW + 1, 0)
    high = past + tl.minimum(first + TOKENS, count)
    walk = low // TILE_KEYS * TILE_KEYS
    if SPLIT > 0:
        walk = tl.maximum(walk, split * SPLIT)
        high = tl.minimum(high, split * SPLIT + SPLIT)
    if (first >= count) | (walk >= high):
        return

    lanes = tl.arange(0, LANES)
    dims = tl.arange(0, HEAD_DIM_PADDED)
    tokens = first + lanes // GROUP
    heads = (kv_head * GROUP + lanes % GROUP).to(tl.int64)
    present = (lanes < TOKENS * GROUP) & (tokens < count)
    positions = past + tokens
    in_head = dims < HEAD_DIM
    query_offsets = heads * query_head_stride + (start + tokens).to(tl.int64) * query_token_stride
    lane_mask = present[:, None] & in_head[None, :]
    queries = tl.load(query + query_offsets[:, None] + dims[None, :], mask=lane_mask, other=0.0)
    if WIDEN:
        queries = queries.to(tl.float32)

    highest = tl.full([LANES], float("-inf"), dtype=tl.float32)
    total = tl.zeros([LANES], dtype=tl.float32)
    mixed = tl.zeros([LANES, HEAD_DIM_PADDED], dtype=tl.float32)
    for tile_start in range(walk, high, TILE_KEYS):
        key_positions = tile_start + tl.arange(0, TILE_KEYS)
        # Outside of [low, high) a slot may never have been written or be another's by now: not even loaded,
        # for a weight of 0 does not help against NaN.
        stored = (key_positions >= low) & (key_positions < high)
        block = tl.load(table + key_positions // BLOCK_TOKENS, mask=stored, other=0).to(tl.int64)
        slots = block * BLOCK_TOKENS + key_positions % BLOCK_TOKENS
        offsets = (slots * KV_HEADS + kv_head) * HEAD_DIM
        tile_keys = tl.load(keys + offsets[None, :] + dims[:, None], mask=stored[None, :] & in_head[:, None], other=0.0)
        tile_values = tl.load(
            values + offsets[:, None] + dims[None, :], mask=stored[:, None] & in_head[None, :], other=0.0
        )
        if WIDEN:
            tile_keys = tile_keys.to(tl.float32)
        # "ieee": float32 stays float32, where the default would be TF32. Without effect on narrower types.
        scores = tl.dot(queries, tile_keys, input_precision="ieee") * scaling
        if SOFTCAP:
            scores = softcap * (2 * tl.sigmoid(2 * scores / softcap) - 1)  # tanh
        scores *= _LOG2_E  # exp2 is the one the hardware has
        visible = stored[None, :] & (key_positions[None, :] <= positions[:, None])
        if WINDOW > 0:
            visible = visible & (key_positions[None, :] > positions[:, None] - WINDOW)
        scores = tl.where(visible, scores, float("-inf"))

        higher = tl.maximum(highest, tl.max(scores, axis=1))
        shift = tl.where(higher == float("-inf"), 0.0, higher)  # nothing seen yet: -inf - -inf would be NaN
        weights = tl.exp2(scores - shift[:, None])
        fade = tl.exp2(highest - shift)
        total = total * fade + tl.sum(weights, axis=1)
        rounded = weights.to(tile_values.dtype)
        if WIDEN:
            rounded = rounded.to(tl.float32)
            tile_values = tile_values.to(tl.float32)
        mixed = tl.dot(rounded, tile_values, mixed * fade[:, None], input_precision="ieee")
        highest = higher

    if SPLIT > 0:
        part = ((before + tokens).to(tl.int64) * (KV_HEADS * GROUP) + heads) * splits + split
        tl.store(stats + part * 2, highest, mask=present)
        tl.store(stats + part * 2 + 1, total, mask=present)
        tl.store(out + part[:, None] * HEAD_DIM + dims[None, :], mixed, mask=lane_mask)
    else:
        mixed = mixed / tl.where(present, total, 1.0)[:, None]
        target = ((start + tokens).to(tl.int64) * (KV_HEADS * GROUP) + heads) * HEAD_DIM
        tl.store(out + target[:, None] + dims[None, :], mixed.to(out.dtype.element_ty), mask=lane_mask)


@triton.jit(do_not_specialize=["splits"], do_not_specialize_on_alignment=["short_tokens"])
def reduce_kernel(
    out,  # [T, HEADS, HEAD_DIM]
    parts,  # [s, HEADS, splits, HEAD_DIM]
    stats,  # [s, HEADS, splits, 2]
    short_tokens,  # [s, 2]
    splits,
    HEADS: tl.constexpr,
    HEAD_DIM: tl.constexpr,
    HEAD_DIM_PADDED: tl.constexpr,
    SPLIT: tl.constexpr,
    AT_ONCE: tl.constexpr,
    WINDOW: tl.constexpr,
):
    """Add up the parts of one query token and head per program, always in the same order."""
    index = tl.program_id(0).to(tl.int64)
    head = tl.program_id(1)
    token = tl.load(short_tokens + index * 2).to(tl.int64)
    position = tl.load(short_tokens + index * 2 + 1)
    first = 0
    if WINDOW > 0:
        first = tl.maximum(position - WINDOW + 1, 0) // SPLIT
    stop = position // SPLIT + 1
    dims = tl.arange(0, HEAD_DIM_PADDED)
    in_head = dims < HEAD_DIM

    highest = float("-inf")
    total = 0.0
    mixed = tl.zeros([HEAD_DIM_PADDED], dtype=tl.float32)
    for begin in range(first // AT_ONCE * AT_ONCE, stop, AT_ONCE):
        split = begin + tl.arange(0, AT_ONCE)
        present = (split >= first) & (split < stop)  # parts outside were not computed
        part = (index * HEADS + head) * splits + split
        part_highest = tl.load(stats + part * 2, mask=present, other=float("-inf"))
        part_total = tl.load(stats + part * 2 + 1, mask=present, other=0.0)
        mask = present[:, None] & in_head[None, :]
        part_mixed = tl.load(parts + part[:, None] * HEAD_DIM + dims[None, :], mask=mask, other=0.0)
        higher = tl.maximum(highest, tl.max(part_highest, axis=0))
        shift = tl.where(higher == float("-inf"), 0.0, higher)
        fade = tl.exp2(highest - shift)
        weights = tl.exp2(part_highest - shift)
        total = total * fade + tl.sum(weights * part_total, axis=0)
        mixed = mixed * fade + tl.sum(weights[:, None] * part_mixed, axis=0)
        highest = higher
    target = (token * HEADS + head) * HEAD_DIM + dims
    tl.store(out + target, (mixed / total).to(out.dtype.element_ty), mask=in_head)
