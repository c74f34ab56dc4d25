"""Folders of models that count as fetched."""

from pathlib import Path

from app.models.catalog import PackagedModel
from app.models.manifest import write_manifest


def fetched(model: PackagedModel, models_dir: Path) -> str:
    """A fetched model's folder, as its manifest says."""
    folder = models_dir / model.name
    folder.mkdir(parents=True)
    (folder / "model.safetensors").write_bytes(b"weights")
    write_manifest(folder, model, converted_by={})
    return str(folder)
