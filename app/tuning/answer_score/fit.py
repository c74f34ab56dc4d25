"""Fits the answer score: a logistic regression over candidates, judged by five-fold cross-validation over questions.

Cases count by their kind and set, not by how many there are (`counts`). The figures are of questions: whether the
likeliest candidate is right, and what is lost and gained by each threshold.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from app.answering.quoting.score import certainty, certainty_values, logit
from app.tuning.answer_score.cases import Case

Floats = npt.NDArray[np.float64]
THRESHOLDS = (0.05, 0.08, 0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.95, 0.97)
READER = frozenset({"margin", "margin_lead", "evidence", "evidence_lead"})
"""The values of the span reader; without it, the judge's are not known either."""
JUDGE = frozenset({"judge", "judge_lead"})
"""The values of the judge of candidates."""
_WRITTEN, _HIDDEN = 0.1, 0.15  # shares of the cases without an answer: written to have none, and with it hidden
_L2 = 1e-3
_L2_CERTAINTY = 2e-2  # one row a question, not one a candidate
_FOLDS = 5
_STEPS = 100


@dataclass(frozen=True, slots=True)
class Judged:
    """One question by fitted weights.

    Attributes:
        case: The question.
        best: The likeliest candidate's probability.
        first: Whether the likeliest candidate holds the answer.
        within_three: Whether one of the three likeliest does.
        pointed: Whether the likeliest candidate's highlight meets the answer.
    """

    case: Case
    best: float
    first: bool
    within_three: bool
    pointed: bool


def fitted(cases: Sequence[Case], *, without: frozenset[str] = frozenset()) -> dict[str, float]:
    """The weights by name; those of the values in `without` are 0."""
    names = list(cases[0].values[0])
    used = [name for name in names if name != "bias" and name not in without]
    rows, labels, counted = [], [], []
    for case, count in zip(cases, counts(cases), strict=True):
        for values, right, said in zip(case.values, case.right, case.said, strict=True):
            if said:
                continue
            rows.append([values[name] for name in used])
            labels.append(float(right and case.answerable))
            counted.append(count)
    data = np.array(rows)
    mean, deviation = data.mean(axis=0), data.std(axis=0) + 1e-9
    standard = np.c_[np.ones(len(data)), (data - mean) / deviation]
    found = _logistic(standard, np.array(labels), np.array(counted))
    weights = found[1:] / deviation
    by_name = dict.fromkeys(names, 0.0)
    by_name.update(zip(used, (round(float(weight), 4) for weight in weights), strict=True))
    by_name["bias"] = round(float(found[0] - (weights * mean).sum()), 4)
    return by_name


def counts(cases: Sequence[Case]) -> list[float]:
    """What each case counts, 1 in all.

    Questions without an answer are a quarter, about what people ask of a library; near misses that were written to be
    mistaken are the smaller part of them. Within a kind a set counts by the square root of its size, so that a large
    one does not decide alone, nor a small one by a few cases.
    """
    kinds = [_WRITTEN if case.written else 1 - _WRITTEN - _HIDDEN if case.answerable else _HIDDEN for case in cases]
    sizes: dict[tuple[bool, bool, str], int] = {}
    keys = [(case.written, case.answerable, case.dataset) for case in cases]
    for key in keys:
        sizes[key] = sizes.get(key, 0) + 1
    sums: dict[tuple[bool, bool], float] = {}
    for (written, answerable, _), size in sizes.items():
        sums[written, answerable] = sums.get((written, answerable), 0.0) + size**0.5
    found = [kind * sizes[key] ** -0.5 / sums[key[:2]] for kind, key in zip(kinds, keys, strict=True)]
    return [count / sum(found) for count in found]


def _logistic(data: Floats, labels: Floats, counts: Floats, *, penalty: float = _L2) -> Floats:
    """Coefficients by Newton's method, the first, of the constant, without penalty."""
    counts = counts / counts.sum()
    penalties = penalty * np.r_[0.0, np.ones(data.shape[1] - 1)]
    found = np.zeros(data.shape[1])
    for _ in range(_STEPS):
        guess = 1 / (1 + np.exp(-np.clip(data @ found, -30, 30)))
        slope = data.T @ (counts * (guess - labels)) + penalties * found
        curve = (data * (counts * guess * (1 - guess))[:, None]).T @ data + np.diag(penalties + 1e-12)
        step = np.linalg.solve(curve, slope)
        found -= step
        if np.abs(step).max() < 1e-9:
            break
    return found


