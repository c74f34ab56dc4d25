"""Calibrates the span reader: turns margins into probabilities and chooses the threshold for answering.

The questions come from held-out articles, never from training data.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from app.evaluation.squad import contains_any, f1
from app.tuning.adapter.packs import Corpus
from app.tuning.span_reader.cases import SHOWN, Case, Kind, cases_of
from retrieval.reader_config import Calibration
from retrieval.span_model import SpanModel, best_span, windows_of

REFUSED_WRONGLY = 0.1
ALL = "all"
_STEPS, _HALVINGS = 100, 40

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Mark:
    """Characters `start` to `end` of a passage; `margin` is its log-odds against "no answer"."""

    start: int
    end: int
    margin: float


Marker = Callable[[str, Sequence[str]], Sequence[Mark | None]]
"""Marks the likeliest answer to a question in each passage; None where there is no text to read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """Measured shares of the cases of each kind; a kind without cases is left out.

    `contains`, `f1` and `right_passage` are of all answerable questions, refused ones included; an area under
    the curve is the chance that an answerable case has a greater margin than one of that kind.
    """

    cases: Mapping[str, int]
    contains: float
    f1: float
    right_passage: float
    refused: Mapping[str, float]
    area_under_curve: Mapping[str, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibrated:
    """A calibration of margins and its measured results.

    `measured` has the figures of all cases together, under "all", and of each question set.
    """

    calibration: Calibration
    measured: Mapping[str, Figures]


@dataclass(frozen=True, slots=True)
class _Reading:
    """A reader's output for a case: the best margin over its passages and the span."""

    case: Case
    margin: float
    answer: str
    place: int


def calibrate(corpora: Iterable[Corpus], mark: Marker, *, questions: int = 150, seed: int) -> Calibrated:
    """Fit probability and threshold to the best margin of three passages, which is how a reader is used.

    A margin is not fitted passage by passage: the best of three that do not answer is greater than one such
    passage's, and a probability for single ones would promise too much.

    Args:
        corpora: Question sets with the examples of articles held back; those without gold answers are not asked.
        mark: The reader.
        questions: Most of each set.
        seed: Of the choice of questions and passages.

    Raises:
        ValueError: No question could be asked both ways, or margins are no greater where there is an answer.
    """
    readings = {}
    for corpus in corpora:
        found = [_read(case, mark) for case in cases_of(corpus, questions=questions, seed=seed)]
        readings[corpus.question_set.name] = [reading for reading in found if reading is not None]
    together = [reading for found in readings.values() for reading in found]
    margins = np.array([reading.margin for reading in together], dtype=np.float64)
    answerable = np.array([reading.case.kind is Kind.ANSWERABLE for reading in together], dtype=np.bool_)
    if answerable.all() or not answerable.any():
        raise ValueError("there are no held-back questions to calibrate the reader on")
    slope, bias = fit(margins, answerable)
    if slope <= 0:
        raise ValueError("the reader's margins are no greater where there is an answer: it has learnt nothing")
    least = least_answered(margins[answerable], refused=REFUSED_WRONGLY)
    uncut = Calibration(slope=slope, bias=bias)
    by_set = {name: figures(found, least=least) for name, found in readings.items() if _has_answerable(found)}
    return Calibrated(
        calibration=replace(uncut, threshold=uncut.probability(least)),
        measured={ALL: figures(together, least=least), **by_set},
    )


def _read(case: Case, mark: Marker) -> _Reading | None:
    """Reads a case; None when no passage has text."""
    marks = [(place, found) for place, found in enumerate(mark(case.question, case.passages)) if found is not None]
    if not marks:
        return None
    place, best = max(marks, key=lambda one: one[1].margin)
    return _Reading(case, best.margin, case.passages[place][best.start : best.end], place)


def fit(margins: Floats, answerable: npt.NDArray[np.bool_]) -> tuple[float, float]:
    """Slope and bias of the logistic regression of "there is an answer" on the margin.

    Those with an answer and those without weigh the same. Targets are Platt's (1999, "Probabilistic outputs for
    support vector machines"), which stay off 0 and 1 so that classes a threshold separates have a finite slope;
    Newton's method with halved steps as in Lin, Lin and Weng (2007, "A note on Platt's probabilistic outputs").

    Args:
        margins: (cases,).
        answerable: (cases,), of both kinds.
    """
    with_, without = int(answerable.sum()), int((~answerable).sum())
    assert 0 < with_ < len(margins), "one kind alone says nothing about the other"
    targets = np.where(answerable, (with_ + 1) / (with_ + 2), 1 / (without + 2))
    weights = np.where(answerable, 0.5 / with_, 0.5 / without)
    middle, spread = float(margins.mean()), float(margins.std()) or 1.0
    inputs = np.stack([(margins - middle) / spread, np.ones_like(margins)], axis=1)

    def loss(parameters: Floats) -> float:
        scores = inputs @ parameters
        return float((weights * (np.logaddexp(0, scores) - targets * scores)).sum())

    parameters = np.zeros(2)
    for _ in range(_STEPS):
        probabilities = _logistic(inputs @ parameters)
        gradient = inputs.T @ (weights * (probabilities - targets))
        curvature = weights * probabilities * (1 - probabilities)
        step = np.linalg.solve(inputs.T @ (inputs * curvature[:, None]) + 1e-12 * np.eye(2), gradient)
        size, before = 1.0, loss(parameters)
        while loss(parameters - size * step) > before and size > 2.0**-_HALVINGS:
            size /= 2
        parameters = parameters - size * step
        if float(np.abs(size * step).max()) < 1e-10:
            break
    slope = float(parameters[0]) / spread
    return slope, float(parameters[1]) - slope * middle


def least_answered(margins: Floats, *, refused: float) -> float:
    """The margin below which the share `refused` of `margins` lies, rounded down to whole cases."""
    return float(np.sort(margins)[int(refused * len(margins))])


def figures(readings: Sequence[_Reading], *, least: float) -> Figures:
    """The figures of the readings when margins of at least `least` are answered."""
    by_kind = defaultdict(list)
    for reading in readings:
        by_kind[reading.case.kind].append(reading)
    margins = {
        kind: np.array([one.margin for one in by_kind[kind]], dtype=np.float64) for kind in Kind if kind in by_kind
    }
    asked = by_kind[Kind.ANSWERABLE]
    assert asked, "without answerable questions there is nothing to compare with"
    return Figures(
        cases={kind.value: len(found) for kind, found in margins.items()},
        contains=_mean([float(contains_any(one.answer, one.case.golds)) for one in asked]),
        f1=_mean([f1(one.answer, one.case.golds) for one in asked]),
        right_passage=_mean([float(one.place == one.case.right) for one in asked]),
        refused={kind.value: _mean(found < least) for kind, found in margins.items()},
        area_under_curve={
            kind.value: area_under_curve(margins[Kind.ANSWERABLE], found)
            for kind, found in margins.items()
            if kind is not Kind.ANSWERABLE
        },
    )


def area_under_curve(positive: Floats, negative: Floats) -> float:
    """The chance that one of `positive` exceeds one of `negative`, a tie being half of one; both hold something."""
    difference = positive[:, None] - negative[None, :]
    return _mean((difference > 0) + 0.5 * (difference == 0))


def marker_of(model: SpanModel, tokenizer: Any) -> Marker:
    """The span that `model` points at, in the best window of a passage.

    `tokenizer` is a `tokenizers.Tokenizer` without truncation.
    """
    import torch

    model.eval()

    # The cases of a question follow each other and share passages; read alone, none is padded to another's length.
    @lru_cache(maxsize=4 * SHOWN)
    def marked(question: str, passage: str) -> Mark | None:
        windows = windows_of(tokenizer, question, passage)
        if not windows:
            return None
        with torch.inference_mode():
            scores = zip(windows, *model(windows), strict=True)
            found = [(window, *best_span(starts, ends)) for window, starts, ends in scores]
        window, first, last, margin = max(found, key=lambda one: one[3])
        return Mark(window.offsets[first - window.first][0], window.offsets[last - window.first][1], margin)

    return lambda question, passages: [marked(question, passage) for passage in passages]


def _has_answerable(readings: Sequence[_Reading]) -> bool:
    return any(reading.case.kind is Kind.ANSWERABLE for reading in readings)


def _logistic(scores: Floats) -> Floats:
    """The logistic function, without overflow for large scores."""
    found: Floats = np.exp(-np.logaddexp(0, -scores))
    return found


def _mean(values: Sequence[float] | npt.NDArray[Any]) -> float:
    return float(np.mean(values))
