"""Which adapter the generator gets: the one that comes with Footnote, one in a folder, or none.

An adapter is a peft LoRA folder; `generation.adapter` reads and merges it. Beside peft's two files, the one
that comes with Footnote has `footnote-adapter.json`, which says what it was trained on and what its files are.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

import generation
from app.errors import SetupError
from app.models.catalog import PackagedModel
from app.models.folder import resolve
from app.models.manifest import ProducedFile, read_manifest, sha256_of
from app.settings import Settings
from generation.config import ADAPTER_FILES, AdapterConfig

AUTO, NONE = "auto", "none"
FILENAME = "footnote-adapter.json"
SHIPPED = Path(generation.__file__).parent / "adapters" / "grounded-smollm2-135m"
_FORMAT = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class AdapterManifest:
    """What an adapter is and what its files must be.

    `base` is the name of the model it was trained on and `base_sha256` the digest of that model's packaged
    weights; `prompt_layout` names the layout of the prompts it was trained with; `licence` is an SPDX
    identifier; `files` has the size and SHA-256 of the files that decide what it computes.
    """

    name: str
    base: str
    base_sha256: str
    prompt_layout: str
    licence: str
    files: Mapping[str, ProducedFile]

    @property
    def bytes(self) -> int:
        """Size of those files."""
        return sum(file.bytes for file in self.files.values())

    def fits(self, generator: str) -> bool:
        """Whether the folder `generator` was made from the very weights this adapter was trained on."""
        model = read_manifest(Path(generator))
        return model is not None and (model.name, model.source_sha256) == (self.base, self.base_sha256)

    def is_whole(self, folder: Path) -> bool:
        """Both files are there, byte for byte (15 ms for 20 MB)."""
        try:
            return set(self.files) == set(ADAPTER_FILES) and all(
                sha256_of(folder / path) == file.sha256 for path, file in self.files.items()
            )
        except OSError:
            return False


@dataclass(frozen=True, slots=True, kw_only=True)
class AdapterStatus:
    """One line of `footnote models list`; `sound` is False when a file is missing or altered."""

    name: str
    base: str
    licence: str
    folder: Path
    bytes: int
    sound: bool


def choose_adapter(setting: str, *, generator: str, shipped: Path = SHIPPED) -> AdapterConfig | None:
    """The adapter to load for the setting `FOOTNOTE_ADAPTER`; None for none.

    Args:
        setting: "auto" is the shipped adapter where `generator` is the model it was trained on, and none
            elsewhere; "none"; or a folder.
        generator: What `resolve` made of the generator's setting.
        shipped: Where the adapter lies that comes with Footnote; the folder may be absent.

    Raises:
        SetupError: The folder holds no adapter, one for another model, or files that were altered.
    """
    if setting == NONE:
        return None
    if setting != AUTO:
        return _chosen(Path(setting).expanduser(), setting, generator)
    if not shipped.is_dir():
        return None
    manifest = read_adapter_manifest(shipped)
    if manifest is None or not manifest.is_whole(shipped):
        raise SetupError(
            "The adapter that comes with Footnote is damaged: install Footnote again, or set FOOTNOTE_ADAPTER=none."
        )
    return AdapterConfig(folder=str(shipped), name=manifest.name) if manifest.fits(generator) else None


def configured_adapter(settings: Settings) -> AdapterConfig | None:
    """What the settings would have loaded; None also where a remote server generates, or nothing does.

    Raises:
        SetupError: See `choose_adapter`, or the generator is not on this machine.
    """
    if settings.remote_url or settings.extractive:
        return None
    return choose_adapter(settings.adapter, generator=resolve(settings.generator, models_dir=settings.models_dir))


def adapter_status(setting: str, *, shipped: Path = SHIPPED) -> tuple[AdapterStatus, ...]:
    """The adapter that comes with Footnote, if it does, and the one in the folder that `setting` names."""
    folders = [shipped] if shipped.is_dir() else []
    if setting not in (AUTO, NONE) and Path(setting).expanduser().is_dir():
        folders.append(Path(setting).expanduser())
    return tuple(_status(folder, needs_manifest=folder == shipped) for folder in dict.fromkeys(folders))


def read_adapter_manifest(folder: Path) -> AdapterManifest | None:
    """The folder's manifest, or None when there is none or it cannot be read."""
    try:
        content = json.loads((folder / FILENAME).read_text("utf-8"))
        if content.pop("format") != _FORMAT:
            return None
        files = {path: ProducedFile(**facts) for path, facts in content.pop("files").items()}
        return AdapterManifest(files=files, **content)
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return None


