"""app.models.memory: what a sequence costs, from config.json alone, and true to what the engine then does."""

import json
from pathlib import Path
from typing import Any

import pytest

from app.errors import SetupError
from app.models.memory import sequence_memory
from app.settings import Settings
from generation.host_memory import HostMemory

LLAMA = {
    "model_type": "llama",
    "num_hidden_layers": 30,
    "num_attention_heads": 9,
    "num_key_value_heads": 3,
    "hidden_size": 576,
    "max_position_embeddings": 8192,
}
MIB = 2**20


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "config.json").write_text(json.dumps(LLAMA))
    return tmp_path / "model"


def settings(folder: Path, **given: Any) -> Settings:
    return Settings(generator=str(folder), _env_file=None, **{"device": "cpu", "dtype": "bfloat16", **given})


def test_a_sequence_costs_what_the_formula_says(folder: Path) -> None:
    memory = sequence_memory(settings(folder, kv_cache_mb=1000))

    assert memory.token_bytes == 2 * 30 * 3 * 64 * 2
    assert memory.sequence_bytes == 2 * 30 * 3 * 64 * 8192 * 2 == 180 * MIB
    assert memory.sequences == 5
    assert str(memory) == (
        "2 · 30 layers · 3 kv heads · 64 head dim · 8192 tokens · 2 bytes (bfloat16) = 180.0 MiB for a sequence that "
        "fills the context window, 22.5 KiB a token; 5 such sequences fit in FOOTNOTE_KV_CACHE_MB=1000."
    )


@pytest.mark.parametrize(
    ("given", "sequence_mib"),
    [({"dtype": "float32"}, 360), ({"context_window": 4096}, 90), ({"context_window": 99_999}, 180)],
)
def test_format_and_window_are_the_settings(folder: Path, given: dict[str, Any], sequence_mib: int) -> None:
    assert sequence_memory(settings(folder, **given)).sequence_bytes == sequence_mib * MIB


@pytest.mark.parametrize(("cuda", "room_mib"), [(True, 400), (False, 500)])
def test_without_a_setting_the_device_decides(folder: Path, cuda: bool, room_mib: int) -> None:
    memory = sequence_memory(
        settings(folder, device="auto"),
        has_cuda=lambda: cuda,
        free_on_cuda=lambda: 800 * MIB,
        host=HostMemory(total=4000 * MIB, available=3000 * MIB),
    )

    assert (memory.room_bytes, memory.sequences) == (room_mib * MIB, 2)
    assert f"the {room_mib}.0 MiB that the cache takes here" in str(memory)


def test_a_cache_too_small_for_one_sequence_says_how_far_the_window_shrinks(folder: Path) -> None:
    memory = sequence_memory(settings(folder, kv_cache_mb=45))

    assert "none fits in FOOTNOTE_KV_CACHE_MB=45, so the window shrinks to 2048 tokens" in str(memory)


@pytest.mark.parametrize("content", ["{", '{"model_type": "nothing-known"}', '{"model_type": "mamba"}'])
def test_a_configuration_that_does_not_tell_is_a_setup_error(folder: Path, content: str) -> None:
    (folder / "config.json").write_text(content)

    with pytest.raises(SetupError, match="cannot be read"):
        sequence_memory(settings(folder))


def test_the_memory_estimate_equals_what_the_loaded_model_takes(tmp_path: Path) -> None:
    from generation.config import EngineConfig
    from generation.weights import load_model
    from tests.generation.tiny import tiny_model

    tiny_model("mistral", attention="eager").save_pretrained(tmp_path / "tiny")
    told = sequence_memory(settings(tmp_path / "tiny", dtype="auto", kv_cache_mb=8))

    loaded = load_model(EngineConfig(model=str(tmp_path / "tiny"), device="cpu", kv_cache_bytes=8 * MIB))

    shape = (told.shape.layers, told.shape.kv_heads, told.shape.head_dim, told.shape.context_window)
    assert shape == (loaded.layers, loaded.kv_heads, loaded.head_dim, loaded.info.context_window)
    assert told.dtype == loaded.info.dtype
    assert told.room_bytes // told.token_bytes == loaded.kv_capacity_tokens
