"""Models and the saved index, looked at without loading either."""

import json

from app.doctor.report import Facts, Finding, Level, Report, tame
from app.errors import AppError
from app.models.folder import resolve, status
from app.settings import Settings

_MANIFEST = "manifest.json"


def look_at_models(report: Report, settings: Settings) -> None:
    """Whether what the settings name is here, and every byte of the default models what it should be."""
    facts: Facts = {}
    findings = []
    for model in status(settings.models_dir):
        if not model.present:
            continue
        facts[model.name] = {"bytes": model.bytes, "sound": model.sound}
        if not model.sound:
            findings.append(
                Finding(Level.ERROR, "model-damaged", f"{model.name} is damaged.", "`footnote models fetch`.")
            )
    wanted = {"embedder": settings.embedder}
    if not settings.extractive:
        wanted["generator"] = settings.generator
    for role, setting in wanted.items():
        try:
            resolve(setting, models_dir=settings.models_dir)
        except AppError as error:
            findings.append(
                Finding(Level.ERROR, "model-missing", f"{role}: {tame(str(error))}", "See FOOTNOTE_MODELS_DIR.")
            )
    report.add("models", facts, *findings)


def look_at_index(report: Report, settings: Settings) -> None:
    """The manifests of the saved indexes."""
    facts: Facts = {}
    for path in sorted(settings.data_dir.glob(f"index*/{_MANIFEST}")):
        try:
            manifest = json.loads(path.read_text())
        except (OSError, ValueError):
            manifest = None
        kept = {"generation", "count", "dim", "model", "revision", "size"}
        facts[path.parent.name] = (
            {name: value for name, value in manifest.items() if name in kept}
            if isinstance(manifest, dict)
            else "unreadable"
        )
    report.add("index", facts)
