"""Chooses the embedder's span reader: the shipped one, one in a folder, or none.

A reader is the embedder with its upper layers trained to point at answers (`retrieval.span_reader`). Its folder
has those layers and `footnote-reader.json`, which says what they were trained from, what their files are and how
their scores are read as probabilities.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import retrieval
from app.models.catalog import PackagedModel
from app.models.finetuned import AUTO, NONE, FinetunedManifest, FinetunedStatus, Finetuning, folders_of
from app.models.folder import resolve
from app.settings import ModelSettings
from retrieval.reader_config import READER_FILES, Calibration, ReaderConfig

SHIPPED = Path(retrieval.__file__).parent / "readers" / "evidence-minilm-l6"
_READER = Finetuning(noun="reader", base_noun="embedder", filename="footnote-reader.json", files=READER_FILES)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReaderManifest(FinetunedManifest):
    """The manifest of a span reader, with the `calibration` of its scores."""

    calibration: Calibration

    def is_whole(self, folder: Path) -> bool:
        """Whether its weights are present and unaltered."""
        return _READER.is_whole(folder, self)


def choose_reader(setting: str, *, embedder: str, shipped: Path = SHIPPED) -> ReaderConfig | None:
    """The reader to load for the setting `FOOTNOTE_READER`; None for none.

    Args:
        setting: "auto" is the shipped reader where `embedder` is the model it was trained from, and none
            elsewhere; "none"; or a folder.
        embedder: The embedder's setting, resolved by `resolve`.
        shipped: The folder of the reader that comes with Footnote; it may be absent.

    Raises:
        SetupError: The folder holds no reader, one for another model, or files that were altered.
    """
    if setting == NONE:
        return None
    if setting != AUTO:
        return _chosen(Path(setting).expanduser(), setting, embedder)
    if not shipped.is_dir():
        return None
    manifest = _READER.sound_shipped(shipped, read_reader_manifest(shipped))
    return _config(shipped, manifest) if manifest.fits(embedder) else None


def configured_reader(settings: ModelSettings) -> ReaderConfig | None:
    """The span reader that the settings select.

    Raises:
        SetupError: See `choose_reader`, or the embedder is not on this machine.
    """
    if settings.reader == NONE:
        return None
    return choose_reader(settings.reader, embedder=resolve(settings.embedder, models_dir=settings.models_dir))


def reader_status(setting: str, *, shipped: Path = SHIPPED) -> tuple[FinetunedStatus, ...]:
    """The status of the shipped reader, if present, and of the one in the folder that `setting` names."""
    return tuple(_status(folder) for folder in folders_of(setting, shipped=shipped))


def read_reader_manifest(folder: Path) -> ReaderManifest | None:
    """The folder's manifest; None when it is missing or unreadable."""
    return _READER.read(folder, _manifest)


def write_reader_manifest(
    folder: Path, *, name: str, base: PackagedModel, licence: str, slope: float, bias: float, threshold: float
) -> ReaderManifest:
    """Writes the manifest of the weights in `folder`, with their digest.

    Raises:
        ValueError: The calibration is invalid.
        OSError: The weights are missing, or the folder cannot be written.
    """
    manifest = ReaderManifest(
        name=name,
        base=base.name,
        base_sha256=base.weights.sha256,
        licence=licence,
        calibration=Calibration(slope=slope, bias=bias, threshold=threshold),
        files=_READER.digests(folder),
    )
    _READER.write(folder, manifest)
    return manifest


def _chosen(folder: Path, setting: str, embedder: str) -> ReaderConfig:
    # Without its calibration a reader cannot give the probability of an answer.
    if not (_READER.has_files(folder) and (folder / _READER.filename).is_file()):
        raise _READER.absent(setting, needs=(*READER_FILES, _READER.filename))
    manifest = read_reader_manifest(folder)
    _READER.check_chosen(setting, folder, manifest)
    assert manifest is not None, "its file is there and was just found readable"
    if not manifest.fits(embedder):
        raise _READER.misfit(setting, base=manifest.base, model=embedder)
    return _config(folder, manifest)


def _config(folder: Path, manifest: ReaderManifest) -> ReaderConfig:
    return ReaderConfig(folder=str(folder), name=manifest.name, calibration=manifest.calibration)


def _status(folder: Path) -> FinetunedStatus:
    manifest = read_reader_manifest(folder)
    if manifest is not None:
        return _READER.status(folder, manifest)
    return _READER.unknown_status(folder, base="unknown", sound=False)


def _manifest(*, calibration: Mapping[str, Any], **facts: Any) -> ReaderManifest:
    """Parses the manifest's JSON.

    Raises:
        ValueError, TypeError: Something is missing, too much, or no number.
    """
    if set(calibration) != {"slope", "bias", "threshold"}:
        raise ValueError("a calibration has a slope, a bias and a threshold")
    return ReaderManifest(calibration=Calibration(**calibration), **facts)
