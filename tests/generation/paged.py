"""Ragged steps over a poisoned paged cache, and what they should give."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention

from generation.paged_attention import Kernels, PagedBatch
from generation.paged_cache import PagedTensors
from generation.paged_index import PagedRow

LAYER = 1  # of two: what goes to the wrong layer is missed


@dataclass(frozen=True, kw_only=True)
class Shape:
    """What a model and its cache look like, and how it attends."""

    kv_heads: int = 2
    group: int = 2
    head_dim: int = 8
    block_tokens: int = 16
    window: int | None = None
    softcap: float | None = None
    scaling: float | None = None
    dtype: torch.dtype = torch.float64
    device: str = "cpu"

    def random_sequence(self, length: int, *, seed: int) -> tuple[Tensor, Tensor, Tensor]:
        """[heads, length, head_dim] queries and [kv_heads, length, head_dim] keys and values."""
        generator = torch.Generator().manual_seed(seed)
        query, key, value = (
            torch.randn((heads, length, self.head_dim), generator=generator, dtype=torch.float64).to(self.dtype)
            for heads in (self.kv_heads * self.group, self.kv_heads, self.kv_heads)
        )
        return query, key, value

    def attend_contiguous(self, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        """[H, S, D] float64 attention of a whole sequence: no pages, no chunks, no fused kernels with GQA."""
        query, key, value = (tensor.double() for tensor in (query, key, value))
        key, value = (tensor.repeat_interleave(self.group, dim=0) for tensor in (key, value))
        positions = torch.arange(query.shape[1])
        mask = positions[None, :] <= positions[:, None]
        if self.window is not None:
            mask &= positions[None, :] > positions[:, None] - self.window
        if self.softcap is None:
            return scaled_dot_product_attention(query, key, value, attn_mask=mask, scale=self.scaling)
        scores = query @ key.transpose(1, 2) * (self.head_dim**-0.5 if self.scaling is None else self.scaling)
        scores = (torch.tanh(scores / self.softcap) * self.softcap).masked_fill(~mask, float("-inf"))
        return torch.softmax(scores, dim=-1) @ value

    def poisoned_tensors(self, blocks: int) -> PagedTensors:
        """Reading a slot that was not written shows as NaN."""
        tensors = PagedTensors(
            layers=2,
            kv_heads=self.kv_heads,
            head_dim=self.head_dim,
            blocks=blocks,
            block_tokens=self.block_tokens,
            dtype=self.dtype,
            device=torch.device(self.device),
        )
        tensors.keys.fill_(float("nan"))
        tensors.values.fill_(float("nan"))
        return tensors


def attend_in_steps(
    shape: Shape, plan: Sequence[Sequence[int]], *, kernels: Sequence[Kernels], block_seed: int = 0
) -> list[Tensor]:
    """Run sequences, `plan` giving the chunks of each, one chunk of each a step; [H, S, D] outputs.

    Step n runs with `kernels[n]`, those after the last with the last.
    """
    lengths = [sum(sizes) for sizes in plan]
    sequences = [shape.random_sequence(length, seed=owner) for owner, length in enumerate(lengths)]
    counts = [-(-length // shape.block_tokens) for length in lengths]
    free = list(range(sum(counts) + 2))
    random.Random(block_seed).shuffle(free)
    tables = [[free.pop() for _ in range(count)] for count in counts]
    tensors = shape.poisoned_tensors(sum(counts) + 2)
    outputs: list[list[Tensor]] = [[] for _ in plan]
    for step in range(max(map(len, plan))):
        rows: list[PagedRow] = []
        owners: list[int] = []
        parts: list[list[Tensor]] = [[], [], []]
        start = 0
        for owner, sizes in enumerate(plan):
            if step < len(sizes):
                past, count = sum(sizes[:step]), sizes[step]
                rows.append(PagedRow(start, start + count, past, tables[owner]))
                owners.append(owner)
                for part, tensor in zip(parts, sequences[owner], strict=True):
                    part.append(tensor[:, past : past + count])
                start += count
        query, key, value = (torch.cat(part, 1)[None].to(shape.device) for part in parts)
        batch = PagedBatch.build(tensors, rows, kernels=kernels[min(step, len(kernels) - 1)])
        out = batch.attend(
            LAYER,
            query,
            key,
            value,
            scaling=shape.scaling,
            window=shape.window,
            softcap=shape.softcap,
        )
        for row, owner in zip(rows, owners, strict=True):
            outputs[owner].append(out[0, row.start : row.stop].cpu())
    return [torch.cat(chunks).transpose(0, 1) for chunks in outputs]


def expected(shape: Shape, plan: Sequence[Sequence[int]]) -> list[Tensor]:
    """What `attend_in_steps` should give, in float64."""
    return [shape.attend_contiguous(*shape.random_sequence(sum(sizes), seed=owner)) for owner, sizes in enumerate(plan)]
