"""How many kernels a step that decodes launches in each layer, counted on the meta device: the limit only falls.

Of a step of few rows, most of the time besides reading the weights is that of small kernels, about two microseconds
each in a CUDA graph.
"""

import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

import pytest
import torch
from torch import Tensor
from transformers import AutoModelForCausalLM, LlamaConfig, Qwen3Config

from generation import fusing
from generation.attention import IMPLEMENTATION, register
from generation.fusing import LayerKernels, fuse
from generation.linear import join_linears
from generation.memory import StepInputs
from generation.paged_attention import PagedBatch
from generation.paged_cache import PagedTensors
from generation.paged_index import PagedIndex, PagedRow
from tests.generation.kernel_count import KernelCount

ROWS = 8
_SHAPE: dict[str, Any] = {
    "hidden_size": 4096,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "vocab_size": 128_256,
    "tie_word_embeddings": False,
}
CONFIGS: dict[str, Any] = {
    "llama": lambda layers: LlamaConfig(**_SHAPE, intermediate_size=14_336, num_hidden_layers=layers),
    "qwen3": lambda layers: Qwen3Config(**_SHAPE, head_dim=128, intermediate_size=12_288, num_hidden_layers=layers),
}


@pytest.fixture
def stored_and_attended(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Takes the place of our own kernels: rotate and store, attend, and the sum over split keys, one launch each."""
    counts: Counter[str] = Counter()
    kernels = ModuleType("generation.triton_attention")

    def store(*_: Tensor) -> None:
        counts["store"] += 1

    def rotate_and_store(keys: Tensor, values: Tensor, query: Tensor, *_: object) -> Tensor:
        counts["rotate and store"] += 1
        return torch.empty_like(query)

    def attend(query: Tensor, *_: Any, **__: Any) -> Tensor:
        counts.update(("attend", "reduce"))
        return torch.empty_like(query.transpose(1, 2))

    for kernel in (store, rotate_and_store, attend):
        setattr(kernels, kernel.__name__, kernel)
    monkeypatch.setitem(sys.modules, kernels.__name__, kernels)
    monkeypatch.setattr(sys.modules["generation"], "triton_attention", kernels, raising=False)
    return counts


def launches(family: str, layers: int, ours: Counter[str], *, fused: bool) -> Counter[str]:
    """Of a step of single tokens after prompts of 2,000."""
    device = torch.device("meta")
    register()
    with device:
        model = AutoModelForCausalLM.from_config(
            CONFIGS[family](layers), dtype=torch.bfloat16, attn_implementation="eager"
        )
    model.eval().set_attn_implementation(IMPLEMENTATION)
    tensors = PagedTensors(
        layers=layers, kv_heads=8, head_dim=128, blocks=1024, block_tokens=16, dtype=torch.bfloat16, device=device
    )
    rows = [PagedRow(row, row + 1, 2000, range(126 * row, 126 * row + 126)) for row in range(ROWS)]
    batch = PagedBatch(tensors, PagedIndex(tensors, rows), kernels="triton")
    ids, positions = torch.zeros((2, 1, ROWS), dtype=torch.int64, device=device)
    inputs = StepInputs(ids, positions, torch.arange(ROWS, device=device), batch)

    def step() -> None:
        model(
            input_ids=inputs.ids,
            position_ids=inputs.positions,
            use_cache=False,
            past_key_values=None,
            logits_to_keep=inputs.kept,
            ragged_batch=inputs.batch,
        )

    counted = KernelCount()
    with torch.inference_mode():
        if fused:
            with verdict_without_numbers():
                assert fuse(model, probe=step, tolerance=0.0) > 0
            assert join_linears(model) == 5 * layers
        ours.clear()
        with counted:
            step()
    return counted.kernels + ours


@contextmanager
def verdict_without_numbers() -> Iterator[None]:
    """There are no numbers on this device to compare."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fusing, "_same", lambda *_, **__: True)
        yield


@pytest.mark.parametrize(("family", "most"), [("llama", 13), ("qwen3", 13)])
def test_a_fused_layer_that_decodes_launches_no_more_kernels_than_it_did(
    family: str, most: int, stored_and_attended: Counter[str]
) -> None:
    two, three = (launches(family, layers, stored_and_attended, fused=True) for layers in (2, 3))

    a_layer = three - two

    assert a_layer["rotate and store"] == a_layer["attend"] == a_layer["reduce"] == 1
    assert a_layer["aten.linear"] <= 4, "queries with keys and values, output, gate with up, down"
    assert a_layer.total() <= most, dict(a_layer)
    assert three.total() - 3 * a_layer.total() <= 20, "embedding, positions, the last norm, logits"


@pytest.mark.parametrize("family", ["llama", "qwen3"])
def test_on_a_gpu_a_norm_takes_the_sum_before_it_along_and_a_gate_is_one_launch(
    family: str, stored_and_attended: Counter[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    ours = stored_and_attended

    def rms_norm(x: Tensor, *_: object) -> Tensor:
        ours["norm"] += 1
        return torch.empty_like(x)

    def add_rms_norm(x: Tensor, *_: object) -> tuple[Tensor, Tensor]:
        ours["norm with its sum"] += 1
        return torch.empty_like(x), torch.empty_like(x)

    def gated(gate: Tensor, _: Tensor) -> Tensor:
        ours["gate"] += 1
        return torch.empty_like(gate)

    monkeypatch.setattr(fusing, "_own_kernels", lambda _: LayerKernels(rms_norm, add_rms_norm, gated))
    two, three = (launches(family, layers, ours, fused=True) for layers in (2, 3))

    a_layer = three - two

    assert a_layer["norm with its sum"] == 2
    assert a_layer["gate"] == 1
    assert a_layer.total() <= 10, dict(a_layer)


@pytest.mark.parametrize(("family", "most"), [("llama", 40), ("qwen3", 56)])
def test_a_layer_as_transformers_has_it_launches_no_more_kernels_than_it_did(
    family: str, most: int, stored_and_attended: Counter[str]
) -> None:
    two, three = (launches(family, layers, stored_and_attended, fused=False) for layers in (2, 3))

    a_layer = three - two

    assert a_layer["store"] == a_layer["attend"] == a_layer["reduce"] == 1
    assert a_layer["aten.linear"] <= 7, "queries, keys, values, output, and three of the MLP"
    assert a_layer.total() <= most, dict(a_layer)
    assert three.total() - 3 * a_layer.total() <= 20, "embedding, positions, the last norm, logits"
