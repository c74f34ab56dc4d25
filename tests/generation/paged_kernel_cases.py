"""The Triton kernels against attention over contiguous keys; run by test_paged_kernels.py in its own process.

With TRITON_INTERPRET=1 the kernels run in Triton's interpreter on the CPU, otherwise on the GPU.
"""

import os
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from generation import triton_attention, triton_layers
from generation.attention import HeadRotation
from generation.config import EngineConfig
from generation.memory import why_no_pages
from generation.paged_attention import Kernels, PagedBatch
from generation.paged_index import PagedIndex, PagedRow
from generation.weights import LoadedModel, adopt_model
from tests.generation.paged import LAYER, Shape, attend_in_steps, expected
from tests.generation.tiny import tiny_model

torch.set_num_threads(1)

DEVICE = "cpu" if os.environ.get("TRITON_INTERPRET") == "1" else "cuda"

if DEVICE == "cpu":
    from triton.runtime.interpreter import InterpreterBuilder, TensorHandle

    def dot(self: Any, a: Any, b: Any, added: Any, *_precision: Any) -> Any:
        """`a` times `b` plus `added`, each row summed in the same order, as on a GPU.

        The interpreter multiplies by BLAS, which on some processors rounds a row by its place in the tile.
        """
        left, right = (one.data.astype(added.data.dtype) for one in (a, b))
        total = np.zeros_like(added.data)
        for k in range(left.shape[1]):
            total += left[:, k, None] * right[k]
        return TensorHandle(total + added.data, added.dtype.scalar)

    InterpreterBuilder.create_dot = dot

F32, F16, BF16 = torch.float32, torch.float16, torch.bfloat16
TOLERANCE = {F32: 2e-5, F16: 4e-3, BF16: 3e-2}
BOTH: tuple[Kernels, Kernels] = ("triton", "reference")
# decoding in a fresh block, a chunk of exact blocks, a verification, a prefill beside them
MIXED = [[16, 1], [32, 4], [5, 30], [1, 17]]
LONG = [[530, 2], [255, 2]]  # three splits, nine tiles of keys; a row whose drafts lie in two splits


@pytest.mark.parametrize(
    ("shape", "plan"),
    [
        (Shape(dtype=F32, kv_heads=2, group=1, head_dim=16), MIXED),
        (Shape(dtype=F32, kv_heads=1, group=3, head_dim=64), MIXED),
        (Shape(dtype=F32, kv_heads=1, group=4, head_dim=80, window=7), MIXED),
        (Shape(dtype=F32, kv_heads=3, group=2, head_dim=16, block_tokens=32, window=16, softcap=1.5), MIXED),
        (Shape(dtype=F32, kv_heads=1, group=20, head_dim=8, scaling=0.7), [[3, 1], [18]]),
        (Shape(dtype=F32, kv_heads=1, group=2, head_dim=16), LONG),
        (Shape(dtype=F32, kv_heads=1, group=2, head_dim=16), [[2100, 1], [3, 1]]),  # more parts than are added at once
        (Shape(dtype=F32, kv_heads=1, group=2, head_dim=16, window=200, softcap=2.0), LONG),
        (Shape(dtype=F16, kv_heads=1, group=8, head_dim=128), [[20, 1], [2, 2]]),
        (Shape(dtype=BF16, kv_heads=1, group=3, head_dim=64, block_tokens=32), [[40, 1], [2, 2]]),
        (Shape(dtype=BF16, kv_heads=1, group=1, head_dim=256, window=9, softcap=30.0), [[20, 1], [3]]),
    ],
    ids=str,
)
def test_the_kernels_equal_attention_over_contiguous_keys(shape: Shape, plan: list[list[int]]) -> None:
    shape = replace(shape, device=DEVICE)

    # The interpreter is slow: torch computes what comes before.
    outputs = attend_in_steps(shape, plan, kernels=["reference", "triton"])

    for output, wanted in zip(outputs, expected(shape, plan), strict=True):
        torch.testing.assert_close(output.double(), wanted, atol=TOLERANCE[shape.dtype], rtol=TOLERANCE[shape.dtype])


def test_the_kernels_store_what_they_read_later() -> None:
    shape = replace(Shape(dtype=F32, kv_heads=3, group=2, head_dim=8), device=DEVICE)
    plan = [[18, 1, 3], [2, 17]]

    outputs = attend_in_steps(shape, plan, kernels=["triton"])

    for output, wanted in zip(outputs, expected(shape, plan), strict=True):
        torch.testing.assert_close(output.double(), wanted, atol=TOLERANCE[F32], rtol=TOLERANCE[F32])


