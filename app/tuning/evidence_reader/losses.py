"""The loss of the reader: one normalisation over all spans of a view, silence where nothing answers, tags, pairs.

A span's score is its margin over "no answer" in its own window, start + end - (start of none + end of none), which is
what answering goes by. Over the windows of a view the margins share one softmax in which "no answer" stands once, at 0
(Clark and Gardner 2018, arXiv:1710.10723, section 3.4): margins of different passages become comparable.

All groups are counted at once, by a few operations over rows: on a GPU one operation per group takes longer than the
encoder.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor, nn

from app.tuning.evidence_reader.groups import IGNORED, Group
from app.tuning.evidence_reader.model import EvidenceModel, Scores, span_masses

_LEAST_EVIDENCE = 8  # tokens a view's tags are counted by at least


@dataclass(frozen=True, slots=True, kw_only=True)
class Weights:
    """The weight of each part of the loss relative to the shared normalisation's."""

    apart: float = 0.5  # the near passages by themselves, where nothing answers
    unanswered: float = 0.5
    tags: float = 0.5
    paired: float = 1.0  # the answerable question of a passage above the unanswerable one


class Losses(NamedTuple):
    """Sums over groups, each of another task.

    Pointing among passages, silence where the right one is left out or nothing answers, tags, and an answerable
    question above an unanswerable one of its passage.
    """

    pointed: Tensor
    apart: Tensor
    unanswered: Tensor
    tags: Tensor
    paired: Tensor

    def total(self, weights: Weights) -> Tensor:
        """All parts together, weighted."""
        return (
            self.pointed
            + weights.apart * self.apart
            + weights.unanswered * self.unanswered
            + weights.tags * self.tags
            + weights.paired * self.paired
        )


class Targets(NamedTuple):
    """What the windows of several groups are trained towards, by the numbers of windows and of views.

    `total` is the number of views, `views` the view of every window. `golds` are [golds, 3]: window, first and last
    token of a right answer. `tags` are [windows, tokens]: 1, 0, or `IGNORED`. The others choose: `pointed` and
    `unanswered` are views, `silent` windows of pointed views without an answer, `pairs` [pairs, 2] a pointed view and
    the unanswerable one paired with it.
    """

    total: int
    views: Tensor
    golds: Tensor
    tags: Tensor
    pointed: Tensor
    unanswered: Tensor
    silent: Tensor
    pairs: Tensor

    @classmethod
    def of(cls, groups: Sequence[Group], *, tokens: int, device: torch.device) -> "Targets":
        """Of the windows of all views of the groups, in their order; `tokens` is what the longest window has."""
        count = row = 0
        views: list[int] = []
        golds: list[tuple[int, int, int]] = []
        pointed: list[int] = []
        unanswered: list[int] = []
        silent: list[int] = []
        pairs: list[tuple[int, int]] = []
        tagged: list[Tensor] = []
        for group in groups:
            asked = count
            trained = group.asked.pointed
            for view in group.views:
                second = view is group.unanswered
                if second:
                    unanswered.append(count)
                elif trained:
                    pointed.append(count)
                for reading in view.readings:
                    views.append(count)
                    if trained and not second:
                        golds += [(row, *place) for place in reading.golds]
                        silent += [] if reading.golds else [row]
                    before = reading.window.first
                    after = tokens - before - len(reading.tags)
                    tagged.append(torch.tensor([IGNORED] * before + [*reading.tags] + [IGNORED] * after))
                    row += 1
                count += 1
            if group.paired and trained and group.unanswered is not None:
                pairs.append((asked, count - 1))
        numbers = (torch.tensor(one, dtype=torch.long, device=device) for one in (views, pointed, unanswered, silent))
        views_, pointed_, unanswered_, silent_ = numbers
        return cls(
            count,
            views_,
            torch.tensor(golds, dtype=torch.long, device=device).view(-1, 3),
            torch.stack(tagged).to(device),
            pointed_,
            unanswered_,
            silent_,
            torch.tensor(pairs, dtype=torch.long, device=device).view(-1, 2),
        )


def losses_of(model: EvidenceModel, groups: Sequence[Group], *, half: bool = False) -> Losses:
    """The loss summed over the groups."""
    windows = [reading.window for group in groups for view in group.views for reading in view.readings]
    scores = model.score(windows, half=half)
    device = scores.starts.device
    return losses(scores, Targets.of(groups, tokens=scores.starts.shape[1], device=device))


def losses(scores: Scores, targets: Targets) -> Losses:
    """The loss summed over all views, from the scores of their windows."""
    starts, ends = scores.starts, scores.ends
    masses = span_masses(starts, ends)
    none = _none_losses(masses, targets.views, targets.total)
    row, start, end = targets.golds.unbind(dim=1)
    margins = starts[row, start] + ends[row, end] - starts[row, 0] - ends[row, 0]
    right = _log_sums(margins, targets.views[row], targets.total)
    apart = _none_losses(masses[targets.silent], targets.views[targets.silent], targets.total)  # 0 without windows
    asked, other = targets.pairs.unbind(dim=1)
    return Losses(
        pointed=(none[targets.pointed] - right[targets.pointed]).sum(),
        apart=apart.sum(),
        unanswered=none[targets.unanswered].sum(),
        tags=_tag_loss(scores.tags, targets),
        paired=pair_loss(right[asked], _log_sums(masses, targets.views, targets.total)[other]).sum(),
    )


def pair_loss(right: Tensor, other: Tensor) -> Tensor:
    """Negative log of the chance that the answerable of two questions of a passage has the higher margin.

    The chance is the logistic function of the difference (Burges et al. 2005, RankNet).

    Args:
        right: The margin of the right spans of the answerable one.
        other: That of all spans of the unanswerable one, on the same passage.
    """
    return nn.functional.softplus(other - right)


def _none_losses(masses: Tensor, owners: Tensor, count: int) -> Tensor:
    """[count]: negative log of the share of "no answer" among all spans of an owner's windows and itself."""
    every = torch.arange(count, device=masses.device)
    return _log_sums(torch.cat([masses, masses.new_zeros(count)]), torch.cat([owners, every]), count)


def _log_sums(values: Tensor, owners: Tensor, count: int) -> Tensor:
    """[count]: the log of the sum of the exponentials of each owner's values; -inf where it has none."""
    highest = values.new_full((count,), -torch.inf).scatter_reduce(0, owners, values.detach(), "amax")
    shares = (values - highest[owners]).exp()
    sums = values.new_zeros(count).index_add(0, owners, shares)
    has = sums > 0
    # The logarithm of 0 would make the gradients of all the others not a number.
    return torch.where(has, torch.where(has, sums, 1).log() + highest, -torch.inf)


def _tag_loss(scores: Tensor, targets: Targets) -> Tensor:
    """Cross-entropy of the tags of each view, counted by its tokens of evidence, and summed.

    By those, not by all: long passages and long answers then weigh no more than short ones.
    """
    known = targets.tags != IGNORED
    wanted = targets.tags.clamp(min=0).to(scores.dtype)
    each = nn.functional.binary_cross_entropy_with_logits(scores, wanted, reduction="none")
    rows = torch.where(known, each, 0).sum(dim=1)
    evidence = (targets.tags == 1).sum(dim=1)
    counted = torch.zeros(targets.total, dtype=evidence.dtype, device=evidence.device).index_add(
        0, targets.views, evidence
    )
    return (rows / counted.clamp(min=_LEAST_EVIDENCE)[targets.views]).sum()
