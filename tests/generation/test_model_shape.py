"""generation.memory reads the numbers that decide what serving a model costs."""

from typing import Any

import pytest
from transformers import Gemma3Config, GPT2Config, LlamaConfig, Phi3Config, Qwen2Config

from generation.config import ModelShape

LLAMA = LlamaConfig(num_hidden_layers=3, num_attention_heads=8, num_key_value_heads=2, hidden_size=64)
QWEN2 = Qwen2Config(num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=4, hidden_size=64)
GPT2 = GPT2Config(n_layer=5, n_head=4, n_embd=32, n_positions=96)
GEMMA3 = Gemma3Config(text_config={"num_hidden_layers": 7, "num_key_value_heads": 1, "head_dim": 32})


@pytest.mark.parametrize(
    ("configuration", "shape"),
    [
        (LLAMA, (3, 2, 8, 2048)),
        (QWEN2, (2, 4, 16, 32768)),
        (GPT2, (5, 4, 8, 96)),
        (GEMMA3, (7, 1, 32, 131072)),
    ],
    ids=["llama", "qwen2", "gpt2", "gemma3"],
)
def test_the_shape_is_read_from_configurations_of_several_model_families(
    configuration: Any, shape: tuple[int, int, int, int]
) -> None:
    read = ModelShape.of(configuration)

    assert (read.layers, read.kv_heads, read.head_dim, read.context_window) == shape


@pytest.mark.parametrize(("cap", "window"), [(None, 2048), (100, 100), (9999, 2048)])
def test_a_cap_only_makes_the_window_smaller(cap: int | None, window: int) -> None:
    assert ModelShape.of(LlamaConfig(max_position_embeddings=2048), cap=cap).context_window == window


def test_a_window_stretched_by_the_length_itself_counts_only_up_to_its_original() -> None:
    long = {"rope_type": "longrope", "short_factor": [1.0] * 8, "long_factor": [4.0] * 8, "rope_theta": 10000.0}
    configuration = Phi3Config(
        hidden_size=64,
        num_attention_heads=4,
        num_key_value_heads=4,
        max_position_embeddings=131072,
        original_max_position_embeddings=4096,
        rope_parameters={**long, "original_max_position_embeddings": 4096},
    )

    assert ModelShape.of(configuration).context_window == 4096


def test_keys_and_values_are_two_numbers_per_layer_head_and_dimension() -> None:
    shape = ModelShape(layers=30, kv_heads=3, head_dim=64, context_window=8192)

    assert shape.kv_bytes(1, number_bytes=2) == 23040
    assert shape.kv_bytes(8192, number_bytes=2) == 180 * 2**20
