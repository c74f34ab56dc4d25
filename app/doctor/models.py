"""Examines the models and the saved vector indexes without loading them."""

import json
from collections.abc import Callable

from app.doctor.report import Facts, Finding, Level, Report, tame
from app.errors import AppError
from app.models.adapter import configured_adapter
from app.models.candidate_judge import configured_judge
from app.models.folder import resolve, status
from app.models.span_reader import configured_reader
from app.probing.results import described, kept_result
from app.settings import Settings

_MANIFEST = "manifest.json"


def look_at_models(report: Report, settings: Settings) -> None:
    """Checks that the configured models are installed and that the files of the default models are undamaged.

    The facts have one entry for each model found, and the names of the adapter, the span reader and the judge in use.
    """
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
    wanted: dict[str, Callable[[], object]] = {
        "embedder": lambda: resolve(settings.embedder, models_dir=settings.models_dir),
        "reader": lambda: getattr(configured_reader(settings), "name", "none"),
        "judge": lambda: getattr(configured_judge(settings), "name", "none"),
    }
    if settings.extractive:
        facts["generator"] = "none, answers are quoted"
    else:
        wanted["generator"] = lambda: resolve(settings.generator, models_dir=settings.models_dir)
        wanted["adapter"] = lambda: getattr(configured_adapter(settings), "name", "none")
        wanted["class"] = lambda: _class_of(settings)
    for role, look in wanted.items():
        try:
            facts[role] = tame(str(look()))
        except AppError as error:
            findings.append(
                Finding(Level.ERROR, "model-missing", f"{role}: {tame(str(error))}", "See FOOTNOTE_MODELS_DIR.")
            )
    report.add("models", facts, *findings)


def _class_of(settings: Settings) -> str:
    """How well the generator reads, and how that is known."""
    if settings.known_class is not None:
        return settings.known_class
    try:
        result = kept_result(settings)
    except AppError:  # the generator is missing, which is a finding already
        return "unknown"
    return "not measured yet, quotes answer" if result is None else described(result.reading)


def look_at_index(report: Report, settings: Settings) -> None:
    """Reads the manifests of the saved vector indexes."""
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
