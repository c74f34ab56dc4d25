"""Chooses the judge of candidates: the shipped one, one in a folder, or none.

A judge is the first layers of the default generator with what they learnt (`retrieval.candidate_judge`). Its folder has
what was learnt and `footnote-judge.json`, which says what it was trained from and what its files are. Which generator
answers makes no difference to it; its base only has to be on this machine.
"""

from dataclasses import dataclass
from pathlib import Path

import retrieval
from app.errors import SetupError
from app.models.catalog import SMOLLM2_135M_INSTRUCT, PackagedModel
from app.models.finetuned import AUTO, NONE, FinetunedManifest, FinetunedStatus, Finetuning, folders_of
from app.models.folder import resolve
from app.settings import ModelSettings
from retrieval.judge_layout import JUDGE_FILES

SHIPPED = Path(retrieval.__file__).parent / "judges" / "candidates-smollm2-135m"
_BASE = SMOLLM2_135M_INSTRUCT.name
_JUDGE = Finetuning(noun="judge", base_noun="generator", filename="footnote-judge.json", files=JUDGE_FILES)


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeConfig:
    """The configuration of a judge: its folder, its base's folder and its name."""

    folder: str
    base_folder: str
    name: str


def configured_judge(settings: ModelSettings, *, shipped: Path = SHIPPED) -> JudgeConfig | None:
    """The judge that the settings select; None for none.

    With "auto" it is the shipped one where its base is on this machine. Without a span reader there is none: its scores
    were fitted beside the reader's.

    Args:
        settings: Of the models.
        shipped: The folder of the judge that comes with Footnote; it may be absent.

    Raises:
        SetupError: The folder holds no judge, one of another model, or files that were altered.
    """
    if NONE in (settings.judge, settings.reader):
        return None
    if settings.judge != AUTO:
        folder = Path(settings.judge).expanduser()
        if not (_JUDGE.has_files(folder) and (folder / _JUDGE.filename).is_file()):
            raise _JUDGE.absent(settings.judge, needs=(*JUDGE_FILES, _JUDGE.filename))
        manifest = _read(folder)
        _JUDGE.check_chosen(settings.judge, folder, manifest)
        assert manifest is not None, "its file is there and was just found readable"
        base = resolve(_BASE, models_dir=settings.models_dir)
        if not manifest.fits(base):
            raise SetupError(
                f"The judge {settings.judge!r} was trained on {manifest.base}: set FOOTNOTE_JUDGE to one of {_BASE}, "
                f"or to none."
            )
        return JudgeConfig(folder=str(folder), base_folder=base, name=manifest.name)
    if not shipped.is_dir():
        return None
    manifest = _JUDGE.sound_shipped(shipped, _read(shipped))
    try:
        base = resolve(_BASE, models_dir=settings.models_dir)
    except SetupError:
        return None
    return JudgeConfig(folder=str(shipped), base_folder=base, name=manifest.name) if manifest.fits(base) else None


def judge_status(setting: str, *, shipped: Path = SHIPPED) -> tuple[FinetunedStatus, ...]:
    """The status of the shipped judge, if present, and of the one in the folder that `setting` names."""
    return tuple(_status(folder) for folder in folders_of(setting, shipped=shipped))


def write_judge_manifest(folder: Path, *, name: str, base: PackagedModel, licence: str) -> FinetunedManifest:
    """Writes the manifest of the weights in `folder`, with their digest.

    Raises:
        OSError: The weights are missing, or the folder cannot be written.
    """
    manifest = FinetunedManifest(
        name=name, base=base.name, base_sha256=base.weights.sha256, licence=licence, files=_JUDGE.digests(folder)
    )
    _JUDGE.write(folder, manifest)
    return manifest


def _read(folder: Path) -> FinetunedManifest | None:
    return _JUDGE.read(folder, FinetunedManifest)


def _status(folder: Path) -> FinetunedStatus:
    manifest = _read(folder)
    if manifest is not None:
        return _JUDGE.status(folder, manifest)
    return _JUDGE.unknown_status(folder, base="unknown", sound=False)
