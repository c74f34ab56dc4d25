"""The encoder that points and tags, scored for training: in batches of windows of like length, with a graph."""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn

from retrieval.span_model import MOST_ANSWER_TOKENS, SpanModel, Window
from retrieval.weights import CUDA_BATCH_TOKENS

READ_TOKENS = 1024  # of one batch of windows on a CPU, padding included
_LOWEST = -1e4
_RARE = -3.5  # log-odds of a token to be evidence, before anything is learnt


class Scores(NamedTuple):
    """Of every token of several windows, each [windows, tokens]: beginning, ending, being evidence (log-odds)."""

    starts: Tensor
    ends: Tensor
    tags: Tensor


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
        lengths = [len(window.ids) for window in windows]
        device = self.head.weight.device.type
        batches = _batches(lengths, most=READ_TOKENS if device == "cpu" else CUDA_BATCH_TOKENS)
        read = []
        for batch in batches:
            with torch.autocast(device, dtype=torch.bfloat16, enabled=half):
                states, may = self.states([windows[place] for place in batch])
            states = states.float()
            starts, ends = self.pointed(states, may)
            tags = self.tagged(states, may)
            assert tags is not None, "an evidence model tags"
            together = torch.stack([starts, ends, tags], dim=1)  # [batch, 3, tokens]
            read.append(nn.functional.pad(together, (0, max(lengths) - together.shape[-1]), value=_LOWEST))
        rows = [0] * len(windows)
        for row, place in enumerate(place for batch in batches for place in batch):
            rows[place] = row
        scores = torch.cat(read).index_select(0, torch.tensor(rows, device=self.head.weight.device))
        return Scores(scores[:, 0], scores[:, 1], scores[:, 2])


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


def _batches(lengths: Sequence[int], *, most: int) -> list[list[int]]:
    """Places of windows of like length, longest first, each batch within `most` padded tokens."""
    found: list[list[int]] = []
    for place in sorted(range(len(lengths)), key=lambda place: -lengths[place]):
        if found and (len(found[-1]) + 1) * lengths[found[-1][0]] <= most:
            found[-1].append(place)
        else:
            found.append([place])
    return found
