"""Measures a reader on groups of a pack, by tokens: a pack has no text, and a GPU answers thousands in seconds."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from app.tuning.evidence_reader.groups import Group, Reading, View
from app.tuning.evidence_reader.model import EvidenceModel
from retrieval.span_model import MOST_ANSWER_TOKENS

_TOGETHER = 64  # groups read at once
_FALSE = 0.12  # of the answerable questions are refused at the threshold
_LOWEST = -1e5


@dataclass(frozen=True, slots=True, kw_only=True)
class PackedFigures:
    """Shares in [0, 1] over the answerable questions; None where nothing is counted.

    `exact` and `f1` compare the ids of the tokens pointed at with those of each right span: the case of letters and
    accents do not count, articles do. `right` are questions whose best span is in a window that answers. `auc` is the
    chance that an answerable question has a higher margin than an unanswerable one, `refused` are unanswerable ones
    below the margin that `_FALSE` of the answerable ones are below.
    """

    answerable: int
    unanswerable: int
    exact: float
    f1: float
    right: float
    auc: float | None
    refused: float | None


def figures_of(model: EvidenceModel, groups: Sequence[Group], *, half: bool = False) -> PackedFigures:
    """The figures over the views of groups that are pointed: answerable where a window of a view has a right span.

    Raises:
        ValueError: None is answerable.
    """
    model.eval()
    views = [view for group in groups for view in group.views if view.pointed]
    high: list[float] = []
    low: list[float] = []
    outcomes: list[tuple[float, float, float]] = []
    for first in range(0, len(views), _TOGETHER):
        some = views[first : first + _TOGETHER]
        for view, (margin, reading, place) in zip(some, _best(model, some, half=half), strict=True):
            if not view.answered:
                low.append(margin)
                continue
            high.append(margin)
            said = reading.window.ids[place[0] : place[1] + 1]
            golds = [one.window.ids[start : end + 1] for one in view.readings for start, end in one.golds]
            outcomes.append((float(said in golds), max(_f1(said, gold) for gold in golds), float(bool(reading.golds))))
    if not outcomes:
        raise ValueError("no question is answerable")
    exact, f1, right = (float(one) for one in np.mean(outcomes, axis=0))
    return PackedFigures(
        answerable=len(high),
        unanswerable=len(low),
        exact=exact,
        f1=f1,
        right=right,
        auc=_auc(high, low) if low else None,
        refused=float(np.mean(np.array(low) < np.quantile(high, _FALSE))) if low else None,
    )


def _best(model: EvidenceModel, views: Sequence[View], *, half: bool) -> list[tuple[float, Reading, tuple[int, int]]]:
    """Of every view the margin of its best span, the reading it is in, and its first and last token."""
    with torch.inference_mode():
        scores = model.score([reading.window for view in views for reading in view.readings], half=half)
        margins, starts, ends = (one.tolist() for one in best_spans(scores.starts, scores.ends))
    found, row = [], 0
    for view in views:
        rows = range(row, row + len(view.readings))
        best = max(rows, key=lambda at: margins[at])
        found.append((margins[best], view.readings[best - row], (starts[best], ends[best])))
        row = rows.stop
    return found


def best_spans(starts: Tensor, ends: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The margins of the best spans of several windows, and their first and last tokens, each [windows].

    Args:
        starts: [windows, tokens]; place 0 is "no answer".
        ends: [windows, tokens].
    """
    after = nn.functional.pad(ends[:, 1:], (0, MOST_ANSWER_TOKENS - 1), value=_LOWEST)
    reachable, more = after.unfold(1, MOST_ANSWER_TOKENS, 1).max(dim=-1)
    sums, first = (starts[:, 1:] + reachable).max(dim=1)
    last = first + more.gather(1, first[:, None])[:, 0]
    return sums - starts[:, 0] - ends[:, 0], first + 1, last + 1


def _f1(said: Sequence[int], gold: Sequence[int]) -> float:
    shared = (Counter(said) & Counter(gold)).total()
    return 2 * shared / (len(said) + len(gold))


def _auc(high: Sequence[float], low: Sequence[float]) -> float:
    """The chance that one of `high` is above one of `low`, equal ones counted by half."""
    ordered = np.sort(np.array(low))
    below = np.searchsorted(ordered, high, side="left") + np.searchsorted(ordered, high, side="right")
    return float(below.mean() / (2 * len(ordered)))
