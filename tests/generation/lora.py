"""Tiny LoRA adapters, drawn on the spot in peft's format; nothing is downloaded."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from torch import nn

from tests.generation.tiny import tiny_model

SEVEN = ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj")


def settings(**changed: Any) -> dict[str, Any]:
    """What peft would write for rank 4 and scale 2 on all seven projections."""
    return {
        "peft_type": "LORA",
        "base_model_name_or_path": "somewhere/tiny-llama",
        "r": 4,
        "lora_alpha": 8,
        "target_modules": list(SEVEN),
        "bias": "none",
        "use_dora": False,
        "init_lora_weights": True,
    } | changed


def differences(model: nn.Module, modules: tuple[str, ...] = SEVEN, *, rank: int = 4) -> dict[str, torch.Tensor]:
    """float16 halves for every linear layer of `model` whose last name is in `modules`."""
    generator = torch.Generator().manual_seed(3)
    tensors = {}
    for name, layer in model.named_modules():
        if isinstance(layer, nn.Linear) and name.rsplit(".", 1)[-1] in modules:
            a = 0.2 * torch.randn(rank, layer.in_features, generator=generator)
            b = 0.2 * torch.randn(layer.out_features, rank, generator=generator)
            tensors[f"base_model.model.{name}.lora_A.weight"] = a.half()
            tensors[f"base_model.model.{name}.lora_B.weight"] = b.half()
    return tensors


def write_adapter(
    folder: Path, *, tensors: dict[str, torch.Tensor] | None = None, config: dict[str, Any] | None = None
) -> Path:
    """An adapter for `tiny_model("llama")` in `folder`, or one of `tensors` and `config`."""
    folder.mkdir(parents=True, exist_ok=True)
    if tensors is None:
        tensors = differences(tiny_model("llama", attention="eager"))
    save_file(tensors, folder / "adapter_model.safetensors")
    (folder / "adapter_config.json").write_text(json.dumps(settings() if config is None else config))
    return folder