def write_adapter_manifest(
    folder: Path, *, name: str, base: PackagedModel, prompt_layout: str, licence: str
) -> AdapterManifest:
    """Digest peft's two files in `folder` and write the manifest beside them.

    Raises:
        OSError: One of them is missing, or the folder cannot be written.
    """
    files = {
        path: ProducedFile(bytes=(folder / path).stat().st_size, sha256=sha256_of(folder / path))
        for path in ADAPTER_FILES
    }
    manifest = AdapterManifest(
        name=name,
        base=base.name,
        base_sha256=base.weights.sha256,
        prompt_layout=prompt_layout,
        licence=licence,
        files=files,
    )
    (folder / FILENAME).write_text(json.dumps({"format": _FORMAT, **asdict(manifest)}, indent=2) + "\n", "utf-8")
    return manifest


def _chosen(folder: Path, setting: str, generator: str) -> AdapterConfig:
    if not all((folder / path).is_file() for path in ADAPTER_FILES):
        raise SetupError(
            f"There is no adapter {setting!r}: FOOTNOTE_ADAPTER is auto, none, or a folder "
            f"with {' and '.join(ADAPTER_FILES)}."
        )
    manifest = read_adapter_manifest(folder)
    if manifest is None and (folder / FILENAME).exists():
        raise SetupError(f"The adapter {setting!r} has a {FILENAME} that cannot be read.")
    if manifest is None:
        base = _declared_base(folder)
        fits = not base or base.casefold() == Path(generator).name.casefold()
    else:
        base, fits = manifest.base, manifest.fits(generator)
        if not manifest.is_whole(folder):
            raise SetupError(f"The adapter {setting!r} is damaged: its files are not those of its {FILENAME}.")
    if not fits:
        raise SetupError(
            f"The adapter {setting!r} was trained on {base}, and the generator is {Path(generator).name}: "
            "set FOOTNOTE_GENERATOR to that model, or FOOTNOTE_ADAPTER to none."
        )
    return AdapterConfig(folder=str(folder), name=folder.resolve().name if manifest is None else manifest.name)


def _status(folder: Path, *, needs_manifest: bool) -> AdapterStatus:
    manifest = read_adapter_manifest(folder)
    if manifest is not None:
        return AdapterStatus(
            name=manifest.name,
            base=manifest.base,
            licence=manifest.licence,
            folder=folder,
            bytes=manifest.bytes,
            sound=manifest.is_whole(folder),
        )
    files = [folder / path for path in ADAPTER_FILES]
    whole = all(path.is_file() for path in files)
    return AdapterStatus(
        name=folder.resolve().name,
        base=_declared_base(folder) or "unknown",
        licence="unknown",
        folder=folder,
        bytes=sum(path.stat().st_size for path in files) if whole else 0,
        sound=whole and not needs_manifest and not (folder / FILENAME).exists(),
    )


def _declared_base(folder: Path) -> str:
    """The last part of the model name that peft noted, empty when it noted none."""
    try:
        declared = json.loads((folder / ADAPTER_FILES[0]).read_text("utf-8")).get("base_model_name_or_path")
    except (OSError, ValueError, AttributeError):
        return ""
    return Path(declared).name if isinstance(declared, str) else ""
