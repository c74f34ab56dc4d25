"""Compares two runs by a paired bootstrap over their common questions."""

from collections.abc import Mapping

from app.evaluation.intervals import Difference, difference
from app.evaluation.measures import Measure, measures_of
from app.evaluation.record import Run, RunComparison, SetRun

# Options that change the content of an answer.
_ASKING = frozenset({"context_top_k", "presented", "abstention_threshold", "strict", "context_tokens", "output_tokens"})


def compare(before: Run, after: Run, *, seed: int = 0) -> RunComparison:
    """Compares every measure that both runs have, on their common questions; the change is `after` minus `before`."""
    earlier = {found.name: found for found in before.sets}
    sets: dict[str, dict[str, Difference]] = {}
    pairs: dict[str, list[tuple[list[float], list[float]]]] = {}
    measures: dict[str, Measure] = {}
    notes = []
    for found in after.sets:
        if found.name not in earlier:
            notes.append(f"{found.name} is not in the earlier run.")
            continue
        if found.fingerprint != earlier[found.name].fingerprint:
            notes.append(f"{found.name}: the corpus is not the same in both runs.")
        changes = {}
        for measure in measures_of(found.values):
            was, now = paired(earlier[found.name], found, measure.values)
            if not was:
                continue
            changes[measure.key] = difference([was], [now], statistic=measure.statistic, seed=seed)
            pairs.setdefault(measure.key, []).append((was, now))
            measures[measure.key] = measure
        sets[found.name] = changes
    overall = {
        key: difference(
            [was for was, _ in both], [now for _, now in both], statistic=measures[key].statistic, seed=seed
        )
        for key, both in pairs.items()
    }
    return RunComparison(before=before.created_at, sets=sets, overall=overall, notes=[*notes, *_changed(before, after)])


def against_floor(values: Mapping[str, Mapping[str, float]], *, seed: int = 0) -> dict[str, Difference]:
    """Compares the model with the extractive baseline on every common measure; the change is model minus baseline.

    Args:
        values: By key and question, as a run has them.
        seed: Of the resamples.
    """
    changes = {}
    for measure in measures_of(values):
        floor = values.get(measure.floor or "", {})
        pairs = [(floor[question], value) for question, value in values[measure.values].items() if question in floor]
        if pairs:
            was, now = zip(*pairs, strict=True)
            changes[measure.key] = difference([was], [now], statistic=measure.statistic, seed=seed)
    return changes


def paired(before: SetRun, after: SetRun, key: str) -> tuple[list[float], list[float]]:
    """The two runs' values of their common questions, in the same order."""
    was, now = before.values.get(key, {}), after.values.get(key, {})
    common = [question for question in now if question in was]
    return [was[question] for question in common], [now[question] for question in common]


def _changed(before: Run, after: Run) -> list[str]:
    """Lists settings and options that differ; options unknown to the earlier run are ignored."""
    known = {name: now for name, now in after.options.items() if name in _ASKING and name in before.options}
    options = {name: was for name, was in before.options.items() if name in known}
    return [
        f"{name}: {was.get(name, 'unset')} before, {now.get(name, 'unset')} now."
        for was, now in (
            (before.versions, after.versions),
            (before.settings, after.settings),
            (options, known),
        )
        for name in _names(was, now)
        if was.get(name) != now.get(name)
    ]


def _names(was: Mapping[str, str], now: Mapping[str, str]) -> list[str]:
    return sorted({*was, *now})
