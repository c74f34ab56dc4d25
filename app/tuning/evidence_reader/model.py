"""The encoder that points and tags, and its loss: one normalisation over all spans of a group.

A span's score is its margin over "no answer" in its own window, start + end - (start of none + end of none), which is
what answering goes by. Over the windows of a view the margins share one softmax in which "no answer" stands once, at 0
(Clark and Gardner 2018, arXiv:1710.10723, section 3.4): margins of different passages become comparable.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor, nn

from app.tuning.evidence_reader.groups import IGNORED, Group, Reading, View
from retrieval.span_model import MOST_ANSWER_TOKENS, SpanModel, Window

READ_TOKENS = 1024  # of one batch of windows, padding included
_LEAST_EVIDENCE = 8  # tokens a view's tags are counted by at least
_LOWEST = -1e4
_RARE = -3.5  # log-odds of a token to be evidence, before anything is learnt


@dataclass(frozen=True, slots=True, kw_only=True)
class Weights:
    """The weight of each part of the loss relative to the shared normalisation's."""

    apart: float = 0.5  # the near passages by themselves, where nothing answers
    unanswered: float = 0.5
    tags: float = 0.5
    paired: float = 1.0  # the answerable question of a passage above the unanswerable one


class Scores(NamedTuple):
    """Of every token of several windows, each [windows, tokens]: beginning, ending, being evidence (log-odds)."""

    starts: Tensor
    ends: Tensor
    tags: Tensor


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


class EvidenceModel(SpanModel):
    """A `SpanModel` with tags that is scored for training: in batches of its own, with a graph."""

    def __init__(self, encoder: object, *, tags: bool = True) -> None:
        super().__init__(encoder, tags=tags)
        if self.tag is not None:
            nn.init.constant_(self.tag.bias, _RARE)

    def score(self, windows: Sequence[Window], *, half: bool = False) -> Scores:
        """All three scores; very low where no answer can be.

        Windows are read in batches of like length. With `half` the encoder multiplies in bfloat16, the scores
        are made in float32 all the same.
        """
        longest = max(len(window.ids) for window in windows)
        rows: list[Tensor | None] = [None] * len(windows)
        for batch in _batches([len(window.ids) for window in windows]):
            with torch.autocast("cpu", dtype=torch.bfloat16, enabled=half):
                states, may = self.states([windows[place] for place in batch])
            states = states.float()
            starts, ends = self.pointed(states, may)
            tags = self.tagged(states, may)
            assert tags is not None, "an evidence model tags"
            together = torch.stack([starts, ends, tags], dim=1)  # [batch, 3, tokens]
            together = nn.functional.pad(together, (0, longest - together.shape[-1]), value=_LOWEST)
            for row, place in enumerate(batch):
                rows[place] = together[row]
        scores = torch.stack([row for row in rows if row is not None])
        return Scores(scores[:, 0], scores[:, 1], scores[:, 2])


def losses_of(model: EvidenceModel, groups: Sequence[Group], *, half: bool = False) -> Losses:
    """The loss summed over the groups."""
    views = [view for group in groups for view in group.views]
    scores = model.score([reading.window for view in views for reading in view.readings], half=half)
    masses = span_masses(scores.starts, scores.ends)
    zero = masses.new_zeros(())
    parts = {name: [zero] for name in Losses._fields}
    first = 0
    for group in groups:
        right = None
        for view in group.views:
            rows = slice(first, first + len(view.readings))
            first = rows.stop
            parts["tags"].append(tag_loss(scores.tags[rows], view.readings))
            if view is group.unanswered:
                parts["unanswered"].append(none_loss(masses[rows]))
                if group.paired and right is not None:
                    parts["paired"].append(pair_loss(right, masses[rows].logsumexp(dim=0)))
            elif view.pointed:
                right = right_margin(scores.starts[rows], scores.ends[rows], view)
                parts["pointed"].append(shared_loss(scores.starts[rows], scores.ends[rows], masses[rows], view))
                silent = [row for row, reading in enumerate(view.readings) if not reading.golds]
                if silent:
                    parts["apart"].append(none_loss(masses[rows][silent]))
    return Losses(**{name: torch.stack(part).sum() for name, part in parts.items()})


def span_masses(starts: Tensor, ends: Tensor) -> Tensor:
    """[windows]: the log of the sum over all spans, at most `MOST_ANSWER_TOKENS` long, of the exponentials of their
    margins.

    Args:
        starts: [windows, tokens]; place 0 is "no answer".
        ends: [windows, tokens].
    """  # noqa: D205  # one sentence
    after = nn.functional.pad(ends[:, 1:], (0, MOST_ANSWER_TOKENS - 1), value=2 * _LOWEST)
    reachable = after.unfold(1, MOST_ANSWER_TOKENS, 1).logsumexp(dim=-1)  # of ends not before each place
    return (starts[:, 1:] + reachable).logsumexp(dim=-1) - (starts[:, 0] + ends[:, 0])


def right_margin(starts: Tensor, ends: Tensor, view: View) -> Tensor:
    """The log of the sum over the right spans of a view of the exponentials of their margins."""
    return torch.stack(
        [
            starts[row, start] + ends[row, end] - starts[row, 0] - ends[row, 0]
            for row, reading in enumerate(view.readings)
            for start, end in reading.golds
        ]
    ).logsumexp(dim=0)


def shared_loss(starts: Tensor, ends: Tensor, masses: Tensor, view: View) -> Tensor:
    """Negative log of the right spans' share of all spans of the view and one "no answer"; right ones are summed."""
    return none_loss(masses) - right_margin(starts, ends, view)


def pair_loss(right: Tensor, other: Tensor) -> Tensor:
    """Negative log of the chance that the answerable of two questions of a passage has the higher margin.

    The chance is the logistic function of the difference (Burges et al. 2005, RankNet).

    Args:
        right: The margin of the right spans of the answerable one.
        other: That of all spans of the unanswerable one, on the same passage.
    """
    return nn.functional.softplus(other - right)


def none_loss(masses: Tensor) -> Tensor:
    """Negative log of the share of "no answer" among all spans of a view's windows and itself."""
    return torch.cat([masses, masses.new_zeros(1)]).logsumexp(dim=0)


def tag_loss(scores: Tensor, readings: Sequence[Reading]) -> Tensor:
    """Cross-entropy of the tags of a view, summed and counted by its tokens of evidence.

    By those, not by all: long passages and long answers then weigh no more than short ones.

    Args:
        scores: [windows, tokens], log-odds.
        readings: Of the windows.
    """
    wanted = torch.full(scores.shape, float(IGNORED))
    for row, reading in enumerate(readings):
        at = reading.window.first
        wanted[row, at : at + len(reading.tags)] = torch.tensor(reading.tags, dtype=torch.float32)
    wanted = wanted.to(scores.device)
    known = wanted != IGNORED
    loss = nn.functional.binary_cross_entropy_with_logits(scores[known], wanted[known], reduction="sum")
    return loss / max(_LEAST_EVIDENCE, int((wanted == 1).sum()))


def _batches(lengths: Sequence[int]) -> list[list[int]]:
    """Places of windows of like length, longest first, within `READ_TOKENS`."""
    found: list[list[int]] = []
    for place in sorted(range(len(lengths)), key=lambda place: -lengths[place]):
        if found and (len(found[-1]) + 1) * lengths[found[-1][0]] <= READ_TOKENS:
            found[-1].append(place)
        else:
            found.append([place])
    return found
