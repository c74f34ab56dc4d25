"""Chooses the generator's LoRA adapter: the shipped one, one in a folder, or none.

An adapter is a peft LoRA folder; `generation.adapter` reads and merges it. Beside peft's two files, the one
that comes with Footnote has `footnote-adapter.json`, which says what it was trained on and what its files are.
"""

import json
from dataclasses import dataclass
from pathlib import Path

import generation
from app.models.catalog import PackagedModel
from app.models.finetuned import AUTO, NONE, FinetunedManifest, FinetunedStatus, Finetuning, folders_of
from app.models.folder import resolve
from app.models.span_reader import configured_reader
from app.settings import ModelSettings, Settings
from generation.config import ADAPTER_FILES, AdapterConfig

SHIPPED = Path(generation.__file__).parent / "adapters" / "grounded-smollm2-135m"
_ADAPTER = Finetuning(noun="adapter", base_noun="generator", filename="footnote-adapter.json", files=ADAPTER_FILES)


@dataclass(frozen=True, slots=True, kw_only=True)
class AdapterManifest(FinetunedManifest):
    """The manifest of an adapter; `prompt_layout` names the layout of its training prompts."""

    prompt_layout: str

    def is_whole(self, folder: Path) -> bool:
        """Whether both files are present and unaltered."""
        return _ADAPTER.is_whole(folder, self)


def choose_adapter(setting: str, *, generator: str, shipped: Path = SHIPPED) -> AdapterConfig | None:
    """The adapter to load for the setting `FOOTNOTE_ADAPTER`; None for none.

    Args:
        setting: "auto" is the shipped adapter where `generator` is the model it was trained on, and none
            elsewhere; "none"; or a folder.
        generator: The generator's setting, resolved by `resolve`.
        shipped: The folder of the adapter that comes with Footnote; it may be absent.

    Raises:
        SetupError: The folder holds no adapter, one for another model, or files that were altered.
    """
    if setting == NONE:
        return None
    if setting != AUTO:
        return _chosen(Path(setting).expanduser(), setting, generator)
    if not shipped.is_dir():
        return None
    manifest = _ADAPTER.sound_shipped(shipped, read_adapter_manifest(shipped))
    return AdapterConfig(folder=str(shipped), name=manifest.name) if manifest.fits(generator) else None


def configured_adapter(settings: Settings) -> AdapterConfig | None:
    """The adapter that the settings select; None also with a remote server or without a generator.

    Raises:
        SetupError: See `choose_adapter`, or the generator is not on this machine.
    """
    if settings.remote_url or settings.extractive:
        return None
    return adapter_for(settings, generator=resolve(settings.generator, models_dir=settings.models_dir))


def adapter_for(settings: ModelSettings, *, generator: str) -> AdapterConfig | None:
    """The adapter to load into `generator` by the settings.

    The shipped one was trained to be pointed at answers and refuses where nothing points: without a reader "auto"
    is none (docs/BENCHMARKS.md).

    Raises:
        SetupError: See `choose_adapter` and `configured_reader`.
    """
    chosen = choose_adapter(settings.adapter, generator=generator)
    if chosen is not None and settings.adapter == AUTO and configured_reader(settings) is None:
        return None
    return chosen


def adapter_status(setting: str, *, shipped: Path = SHIPPED) -> tuple[FinetunedStatus, ...]:
    """The status of the shipped adapter, if present, and of the one in the folder that `setting` names."""
    return tuple(_status(folder, needs_manifest=folder == shipped) for folder in folders_of(setting, shipped=shipped))


def read_adapter_manifest(folder: Path) -> AdapterManifest | None:
    """The folder's manifest, or None when there is none or it cannot be read."""
    return _ADAPTER.read(folder, AdapterManifest)


def write_adapter_manifest(
    folder: Path, *, name: str, base: PackagedModel, prompt_layout: str, licence: str
) -> AdapterManifest:
    """Digest peft's two files in `folder` and write the manifest next to them.

    Raises:
        OSError: One of them is missing, or the folder cannot be written.
    """
    manifest = AdapterManifest(
        name=name,
        base=base.name,
        base_sha256=base.weights.sha256,
        prompt_layout=prompt_layout,
        licence=licence,
        files=_ADAPTER.digests(folder),
    )
    _ADAPTER.write(folder, manifest)
    return manifest


def _chosen(folder: Path, setting: str, generator: str) -> AdapterConfig:
    if not _ADAPTER.has_files(folder):
        raise _ADAPTER.absent(setting, needs=ADAPTER_FILES)
    manifest = read_adapter_manifest(folder)
    _ADAPTER.check_chosen(setting, folder, manifest)
    if manifest is None:  # peft's own folder
        base = _declared_base(folder)
        fits = not base or base.casefold() == Path(generator).name.casefold()
    else:
        base, fits = manifest.base, manifest.fits(generator)
    if not fits:
        raise _ADAPTER.misfit(setting, base=base, model=generator)
    return AdapterConfig(folder=str(folder), name=folder.resolve().name if manifest is None else manifest.name)


def _status(folder: Path, *, needs_manifest: bool) -> FinetunedStatus:
    manifest = read_adapter_manifest(folder)
    if manifest is not None:
        return _ADAPTER.status(folder, manifest)
    sound = not needs_manifest and not (folder / _ADAPTER.filename).exists()
    return _ADAPTER.unknown_status(folder, base=_declared_base(folder) or "unknown", sound=sound)


def _declared_base(folder: Path) -> str:
    """The last part of the base model's name in peft's configuration, or an empty string."""
    try:
        declared = json.loads((folder / ADAPTER_FILES[0]).read_text("utf-8")).get("base_model_name_or_path")
    except (OSError, ValueError, AttributeError):
        return ""
    return Path(declared).name if isinstance(declared, str) else ""
