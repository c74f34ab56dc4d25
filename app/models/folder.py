"""Resolves a model setting to a folder or Hugging Face id, and lists the fetched models."""

import re
from dataclasses import dataclass
from pathlib import Path

from app.errors import SetupError
from app.models.catalog import DEFAULT_MODELS, ModelTask, PackagedModel, find
from app.models.fetch import is_fetched
from app.models.manifest import read_manifest

HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]*(/[A-Za-z0-9][\w.-]*)?")
"""The id of a model on the Hugging Face hub."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelStatus:
    """One line of `footnote models list`.

    `bytes` is the size on disk (0 when absent); `sound` is None when the model is absent and False when
    a file is missing, altered, or from another version of the package.
    """

    name: str
    kind: ModelTask
    licence: str
    folder: Path
    present: bool
    bytes: int
    sound: bool | None


def resolve(setting: str, *, models_dir: Path) -> str:
    """Returns the folder or Hugging Face id of a model setting.

    The name of a default model means its fetched folder, then an existing local folder means itself, then an id means
    the folder into which `footnote models add` has put it, and anything else must look like a Hugging Face id, which is
    returned as it is.

    Raises:
        SetupError: A default that is not fetched, a path without a folder, or text that is neither.
    """
    model = find(setting)
    if model is not None:
        if not is_fetched(model, models_dir=models_dir):
            raise SetupError(missing_message(setting))
        return str(models_dir / model.name)
    if setting and Path(setting).expanduser().is_dir():
        return str(Path(setting).expanduser())
    if HUB_ID.fullmatch(setting):
        added = added_folder(setting, models_dir=models_dir)
        return setting if read_manifest(added) is None else str(added)
    raise SetupError(missing_message(setting))


def added_folder(name: str, *, models_dir: Path) -> Path:
    """The folder of a model that `footnote models add` downloads."""
    return models_dir / name.replace("/", "--")


def missing_message(setting: str) -> str:
    """The error message for a model setting that cannot be resolved."""
    if find(setting) is not None:
        return f"The model {setting} is not on this machine yet. Run `footnote models fetch`."
    names = " or ".join(model.name for model in DEFAULT_MODELS)
    return f"There is no model {setting!r}. A model is a default ({names}), a local folder, or a Hugging Face id."


def status(models_dir: Path, *, digests: bool = True) -> tuple[ModelStatus, ...]:
    """The status of every default model; with `digests`, every file is checked."""
    return tuple(_status(model, models_dir, digests=digests) for model in DEFAULT_MODELS)


def _status(model: PackagedModel, models_dir: Path, *, digests: bool) -> ModelStatus:
    folder = models_dir / model.name
    present = folder.is_dir()
    return ModelStatus(
        name=model.name,
        kind=model.kind,
        licence=model.licence,
        folder=folder,
        present=present,
        bytes=_size(folder),
        sound=is_fetched(model, models_dir=models_dir, digests=digests) if present else None,
    )


def _size(folder: Path) -> int:
    manifest = read_manifest(folder)
    return manifest.bytes if manifest else sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
