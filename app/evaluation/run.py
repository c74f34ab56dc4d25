"""Runs an evaluation: ingests every question set, asks its questions and summarises the scores."""

import platform
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version

from app.errors import SetupError
from app.evaluation.comparison import against_floor
from app.evaluation.floor import Floor
from app.evaluation.intervals import Estimate, combine, estimate
from app.evaluation.measurement import Measurement
from app.evaluation.measures import Measure, OnProgress, Values, measures_of
from app.evaluation.record import Run, SetRun
from app.evaluation.scratch import Ingested, ingest
from app.evaluation.types import Options, QuestionSet
from app.server.state import State
from app.settings import Settings

_LANGUAGE = "lang"
_MOST_GROUPS = 50
_PACKAGES = ("footnote-rag", "torch", "transformers", "sentence-transformers", "faiss-cpu", "ir-measures")
_SETTINGS = (
    "embedder", "reranker", "rerank_candidates", "generator", "adapter",
    "reader", "remote_model", "device", "dtype", "weights",
    "chunk_tokens", "chunk_overlap",
    "min_evidence", "highlight_tokens", "abstention_threshold", "verifier",
    "max_context_tokens", "max_output_tokens", "context_window",
)  # fmt: skip


def evaluate(
    state: State,
    question_sets: Sequence[QuestionSet],
    options: Options,
    *,
    floor: Floor | None = None,
    on_progress: OnProgress,
) -> Run:
    """Measure the application on the question sets.

    Args:
        state: With models; its documents become those of the sets.
        question_sets: With different names.
        options: The measures to take and their sizes.
        floor: Answers every question that the model answers, and is compared with it.
        on_progress: Called with the current activity, and the finished and total numbers.

    Raises:
        SetupError: Two sets have the same name, `options.by` names metadata that no question has, or
            no question has gold documents as few as `options.presented`.
    """
    names = [question_set.name for question_set in question_sets]
    if len(set(names)) < len(names):
        raise SetupError("Two of the question sets have the same name; rename a folder.")
    by = options.by or (_LANGUAGE if any(_has(found, _LANGUAGE) for found in question_sets) else None)
    if options.by is not None and not any(_has(found, options.by) for found in question_sets):
        raise SetupError(f"No question has '{options.by}' in its metadata.")
    sets = [
        _measure(state, question_set, options, floor=floor, by=by, on_progress=_titled(question_set.name, on_progress))
        for question_set in question_sets
    ]
    return Run(
        created_at=datetime.now(UTC).isoformat(timespec="seconds"),
        versions=_versions(),
        settings=settings_of(state.settings),
        options={**options_of(options), "floor": "none" if floor is None else "extractive"},
        by=by,
        sets=sets,
        overall=overall(sets, seed=options.seed),
    )


def settings_of(settings: Settings) -> dict[str, str]:
    """The settings that influence the figures; none is a secret or a data path."""
    return {name: str(getattr(settings, name)) for name in _SETTINGS}


def options_of(options: Options) -> dict[str, str]:
    """The options as text."""
    return {
        "questions": str(options.questions),
        "seed": str(options.seed),
        "modes": ", ".join(options.modes),
        "top_k": str(options.top_k),
        "context_top_k": str(options.context_top_k),
        "budgets": ", ".join(f"{share} %" for share in options.budgets),
        "answer_questions": str(options.answer_questions) if options.answers else "none",
        "answers_only": "yes" if options.answers_only else "no",
        "presented": str(options.presented or "all"),
        "concurrency": str(options.concurrency),
        "abstention_threshold": "default" if (least := options.abstention_threshold) is None else str(least),
        "strict": "yes" if options.strict else "no",
        "context_tokens": str(options.context_tokens or "default"),
        "output_tokens": str(options.output_tokens or "default"),
    }


def summarised(values: Values, *, seed: int, among: frozenset[str] | None = None) -> dict[str, Estimate]:
    """Summarises every measure over all questions or those in `among`; measures without a question are left out."""
    summary = {}
    for measure in measures_of(values):
        chosen = [value for question, value in values[measure.values].items() if among is None or question in among]
        if chosen:
            summary[measure.key] = estimate(chosen, statistic=measure.statistic, seed=seed)
    return summary


def overall(sets: Sequence[SetRun], *, seed: int) -> dict[str, Estimate]:
    """The unweighted mean of each measure over the sets that have it."""
    measures: dict[str, Measure] = {measure.key: measure for found in sets for measure in measures_of(found.values)}
    return {
        key: combine(
            [list(found.values[measure.values].values()) for found in sets if measure.values in found.values],
            statistic=measure.statistic,
            seed=seed,
        )
        for key, measure in measures.items()
    }


def _measure(
    state: State,
    question_set: QuestionSet,
    options: Options,
    *,
    floor: Floor | None,
    by: str | None,
    on_progress: OnProgress,
) -> SetRun:
    ingested = ingest(state, question_set, on_progress=lambda done, total: on_progress("ingesting", done, total))
    started = time.perf_counter()
    measured = Measurement(state, question_set, ingested, options, floor=floor, on_progress=on_progress).run()
    asked = frozenset(question for scores in measured.values.values() for question in scores)
    return SetRun(
        name=question_set.name,
        fingerprint=question_set.fingerprint,
        documents=len(question_set.documents),
        questions=len(asked),
        values=measured.values,
        summary=summarised(measured.values, seed=options.seed),
        groups=_groups(question_set, measured.values, asked, by=by, seed=options.seed),
        against_floor=against_floor(measured.values, seed=options.seed),
        abstention=measured.abstention,
        examples=measured.examples,
        notes=[*_ingestion_notes(ingested), *measured.notes, f"Measured in {time.perf_counter() - started:.0f} s."],
    )


def _groups(
    question_set: QuestionSet, values: Values, asked: frozenset[str], *, by: str | None, seed: int
) -> dict[str, dict[str, Estimate]]:
    if by is None:
        return {}
    members: dict[str, set[str]] = {}
    for question in asked:
        if (value := question_set.questions[question].metadata.get(by)) is not None:
            members.setdefault(value, set()).add(question)
    return {
        value: summarised(values, seed=seed, among=frozenset(members[value]))
        for value in sorted(members)[:_MOST_GROUPS]
    }


def _ingestion_notes(ingested: Ingested) -> list[str]:
    notes = []
    if ingested.seconds:
        notes.append(f"{len(ingested.document_ids)} documents ingested in {ingested.seconds:.0f} s.")
    if ingested.unread:
        first = next(iter(ingested.unread.items()))
        notes.append(f"{len(ingested.unread)} documents could not be read, for example {first[0]}: {first[1]}")
    return notes


def _versions() -> dict[str, str]:
    found = {"python": platform.python_version()}
    for package in _PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue  # faiss may be the GPU wheel
    return found


def _has(question_set: QuestionSet, key: str) -> bool:
    return any(key in question.metadata for question in question_set.questions.values())


def _titled(name: str, on_progress: OnProgress) -> OnProgress:
    return lambda what, done, total: on_progress(f"{name}: {what}", done, total)