def fitted_certainty(
    cases: Sequence[Case], weights: Mapping[str, float], *, without: frozenset[str] = frozenset()
) -> dict[str, float]:
    """The weights of `quoting.score.certainty` by name: whether the candidate that `weights` choose answers."""
    rows, labels, names = [], [], list[str]()
    for case in cases:
        logits, order = _ordered(case, weights)
        following = logits[order[1]] if len(order) > 1 else logits[order[0]]
        seen = certainty_values(case.values[order[0]], best=logits[order[0]], next_best=following)
        names = [name for name in seen if name != "bias"]
        rows.append([0.0 if name in without else seen[name] for name in names])
        labels.append(float(case.answerable and (case.right[order[0]] or case.said[order[0]])))
    data = np.array(rows)
    mean, deviation = data.mean(axis=0), data.std(axis=0) + 1e-9
    standard = np.c_[np.ones(len(data)), (data - mean) / deviation]
    found = _logistic(standard, np.array(labels), np.array(counts(cases)), penalty=_L2_CERTAINTY)
    slopes = found[1:] / deviation
    bias = round(float(found[0] - (slopes * mean).sum()), 4)
    return {"bias": bias} | {
        name: 0.0 if name in without else round(float(slope), 4) for name, slope in zip(names, slopes, strict=True)
    }


def _ordered(case: Case, weights: Mapping[str, float]) -> tuple[list[float], list[int]]:
    """The candidates' log-odds, and their places by falling log-odds."""
    logits = [logit(weights, values) for values in case.values]
    return logits, sorted(range(len(logits)), key=lambda place: -logits[place])


def judged(cases: Iterable[Case], weights: Mapping[str, float], certain: Mapping[str, float]) -> list[Judged]:
    """Every question by `weights`, and by `certain` whether it is answered."""
    found = []
    for case in cases:
        logits, order = _ordered(case, weights)
        holds = [case.right[at] or case.said[at] for at in order]
        best = certainty(certain, logits, case.values)
        found.append(Judged(case, best, holds[0], any(holds[:3]), case.pointed[order[0]]))
    return found


def cross_validated(cases: Sequence[Case], *, without: frozenset[str] = frozenset(), seed: int = 0) -> list[Judged]:
    """Every question by weights that were fitted without it."""
    folds = np.random.default_rng(seed).integers(0, _FOLDS, len(cases))
    found: list[Judged] = []
    for fold in range(_FOLDS):
        others = [case for case, at in zip(cases, folds, strict=True) if at != fold]
        weights = fitted(others, without=without)
        certain = fitted_certainty(others, weights, without=without)
        found += judged([case for case, at in zip(cases, folds, strict=True) if at == fold], weights, certain)
    return found


def report(found: Sequence[Judged]) -> str:
    """A table by set, and one by threshold."""
    lines = ["| set | answerable, not | first right | within three | words right |", "|---|---|---|---|---|"]
    for dataset in [*dict.fromkeys(one.case.dataset for one in found), "all"]:
        mine = [one for one in found if dataset in {one.case.dataset, "all"}]
        answerable = [one for one in mine if one.case.answerable]
        if answerable:
            shares = (
                np.mean([one.first for one in answerable]),
                np.mean([one.within_three for one in answerable]),
                np.mean([one.pointed for one in answerable]),
            )
            figures = " | ".join(f"{share:.3f}" for share in shares)
            lines.append(f"| {dataset} | {len(answerable)}, {len(mine) - len(answerable)} | {figures} |")
    lines += ["", "| from | answerable below | unanswerable given | given | of these wrong |", "|---|---|---|---|---|"]
    answerable = [one for one in found if one.case.answerable]
    hidden = [one for one in found if not one.case.answerable]
    for threshold in THRESHOLDS:
        given = [one for one in found if one.best >= threshold]
        wrong = [one for one in given if not (one.case.answerable and one.first)]
        lines.append(
            f"| {threshold} | {_share([one.best < threshold for one in answerable])} "
            f"| {_share([one.best >= threshold for one in hidden])} | {len(given) / len(found):.3f} "
            f"| {_share([one in wrong for one in given])} |"
        )
    return "\n".join(lines)


def _share(of: Sequence[bool]) -> str:
    return f"{np.mean(of):.3f}" if of else "-"