def test_neighbours_and_blocks_change_no_bit_of_a_sequence() -> None:
    shape = replace(Shape(dtype=F32, kv_heads=1, group=2, head_dim=16), device=DEVICE)

    [alone] = attend_in_steps(shape, [[270, 1]], kernels=["reference", "triton"])
    among, *_ = attend_in_steps(shape, [[270, 1], [600, 2], [5, 17]], kernels=["reference", "triton"], block_seed=8)

    assert torch.equal(alone, among)


def test_verifying_drafts_gives_the_bits_of_decoding() -> None:
    shape = replace(Shape(dtype=F32, kv_heads=1, group=4, head_dim=16), device=DEVICE)

    [decoded] = attend_in_steps(shape, [[253, 1, 1, 1, 1, 1, 1]], kernels=["reference", "triton"])
    [verified] = attend_in_steps(shape, [[253, 6]], kernels=["reference", "triton"])

    assert torch.equal(decoded, verified)


@pytest.mark.parametrize("window", [None, 30])
def test_a_padded_description_refilled_in_place_changes_no_bit_and_touches_nothing_else(window: int | None) -> None:
    shape = replace(Shape(dtype=F32, kv_heads=2, group=2, head_dim=16, window=window), device=DEVICE)
    tensors = shape.poisoned_tensors(24)
    lengths, tables = (261, 5), ([*range(18, 1, -1)], [20])
    for owner, (length, table) in enumerate(zip(lengths, tables, strict=True)):
        query, key, value = (part[None].to(DEVICE) for part in shape.random_sequence(length, seed=owner))
        PagedBatch.build(tensors, [PagedRow(0, length, 0, table)], kernels="reference").attend(
            LAYER, query, key, value, scaling=None, window=window, softcap=None
        )
    query, key, value = (part[None].to(DEVICE) for part in shape.random_sequence(4, seed=9))
    padding = [PagedRow(n, n + 1, 0, [tensors.trash]) for n in range(4)]
    rows = [PagedRow(0, 1, 261, tables[0]), PagedRow(1, 2, 5, tables[1])]
    index = PagedIndex(tensors, padding, reserve_tokens=700)  # three splits, where the rows have two
    index.refill([*rows, *padding[2:]])
    fresh, padded = (tensors.keys.clone() for _ in range(2))

    out = PagedBatch(tensors, index, kernels="triton").attend(
        LAYER, query, key, value, scaling=None, window=window, softcap=None
    )
    padded.copy_(tensors.keys)
    alone = PagedBatch.build(tensors, rows, kernels="triton").attend(
        LAYER, query[:, :, :2], key[:, :, :2], value[:, :, :2], scaling=None, window=window, softcap=None
    )

    assert torch.equal(out[:, :2], alone)
    assert out.isfinite().all()
    changed = (fresh.nan_to_num(nan=7.0) != padded.nan_to_num(nan=7.0)).flatten(3).any(dim=3).nonzero().tolist()
    assert sorted(changed) == sorted([[LAYER, 2, 5], [LAYER, 20, 5], [LAYER, tensors.trash, 0]])


@pytest.mark.parametrize("normed", [False, True])
@pytest.mark.parametrize(
    "shape",
    [
        Shape(dtype=F32, kv_heads=2, group=1, head_dim=16),
        Shape(dtype=F32, kv_heads=3, group=3, head_dim=80),
        Shape(dtype=F32, kv_heads=1, group=7, head_dim=128),
        Shape(dtype=F16, kv_heads=2, group=4, head_dim=64),
        Shape(dtype=BF16, kv_heads=2, group=6, head_dim=128),
    ],
    ids=str,
)
def test_positions_are_applied_as_the_reference_does_and_nothing_else_is_touched(shape: Shape, normed: bool) -> None:
    shape = replace(shape, device=DEVICE)
    tensors = [shape.poisoned_tensors(6) for _ in range(2)]
    rows = [PagedRow(0, 18, 0, [4, 1]), PagedRow(18, 19, 0, [2])]
    heads = shape.kv_heads * shape.group
    generator = torch.Generator().manual_seed(3)

    def noise(*sizes: int) -> Tensor:
        return torch.randn(sizes, generator=generator).to(DEVICE, shape.dtype)

    # As columns of one product, side by side in memory.
    joint = noise(1, 19, heads + 2 * shape.kv_heads, shape.head_dim).transpose(1, 2)
    query, key, value = joint.split([heads, shape.kv_heads, shape.kv_heads], 1)
    cos, sin = noise(2, 1, 19, shape.head_dim)
    rotation = HeadRotation(cos, sin)
    if normed:
        rotation = HeadRotation(cos, sin, noise(shape.head_dim), noise(shape.head_dim), 1e-5)

    got, expected = (
        PagedBatch.build(one, rows, kernels=kernels).attend(
            LAYER, query, key, value, scaling=None, window=None, softcap=None, rotation=rotation
        )
        for one, kernels in zip(tensors, BOTH, strict=True)
    )

    limit = TOLERANCE[shape.dtype]
    torch.testing.assert_close(got, expected, atol=4 * limit, rtol=limit)
    torch.testing.assert_close(tensors[0].keys, tensors[1].keys, equal_nan=True, atol=4 * limit, rtol=limit)
    torch.testing.assert_close(tensors[0].values, tensors[1].values, equal_nan=True, atol=0, rtol=0)


