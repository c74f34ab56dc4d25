"""Adds a language model from a GGUF file to the models' folder, in the form that the engine loads."""

import re
import shutil
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from filelock import FileLock

from app.errors import SetupError
from app.models.conversion import convert_in_subprocess, header_text
from app.models.folder import added_folder
from app.models.installed import generates
from app.models.manifest import is_whole, read_manifest, sha256_of, write_manifest_of

SUFFIX = ".gguf"
_UNNAMED = re.compile(r"[^\w.-]+", re.ASCII)
_WORK = ".convert-"
_STORED_BITS = 16  # of a number in safetensors
_LEAST_BITS = 4  # of a number in a GGUF file, about

Convert = Callable[[Path, Path], Mapping[str, str]]
"""Turns a GGUF file into a transformers folder and returns the converters' versions; raises SetupError."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AddedFile:
    """A model from a GGUF file: its setting, its folder, and its licence as the file states it, "unknown" without."""

    setting: str
    folder: Path
    licence: str


def add_gguf(file: Path, *, models_dir: Path, convert: Convert = convert_in_subprocess) -> AddedFile:
    """Convert a GGUF file into a folder of its own; a file that was added before is compared by its SHA-256 alone.

    Raises:
        SetupError: The file cannot be read, is no GGUF file, or has a tokenizer or a form that is not known; the disk
            has no room. Nothing is left behind.
    """
    try:
        with file.open("rb") as opened:
            if opened.read(4) != b"GGUF":
                raise SetupError(f"{file.name} is no GGUF file.")
        setting = f"local/{_UNNAMED.sub('-', file.stem).strip('.-') or 'model'}"
        folder = added_folder(setting, models_dir=models_dir)
        licence = header_text(file, "general.license") or "unknown"
        added = AddedFile(setting=setting, folder=folder, licence=licence)
        digest = sha256_of(file)
        models_dir.mkdir(parents=True, exist_ok=True)
        with FileLock(models_dir / f".{folder.name}.lock"):
            known = read_manifest(folder)
            if known is not None and known.source_sha256 == digest and is_whole(folder, known, digests=True):
                return added
            for left in models_dir.glob(f"{_WORK}{folder.name}-*"):  # of a conversion that was killed
                shutil.rmtree(left)
            _require_room(file, models_dir)
            with tempfile.TemporaryDirectory(prefix=f"{_WORK}{folder.name}-", dir=models_dir) as work:
                made = Path(work) / "model"
                made.mkdir()
                converted_by = convert(file, made)
                if not generates(made):
                    raise SetupError(f"{file.name} is no language model that generates text.")
                for path in made.rglob("*"):
                    path.chmod(0o755 if path.is_dir() else 0o644)
                write_manifest_of(
                    made,
                    name=setting,
                    kind="generator",
                    licence=licence,
                    package=file.name,
                    version=digest[:12],
                    source_sha256=digest,
                    converted_by=converted_by,
                )
                if folder.exists():
                    folder.rename(Path(work) / "replaced")
                made.rename(folder)
    except OSError as error:
        raise SetupError(f"{file.name} cannot be added: {(error.strerror or 'unknown reason').lower()}.") from error
    return added


def _require_room(file: Path, models_dir: Path) -> None:
    needed = file.stat().st_size * _STORED_BITS // _LEAST_BITS
    room = shutil.disk_usage(models_dir).free
    if room < needed:
        raise SetupError(
            f"{file.name} may take {needed / 1e9:.1f} GB when it is converted, and the disk has {room / 1e9:.1f} GB."
        )
