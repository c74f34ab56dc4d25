"""The generators on this machine, the memory they need, and the larger one that would fit."""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from app.models.catalog import DEFAULT_MODELS, ModelTask
from app.models.fetch import is_fetched
from app.models.manifest import read_manifest
from app.settings import Settings
from generation.accelerator import multiplies_bfloat16
from generation.host_memory import HostMemory, read_host_memory

_STORED_BYTES = {"float32": 4, "bfloat16": 2, "float16": 2}
_BESIDE = 1.2  # what runs beside the weights: activations, buffers
_CACHE = 1 << 30  # keys and values


@dataclass(frozen=True, slots=True)
class OfferedModel:
    """An open model of the Hugging Face hub: its id, its parameters in billions, and its licence (SPDX)."""

    id: str
    billions: float
    licence: str

    @property
    def bytes(self) -> int:
        """The size of its weights in bfloat16, as they are published."""
        return int(self.billions * 1e9) * _STORED_BYTES["bfloat16"]


OFFERED = (
    OfferedModel("Qwen/Qwen3-1.7B", 1.7, "Apache-2.0"),
    OfferedModel("microsoft/Phi-4-mini-instruct", 3.8, "MIT"),
    OfferedModel("Qwen/Qwen3-4B-Instruct-2507", 4.0, "Apache-2.0"),
    OfferedModel("Qwen/Qwen3-8B", 8.2, "Apache-2.0"),
    OfferedModel("mistralai/Mistral-Small-24B-Instruct-2501", 23.6, "Apache-2.0"),
    OfferedModel("Qwen/Qwen3-32B", 32.8, "Apache-2.0"),
)
"""Larger models, the smallest first: instruct models of architectures that the engine is compared with transformers on.

None was measured with Footnote; a smaller one reads worse than what selects quotes (docs/adr/0089)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InstalledGenerator:
    """A generator on this machine.

    `setting` is the value of FOOTNOTE_GENERATOR for it, `bytes` the size of its weights, `needed_bytes` an estimate of
    the memory that it takes with its cache, `licence` its SPDX identifier where the model tells it.
    """

    setting: str
    bytes: int
    needed_bytes: int
    fits: bool
    in_use: bool
    licence: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """The memory that a generator can take: of a GPU where there is one, else of the machine."""

    gpu: bool
    total_bytes: int
    available_bytes: int
    number_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Generators:
    """The generators on this machine, and those of `OFFERED` with the bytes that each needs and whether it fits."""

    machine: Machine
    installed: tuple[InstalledGenerator, ...]
    offered: tuple[tuple[OfferedModel, int, bool], ...]

    @property
    def larger(self) -> OfferedModel | None:
        """The largest that is offered and fits; None where none does."""
        return next((model for model, _, fits in reversed(self.offered) if fits), None)


def generators(
    settings: Settings,
    *,
    hub: Path | None = None,
    host: HostMemory | None = None,
    gpu: Callable[[], tuple[int, int] | None] | None = None,
) -> Generators:
    """Look for generators in the models' folder and in Hugging Face's cache; no weights are read.

    Args:
        settings: The models' folder, the device, and the generator in use, whose memory counts as available.
        hub: Hugging Face's cache; None is the usual one.
        host: The memory of the machine; None reads it.
        gpu: Gives the free and total bytes of a GPU, None without one; None asks torch.
    """
    machine = _machine(settings, host or read_host_memory(), gpu or _gpu)
    found = dict(_folders(settings.models_dir, hub or _hub()))
    if (configured := Path(settings.generator).expanduser()).is_dir():
        found[settings.generator] = configured
    local = not settings.remote_url and not settings.extractive
    sizes = {setting: (_weights(folder), _stored(folder)) for setting, folder in found.items()}
    running = sizes.get(settings.generator) if local else None
    room = machine.available_bytes + (_needed(*running, machine) if running else 0)
    installed = tuple(
        InstalledGenerator(
            setting=setting,
            bytes=size,
            needed_bytes=_needed(size, stored, machine),
            fits=_needed(size, stored, machine) <= room,
            in_use=local and setting == settings.generator,
            licence=_licence(setting, found[setting]),
        )
        for setting, (size, stored) in sorted(sizes.items())
        if size
    )
    needs = [_needed(model.bytes, _STORED_BYTES["bfloat16"], machine) for model in OFFERED]
    offered = tuple((model, needed, needed <= room) for model, needed in zip(OFFERED, needs, strict=True))
    return Generators(machine=machine, installed=installed, offered=offered)


def _machine(settings: Settings, host: HostMemory, gpu: Callable[[], tuple[int, int] | None]) -> Machine:
    found = gpu() if settings.device != "cpu" else None
    dtype = settings.dtype
    if dtype == "auto":
        dtype = "bfloat16" if found is not None or multiplies_bfloat16() else "float32"
    free, total = (host.available, host.total) if found is None else found
    return Machine(gpu=found is not None, total_bytes=total, available_bytes=free, number_bytes=_STORED_BYTES[dtype])


def _needed(weights: int, stored: int, machine: Machine) -> int:
    return int(weights / stored * machine.number_bytes * _BESIDE) + _CACHE


def _folders(models_dir: Path, hub: Path) -> Iterator[tuple[str, Path]]:
    """Folders of generators, each with its setting."""
    for model in DEFAULT_MODELS:
        if model.kind is ModelTask.GENERATOR and is_fetched(model, models_dir=models_dir, digests=False):
            yield model.name, models_dir / model.name
    for folder in sorted(models_dir.glob("*--*")):
        manifest = read_manifest(folder)
        if manifest is not None and generates(folder):
            yield manifest.name, folder
    for repository in sorted(hub.glob("models--*")):
        for snapshot in sorted((repository / "snapshots").glob("*")):
            if generates(snapshot):
                yield repository.name.removeprefix("models--").replace("--", "/"), snapshot


def _hub() -> Path:
    from huggingface_hub.constants import HF_HUB_CACHE

    return Path(HF_HUB_CACHE)


def _configuration(folder: Path) -> Mapping[str, Any]:
    """The model's configuration; empty where it cannot be read."""
    try:
        found = json.loads((folder / "config.json").read_text())
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def generates(folder: Path) -> bool:
    """Whether the configuration in a folder is that of a language model that generates text."""
    named = _configuration(folder).get("architectures")
    return isinstance(named, list) and any(str(one).endswith("ForCausalLM") for one in named)


def _licence(setting: str, folder: Path) -> str | None:
    """The licence of a model on this machine: what its package or its manifest says."""
    packaged = {one.name: one.licence for one in DEFAULT_MODELS}
    manifest = None if setting in packaged else read_manifest(folder)
    return packaged.get(setting) if manifest is None else manifest.licence


def _weights(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.glob("*.safetensors"))


def _stored(folder: Path) -> int:
    """The bytes of a stored number; two where the configuration does not tell."""
    found = _configuration(folder)
    return _STORED_BYTES.get(str(found.get("dtype") or found.get("torch_dtype")), 2)


def _gpu() -> tuple[int, int] | None:
    import torch

    if not torch.cuda.is_available():
        return None
    free, total = torch.cuda.mem_get_info()
    return int(free), int(total)
