"""The parts of the reader's loss, a view at a time: what `losses_of` must come to over all groups at once."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from app.tuning.evidence_reader.groups import IGNORED, Reading, View

LEAST_EVIDENCE = 8


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


def none_loss(masses: Tensor) -> Tensor:
    """Negative log of the share of "no answer" among all spans of a view's windows and itself."""
    return torch.cat([masses, masses.new_zeros(1)]).logsumexp(dim=0)


def tag_loss(scores: Tensor, readings: Sequence[Reading]) -> Tensor:
    """Cross-entropy of the tags of a view, summed and counted by its tokens of evidence."""
    wanted = torch.full(scores.shape, float(IGNORED))
    for row, reading in enumerate(readings):
        at = reading.window.first
        wanted[row, at : at + len(reading.tags)] = torch.tensor(reading.tags, dtype=torch.float32)
    known = wanted != IGNORED
    loss = nn.functional.binary_cross_entropy_with_logits(scores[known], wanted[known], reduction="sum")
    return loss / max(LEAST_EVIDENCE, int((wanted == 1).sum()))
