"""Measures how well a reader tells questions that a passage answers from those that it only seems to answer.

Run `python -m app.tuning.evidence_reader.near_misses CHECKPOINT SET`. SET is the folder of a question
set with unanswerable questions that people wrote, such as squad2-dev. Every question is asked of its own passage alone,
below its title. CHECKPOINT is what `app.tuning.evidence_reader.evaluate` takes.
"""

import argparse
import json
import random
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from rich.console import Console

from app.evaluation.squad import exact_match, f1
from app.models.folder import resolve
from app.settings import DEFAULT_EMBEDDER, load_settings
from app.tuning.evidence_reader.evaluate import load_model
from app.tuning.evidence_reader.groups import heading
from app.tuning.evidence_reader.mixture import Source, source_of
from app.tuning.evidence_reader.model import EvidenceModel
from app.tuning.span_reader.calibration import area_under_curve
from retrieval.plain_tokenizer import plain_tokenizer
from retrieval.span_model import best_span, windows_of

_TOGETHER = 64  # questions read at once
_FALSE = 0.12  # of the answerable questions are refused at the threshold


@dataclass(frozen=True, slots=True)
class Case:
    """A question of a passage; `golds` are its answers, none where the passage does not answer it."""

    question: str
    passage: str
    golds: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Answered:
    """What the reader points at, and its margin over no answer."""

    text: str
    margin: float


@dataclass(frozen=True, slots=True, kw_only=True)
class NearMissFigures:
    """Shares in [0, 1]; None where nothing is counted.

    `exact` and `f1` are of the best span of answerable questions, whatever its margin. `auc` is the chance that an
    answerable question has a higher margin than an unanswerable one of any passage, `pairs` than one of the same
    passage. `refused` are unanswerable questions below the margin that `_FALSE` of the answerable ones are below.
    """

    answerable: int
    unanswerable: int
    exact: float
    f1: float
    auc: float
    pairs: float | None
    refused: float


def cases_of(source: Source, *, most: int) -> list[Case]:
    """At most `most` questions of a set with their own passages, always the same ones."""
    found = [Case(one.example.question, one.passage, tuple(one.example.golds)) for one in source.questions]
    found += [Case(one.question, one.passage, ()) for one in source.lacking]
    return random.Random(source.name).sample(found, min(most, len(found)))  # noqa: S311  # nothing secret is drawn


def answers(model: EvidenceModel, tokenizer: Any, source: Source, cases: Sequence[Case]) -> list[Answered]:
    """The best span of each case over all windows of its passage.

    Raises:
        ValueError: A passage has no text.
    """
    model.eval()
    found: list[Answered] = []
    for first in range(0, len(cases), _TOGETHER):
        some = cases[first : first + _TOGETHER]
        texts = [heading(source, case.passage, 2) + source.text(case.passage) for case in some]
        rows = [
            (at, window) for at, case in enumerate(some) for window in windows_of(tokenizer, case.question, texts[at])
        ]
        with torch.inference_mode():
            scores = model.score([window for _, window in rows])
        best: dict[int, Answered] = {}
        for row, (at, window) in enumerate(rows):
            size = len(window.ids)
            start, end, margin = best_span(scores.starts[row, :size], scores.ends[row, :size])
            if at not in best or margin > best[at].margin:
                place = slice(window.offsets[start - window.first][0], window.offsets[end - window.first][1])
                best[at] = Answered(texts[at][place], margin)
        if len(best) < len(some):
            raise ValueError("a passage has no text")
        found += [best[at] for at in range(len(some))]
    return found


def figures_of(cases: Sequence[Case], found: Sequence[Answered]) -> NearMissFigures:
    """The figures of answers to cases, of which both kinds must be there.

    Raises:
        ValueError: All questions are answerable, or none.
    """
    told = list(zip(cases, found, strict=True))
    right = [(case, one) for case, one in told if case.golds]
    wrong = [(case, one) for case, one in told if not case.golds]
    if not right or not wrong:
        raise ValueError("answerable and unanswerable questions are needed")
    high = np.array([one.margin for _, one in right], dtype=np.float64)
    low = np.array([one.margin for _, one in wrong], dtype=np.float64)
    of_passage: dict[str, list[float]] = {}
    for case, one in right:
        of_passage.setdefault(case.passage, []).append(one.margin)
    above = [
        (margin > one.margin) + 0.5 * (margin == one.margin)
        for case, one in wrong
        for margin in of_passage.get(case.passage, ())
    ]
    return NearMissFigures(
        answerable=len(right),
        unanswerable=len(wrong),
        exact=float(np.mean([exact_match(one.text, case.golds) for case, one in right])),
        f1=float(np.mean([f1(one.text, case.golds) for case, one in right])),
        auc=area_under_curve(high, low),
        pairs=float(np.mean(above)) if above else None,
        refused=float(np.mean(low < np.quantile(high, _FALSE))),
    )


def main(arguments: Iterable[str] | None = None) -> None:
    """Ask the questions and print the figures as a line of JSON."""
    parser = argparse.ArgumentParser(prog="python -m app.tuning.evidence_reader.near_misses", description=__doc__)
    parser.add_argument("checkpoint", type=Path, help="state.pt, trained.safetensors, or a reader's folder")
    parser.add_argument("set", type=Path, help="folder of the question set")
    parser.add_argument("--questions", type=int, default=2000)
    parser.add_argument("--threads", type=int, default=1)
    chosen = parser.parse_args(None if arguments is None else list(arguments))
    torch.set_num_threads(chosen.threads)
    base = Path(resolve(DEFAULT_EMBEDDER, models_dir=load_settings().models_dir))
    model, said, _ = load_model(chosen.checkpoint, base)
    source = source_of(chosen.set, held_back=True)
    cases = cases_of(source, most=chosen.questions)
    found = figures_of(cases, answers(model, plain_tokenizer(base), source, cases))
    row = {"checkpoint": said, "set": source.name, **asdict(found)}
    Console(highlight=False).print(json.dumps(row), soft_wrap=True, markup=False)


if __name__ == "__main__":
    main()