@pytest.fixture
def served() -> LoadedModel:
    config = EngineConfig(model="tiny", kv_cache_bytes=1 << 20)
    return adopt_model(tiny_model("llama", attention="eager").to(DEVICE), config)  # type: ignore[arg-type]


def test_the_trial_at_load_trusts_the_kernels(served: LoadedModel) -> None:
    assert why_no_pages(served) is None


def test_the_trial_at_load_notices_a_reduction_that_adds_up_the_first_part_alone(
    served: LoadedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    class FirstPart:
        def __getitem__(self, grid: object) -> Callable[..., None]:
            def reduce(
                out: Tensor, parts: Tensor, stats: Tensor, short_tokens: Tensor, splits: int, **_: object
            ) -> None:
                del splits
                out[0, short_tokens[:, 0].long()] = (parts[:, :, 0] / stats[:, :, 0, 1:]).to(out.dtype)

            return reduce

    monkeypatch.setattr(triton_attention, "reduce_kernel", FirstPart())

    assert why_no_pages(served) == "The attention kernels compute something else than torch here."


def test_the_trial_at_load_notices_that_distant_keys_are_left_out(
    served: LoadedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    attend = triton_attention.attend

    def forgetful(query: Tensor, keys: Tensor, values: Tensor, index: PagedIndex, **rest: Any) -> Tensor:
        return attend(query, keys, values, index, **(rest | {"window": 64}))

    monkeypatch.setattr(triton_attention, "attend", forgetful)

    assert why_no_pages(served) == "The attention kernels compute something else than torch here."


@pytest.mark.parametrize("dtype", [F32, BF16])
@pytest.mark.parametrize("shape", [(1, 3, 48), (1, 1, 2048), (5, 576)])
def test_norms_are_those_of_torch(shape: tuple[int, ...], dtype: torch.dtype) -> None:
    x, added, weight = (torch.randn(size, generator=seeded()).to(DEVICE, dtype) for size in (shape, shape, shape[-1]))

    total, normed = triton_layers.add_rms_norm(x, added, weight, 1e-5)

    assert torch.equal(total, x + added)
    expected = torch.nn.functional.rms_norm(total, (shape[-1],), weight, 1e-5)
    torch.testing.assert_close(normed, expected, atol=TOLERANCE[dtype], rtol=TOLERANCE[dtype])
    assert torch.equal(triton_layers.rms_norm(total, weight, 1e-5), normed)


@pytest.mark.parametrize("dtype", [F32, BF16])
@pytest.mark.parametrize("width", [48, 1100])
def test_gates_of_siblings_are_those_of_torch(width: int, dtype: torch.dtype) -> None:
    siblings = torch.randn(1, 5, 2 * width, generator=seeded()).to(DEVICE, dtype)
    gate, up = siblings[..., :width], siblings[..., width:]

    gated = triton_layers.gated(gate, up)

    assert gated.is_contiguous()
    torch.testing.assert_close(gated, torch.nn.functional.silu(gate) * up, atol=TOLERANCE[dtype], rtol=TOLERANCE[dtype])
    assert torch.equal(triton_layers.gated(gate[:, 2:3], up[:, 2:3]), gated[:, 2:3]), "neighbours change no bit"


def seeded() -> torch.Generator:
    return torch.Generator().manual_seed(3)
