"""generation.triton_kernels: no step of a model needs another variant of a kernel than the first one.

Triton compiles a variant for each combination of what it may assume of arguments, such as addresses that are multiples
of 16 bytes. What it would assume is asked of it here, for an H100, which needs neither the device nor a compiler.
"""

import random
from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from generation.paged_cache import PagedTensors
from generation.paged_index import PagedIndex, PagedRow

pytest.importorskip("triton")

from triton import JITFunction

from generation import triton_attention
from generation.triton_kernels import attend_kernel, reduce_kernel, store_kernel
from tests.generation.launches import Launches

pytestmark = pytest.mark.skipif(not isinstance(attend_kernel, JITFunction), reason="Triton interprets here")

HEADS, KV_HEADS, HEAD_DIM, BLOCK_TOKENS = 8, 2, 64, 16
DTYPE = torch.bfloat16


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> dict[str, Launches]:
    kernels = {"store": Launches(store_kernel), "attend": Launches(attend_kernel), "reduce": Launches(reduce_kernel)}
    for name, kernel in kernels.items():
        monkeypatch.setattr(triton_attention, f"{name}_kernel", kernel)
    return kernels


def schedule(count: int, *, seed: int) -> list[list[tuple[int, int]]]:
    """Steps, each (queries, tokens before) of some rows: single tokens, drafts and chunks of prompts."""
    choose = random.Random(seed)
    return [
        [(choose.choice([1, 1, 1, 4, 40, 171]), choose.randrange(700)) for _ in range(choose.randint(1, 9))]
        for _ in range(count)
    ]


def attend(tensors: PagedTensors, rows: list[tuple[int, int]], *, aligned: Callable[[Tensor], bool]) -> bool:
    """Launch one step; returns whether some part of its index is not aligned."""
    packed: list[PagedRow] = []
    for queries, past in rows:
        start = packed[-1].stop if packed else 0
        packed.append(PagedRow(start, start + queries, past, range(-(-(past + queries) // BLOCK_TOKENS))))
    tokens = packed[-1].stop
    index = PagedIndex(tensors, packed, carried=range(tokens))
    query = torch.zeros(1, tokens, HEADS, HEAD_DIM, dtype=DTYPE).transpose(1, 2)
    new = torch.zeros(1, tokens, KV_HEADS, HEAD_DIM, dtype=DTYPE).transpose(1, 2)
    keys, values = tensors.layer(0)
    triton_attention.store(keys, values, new, new, index.slots)
    triton_attention.attend(query, keys, values, index, scaling=0.1, window=None, softcap=None)
    return not all(map(aligned, (index.short, index.long, index.blocks, index.short_tokens)))


def test_a_schedule_of_ragged_steps_needs_one_variant_of_each_kernel_and_two_of_attention(
    asked: dict[str, Launches],
) -> None:
    tensors = PagedTensors(
        layers=1,
        kv_heads=KV_HEADS,
        head_dim=HEAD_DIM,
        blocks=64,
        block_tokens=BLOCK_TOKENS,
        dtype=DTYPE,
        device=torch.device("cpu"),
    )

    unaligned = [attend(tensors, rows, aligned=lambda part: part.data_ptr() % 16 == 0) for rows in schedule(60, seed=0)]

    assert sum(unaligned) > 30, "the schedule has what would need variants"
    needed = {name: len(kernel.variants) for name, kernel in asked.items()}
    assert needed == {"store": 1, "attend": 2, "reduce": 1}, "attention over long rows, and over split ones"
