"""Attention of a prompt in blocks of queries, for processors on which torch's own is slow in bfloat16.

torch's attention for processors multiplies bfloat16 by AMX, or else by routines that some processors run at a fifth of
the rate of plain matrix products (measured: AVX512-BF16 without AMX). Here a block of queries is multiplied with all
keys that some query of it sees, for all heads that share a key head at once; keys after the block are skipped.

Scores are rounded to the format of the queries, where torch keeps float32. A softmax does not change when each of a
row's scores changes by the same number, so the mean of the keys is taken from each key beforehand: where keys have a
large part in common (the biases of Qwen2), it would cost most of the score's digits (SageAttention, Zhang et al. 2024,
arXiv:2410.02367).
"""

import ctypes
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention

_BLOCK = 64  # queries; more of them compute more that is masked, fewer multiply at a lower rate
_TRIAL_QUERIES, _TRIAL_PAST = 128, 512
_ROUNDS = 4
_FASTER = 0.9  # of the time of torch's own: less may be noise
_TOLERANCE = 0.02  # of the norm of what is attended


def attend_in_blocks(
    query: Tensor, keys: Tensor, values: Tensor, *, past: int, scaling: float, window: int | None = None
) -> Tensor:
    """[1, n, heads, head_dim] causal attention of the last n of a sequence's tokens.

    Args:
        query: [1, heads, n, head_dim], at positions `past` onwards.
        keys: [kv_heads, past + n, head_dim].
        values: Like `keys`.
        past: Tokens before the queries.
        scaling: Factor of the scores.
        window: How many last tokens a query attends to, itself included; None means all.
    """
    _, heads, count, head_dim = query.shape
    kv_heads, groups = keys.shape[0], heads // keys.shape[0]
    first_key = 0 if window is None else max(0, past - window + 1)  # the first query's horizon
    centred = _centred(keys[:, first_key:], scaling).transpose(1, 2)
    out = torch.empty((1, count, heads, head_dim), dtype=query.dtype, device=query.device)
    for start in range(0, count, _BLOCK):
        stop = min(count, start + _BLOCK)
        first = 0 if window is None else max(0, past + start - window + 1)
        last = past + stop
        block = query[0, :, start:stop].reshape(kv_heads, -1, head_dim)
        scores = torch.bmm(block, centred[:, :, first - first_key : last - first_key])
        by_query = scores.view(kv_heads, groups, stop - start, last - first)
        _hide(by_query, past + start - first, window)
        torch.softmax(scores, -1, out=scores)
        mixed = torch.bmm(scores, values[:, first:last])
        out[0, start:stop] = mixed.view(heads, stop - start, head_dim).transpose(0, 1)
    return out


def is_faster(*, heads: int, kv_heads: int, head_dim: int, dtype: torch.dtype) -> bool:
    """Whether attention in blocks takes clearly less time here than torch's own, at the same result.

    Both read the same part of a prompt behind another, in turn, for some hundredths of a second.
    """
    generator = torch.Generator().manual_seed(0)

    def noise(*shape: int) -> Tensor:
        return torch.randn(shape, generator=generator).to(dtype)

    length = _TRIAL_PAST + _TRIAL_QUERIES
    query = noise(1, _TRIAL_QUERIES, heads, head_dim).transpose(1, 2)
    keys, values = noise(kv_heads, length, head_dim), noise(kv_heads, length, head_dim)
    scaling = head_dim**-0.5
    visible = torch.arange(length) <= torch.arange(_TRIAL_PAST, length)[:, None]

    def torchs() -> Tensor:
        attended = scaled_dot_product_attention(
            query, keys[None], values[None], attn_mask=visible, scale=scaling, enable_gqa=True
        )
        return attended.transpose(1, 2)

    def ours() -> Tensor:
        return attend_in_blocks(query, keys, values, past=_TRIAL_PAST, scaling=scaling)

    best_torchs, best_ours = fastest([torchs, ours], rounds=_ROUNDS)
    with torch.inference_mode():
        expected, got = torchs().float(), ours().float()
    agree = bool((got - expected).norm() <= _TOLERANCE * expected.norm())  # also refuses NaN
    return agree and best_ours <= _FASTER * best_torchs


def fastest(calls: Sequence[Callable[[], Tensor]], *, rounds: int) -> list[float]:
    """Processor seconds of each call on one core, the best of `rounds` rounds in which all take turns.

    By the clock of a thread that works alone, the verdict is the same on a busy machine: where several cores wait for
    each other, one that serves a neighbour makes a call ten times as long.
    """
    with ThreadPoolExecutor(1, initializer=_use_one_core) as thread:
        return thread.submit(_time, calls, rounds).result()


@torch.inference_mode()
def _time(calls: Sequence[Callable[[], Tensor]], rounds: int) -> list[float]:
    for call in calls:
        call()  # the first call sets things up
    best = [float("inf")] * len(calls)
    for _ in range(rounds):
        for place, call in enumerate(calls):
            began = time.thread_time()
            call()
            best[place] = min(best[place], time.thread_time() - began)
    return best


def _use_one_core() -> None:
    """Keep torch to the calling thread. `torch.set_num_threads` would do so to threads that begin meanwhile, too."""
    with suppress(OSError, AttributeError):  # without OpenMP by this name, all cores are measured
        ctypes.CDLL(None).omp_set_num_threads(1)


def _centred(keys: Tensor, scaling: float) -> Tensor:
    """The keys without their mean over the tokens, scaled, rounded once."""
    wide = keys.to(torch.promote_types(keys.dtype, torch.float32), copy=True)
    wide -= wide.mean(1, keepdim=True)
    return wide.mul_(scaling).to(keys.dtype)


def _hide(scores: Tensor, offset: int, window: int | None) -> None:
    """Set to -inf what a query must not see: [..., n, keys], query i being the key at `offset` + i."""
    count, length = scores.shape[-2:]
    own = torch.arange(count, device=scores.device)[:, None]
    later = torch.arange(count, device=scores.device) > own
    scores[..., length - count :].masked_fill_(later, float("-inf"))
    if window is not None and (gone := offset + count - window) > 0:  # keys that the last query no longer sees
        earlier = torch.arange(gone, device=scores.device) <= own + (offset - window)
        scores[..., :gone].masked_fill_(earlier, float("-inf"))
