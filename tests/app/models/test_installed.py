"""app.models.installed: generators on this machine, and what fits its memory."""

import json
from pathlib import Path

import pytest

from app.models.folder import HUB_ID
from app.models.installed import OFFERED, generators
from app.settings import load_settings
from generation.host_memory import HostMemory

GB = 10**9


def hub(tmp_path: Path, **models: int) -> Path:
    """A Hugging Face cache with generators of so many bytes; a name has `__` for `/`."""
    for name, size in models.items():
        snapshot = tmp_path / f"models--{name.replace('__', '--')}" / "snapshots" / "0"
        snapshot.mkdir(parents=True)
        kind = "BertModel" if name.startswith("bert") else "LlamaForCausalLM"
        (snapshot / "config.json").write_text(json.dumps({"architectures": [kind], "dtype": "bfloat16"}))
        with (snapshot / "model.safetensors").open("wb") as file:
            file.truncate(size)
    return tmp_path


def test_generators_in_the_cache_are_listed_with_the_memory_they_need(tmp_path):
    settings = load_settings(
        generator="acme/small", dtype="bfloat16", device="cpu", models_dir=tmp_path / "none", data_dir=tmp_path
    )
    cache = hub(tmp_path / "hub", acme__small=GB, acme__large=20 * GB, bert=GB)
    found = generators(settings, hub=cache, host=HostMemory(16 * GB, 8 * GB), gpu=lambda: None)

    assert [(one.setting, one.bytes, one.fits, one.in_use) for one in found.installed] == [
        ("acme/large", 20 * GB, False, False),
        ("acme/small", GB, True, True),
    ]
    assert found.installed[1].needed_bytes == pytest.approx(1.2 * GB + 2**30, abs=2)
    assert (found.machine.gpu, found.machine.available_bytes) == (False, 8 * GB)
    assert found.larger is not None
    assert found.larger.id == "microsoft/Phi-4-mini-instruct"


def test_what_fits_follows_the_memory_and_the_precision(tmp_path):
    def larger(available: int, dtype: str = "bfloat16", gpu: tuple[int, int] | None = None) -> str | None:
        settings = load_settings(generator="extractive", dtype=dtype, models_dir=tmp_path / "none", data_dir=tmp_path)
        host = HostMemory(available, available)
        found = generators(settings, hub=tmp_path / "none", host=host, gpu=lambda: gpu).larger
        return None if found is None else found.id

    assert larger(GB) is None
    assert larger(6 * GB, "float32") is None
    assert larger(6 * GB) == "Qwen/Qwen3-1.7B"
    assert larger(10 * GB, "float32") == "Qwen/Qwen3-1.7B"
    assert larger(GB, gpu=(90 * GB, 95 * GB)) == OFFERED[-1].id


def test_the_offered_models_are_ordered_by_size_and_each_has_an_id_of_the_hub():
    assert [one.billions for one in OFFERED] == sorted(one.billions for one in OFFERED)
    assert all(HUB_ID.fullmatch(one.id) and "/" in one.id for one in OFFERED)
