"""The span reader's model, and the windows in which it reads.

Beside the beginning and the end of an answer a model may score every token as evidence (Segal et al. 2020,
arXiv:1909.13375): answers of whole sentences, of several cells, and to "why" and "how" have no single short span.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import torch
from torch import Tensor, nn

from retrieval.types import Span

QUESTION_TOKENS = 64
WINDOW_TOKENS = 320  # of question, passage and separators; no training example is longer
OVERLAP_TOKENS = 64
MOST_ANSWER_TOKENS = 40
_FORBIDDEN = -1e4


@dataclass(frozen=True, slots=True)
class Window:
    """The token ids of a question and a part of a passage.

    `offsets[i]` are the (start, end) characters in the passage of the token at `first + i`.
    """

    ids: tuple[int, ...]
    first: int
    offsets: tuple[tuple[int, int], ...]


class SpanModel(nn.Module):
    """An encoder and a linear head with two scores a token, of beginning and of ending an answer.

    With `tags` a second head scores every token as evidence.
    """

    def __init__(self, encoder: Any, *, tags: bool = False) -> None:
        super().__init__()
        self.encoder = encoder
        self.head = nn.Linear(encoder.config.hidden_size, 2)
        self.tag = nn.Linear(encoder.config.hidden_size, 1) if tags else None

    @classmethod
    def from_base(cls, folder: Path, *, tags: bool = False) -> Self:
        """The encoder in `folder` with heads that have learnt nothing yet, in float32."""
        from transformers import AutoModel

        return cls(
            AutoModel.from_pretrained(
                str(folder),
                dtype=torch.float32,
                attn_implementation="sdpa",
                local_files_only=True,
                # On a CPU dropout doubles the time of a step, and a short training hardly overfits.
                hidden_dropout_prob=0.0,
                attention_probs_dropout_prob=0.0,
            ),
            tags=tags,
        )

    def forward(self, windows: Sequence[Window]) -> tuple[Tensor, Tensor]:
        """Scores [windows, tokens] of beginning and of ending; very low where no answer can be.

        Place 0 is open to both: "no answer".
        """
        return self.pointed(*self.states(windows))

    def pointed(self, states: Tensor, may: Tensor) -> tuple[Tensor, Tensor]:
        """The scores that `forward` returns, computed from the output of `states`."""
        scores = self.head(states).float().masked_fill(~may[..., None], _FORBIDDEN)
        return scores[..., 0], scores[..., 1]

    def tagged(self, states: Tensor, may: Tensor) -> Tensor | None:
        """Log-odds [windows, tokens] that each token is evidence, from the output of `states`; None without tags."""
        if self.tag is None:
            return None
        scores: Tensor = self.tag(states)[..., 0].float().masked_fill(~may, _FORBIDDEN)
        return scores

    def states(self, windows: Sequence[Window]) -> tuple[Tensor, Tensor]:
        """The encoder's output [windows, tokens, hidden], and where an answer may begin or end.

        The second is a mask [windows, tokens]: the passage, and place 0 for "no answer".
        """
        longest = max(len(window.ids) for window in windows)
        ids = torch.zeros(len(windows), longest, dtype=torch.long)
        kinds = torch.zeros_like(ids)
        attention = torch.zeros_like(ids)
        may = torch.zeros(len(windows), longest, dtype=torch.bool)
        for row, window in enumerate(windows):
            size = len(window.ids)
            ids[row, :size] = torch.tensor(window.ids)
            kinds[row, window.first : size] = 1
            attention[row, :size] = 1
            may[row, window.first : window.first + len(window.offsets)] = True
        may[:, 0] = True
        device = self.head.weight.device
        states = self.encoder(
            input_ids=ids.to(device), token_type_ids=kinds.to(device), attention_mask=attention.to(device)
        ).last_hidden_state
        return states, may.to(device)


def windows_of(tokenizer: Any, question: str, passage: str) -> list[Window]:
    """Splits a passage into overlapping windows, each after the question, as the model's input.

    Args:
        tokenizer: A `tokenizers.Tokenizer` of the BERT kind, without truncation.
        question: Cut after `QUESTION_TOKENS`.
        passage: Any length; one window when it has few tokens, none when it has none.
    """
    asked = tokenizer.encode(question, add_special_tokens=False).ids[:QUESTION_TOKENS]
    encoded = tokenizer.encode(passage, add_special_tokens=False)
    opening, separator = tokenizer.token_to_id("[CLS]"), tokenizer.token_to_id("[SEP]")
    head = (opening, *asked, separator)
    room = WINDOW_TOKENS - len(head) - 1
    found, at = [], 0
    while at < len(encoded.ids):
        end = min(at + room, len(encoded.ids))
        found.append(Window((*head, *encoded.ids[at:end], separator), len(head), tuple(encoded.offsets[at:end])))
        if end == len(encoded.ids):
            break
        at = end - OVERLAP_TOKENS
    return found


def best_spans(
    starts: Tensor, ends: Tensor, window: Window, pieces: Sequence[Span]
) -> list[tuple[int, int, float] | None]:
    """The likeliest answer within each piece of a passage, as one window shows it.

    Args:
        starts: [tokens] of the window; place 0 is "no answer".
        ends: [tokens].
        window: Tells which characters of the passage a token has.
        pieces: Spans of the passage's characters.

    Returns:
        For each piece its first and last place in the window and the difference of the log-odds: above 0 an answer is
        likelier than none. None where the window shows no token of the piece.
    """
    none = float(starts[0] + ends[0])
    sums = starts[:, None] + ends[None, :]
    allowed = torch.ones_like(sums, dtype=torch.bool).triu().tril(MOST_ANSWER_TOKENS - 1)
    sums = sums.masked_fill(~allowed, 4 * _FORBIDDEN)
    found: list[tuple[int, int, float] | None] = []
    for first, end in _places_of(window, pieces):
        if first >= end:
            found.append(None)
            continue
        inside = sums[first:end, first:end]
        start, stop = divmod(int(inside.argmax()), end - first)
        found.append((first + start, first + stop, float(inside[start, stop]) - none))
    return found


def most_evidence(tags: Tensor, window: Window, pieces: Sequence[Span]) -> list[float | None]:
    """The largest log-odds of evidence within each piece of a passage; None where the window shows no token of it.

    Args:
        tags: [tokens] of the window, as `SpanModel.tagged` gives them.
        window: Tells which characters of the passage a token has.
        pieces: Spans of the passage's characters.
    """
    return [float(tags[first:end].max()) if first < end else None for first, end in _places_of(window, pieces)]


def _places_of(window: Window, pieces: Sequence[Span]) -> list[tuple[int, int]]:
    """For each piece the window's places `first` to `end` whose tokens lie inside it; none where `first >= end`."""
    begins = [start for start, _ in window.offsets]
    stops = [end for _, end in window.offsets]
    return [
        (bisect_left(begins, piece.start_char) + window.first, bisect_right(stops, piece.end_char) + window.first)
        for piece in pieces
    ]


def best_span(starts: Tensor, ends: Tensor) -> tuple[int, int, float]:
    """First and last token of the likeliest answer of one window, and how much likelier it is than none.

    Args:
        starts: [tokens]; place 0 is "no answer".
        ends: [tokens].

    Returns:
        Places in the window and the difference of the log-odds: above 0 an answer is likelier than none.
    """
    none = float(starts[0] + ends[0])
    size = len(starts)
    sums = starts[:, None] + ends[None, :]
    allowed = torch.ones(size, size, dtype=torch.bool, device=starts.device).triu().tril(MOST_ANSWER_TOKENS - 1)
    allowed[0] = False
    sums = sums.masked_fill(~allowed, 4 * _FORBIDDEN)
    start, end = divmod(int(sums.argmax()), size)
    return start, end, float(sums[start, end]) - none
