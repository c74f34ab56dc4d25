"""One step of the model: a ragged batch in, new tokens for the finished rows out."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from generation.constraints import TokenConstraint
from generation.draws import SamplingRow, draw_rows
from generation.memory import Layout, memory_of
from generation.prefix import BlockKey
from generation.scheduler import Work
from generation.sequence import SequenceState
from generation.step import BlockCounts, DeviceLost, Sample
from generation.types import TokenLogprob
from generation.weights import LoadedModel


class ModelRunner:
    """Runs the model on the calling thread. Rows of a step do not see each other."""

    def __init__(
        self,
        loaded: LoadedModel,
        *,
        vocab_size: int,
        eos_ids: frozenset[int] = frozenset(),
        block_tokens: int = 16,
        prefix_cache: bool = True,
        layout: Layout | None = None,
        poison: bool = False,
    ) -> None:
        """Take a loaded model.

        Args:
            loaded: The model, its attention already ours.
            vocab_size: Logits from this id on belong to no token (padded rows of the output matrix).
            eos_ids: Nothing is drawn after these.
            block_tokens: Tokens that are cached, or not, together.
            prefix_cache: Find what earlier sequences with the same beginning computed.
            layout: Of keys and values; None takes pages on a GPU and slabs on a CPU.
            poison: Fill fresh room with NaN (for tests).
        """
        self._model = loaded.model
        self._device = loaded.device
        self._vocab_size = vocab_size
        self._eos_ids = eos_ids
        self._memory = memory_of(
            loaded, block_tokens=block_tokens, layout=layout, prefix_cache=prefix_cache, poison=poison
        )
        self.cache = self._memory.cache

    @property
    def block_tokens(self) -> int:
        """See `scheduler.Rooms.block_tokens`."""
        return self.cache.pool.block_tokens

    def match(self, sequence: SequenceState) -> int:
        """See `scheduler.Rooms.match`."""
        return self.cache.match(sequence.keys, limit=_findable(sequence))

    def begin(self, sequence: SequenceState, tokens: int) -> int | None:
        """See `scheduler.Rooms.begin`.

        Raises:
            RuntimeError: the device is out of memory.
        """
        return self.cache.begin(sequence, sequence.keys, tokens=tokens, limit=_findable(sequence))

    def grow(self, sequence: SequenceState, tokens: int) -> bool:
        """See `scheduler.Rooms.grow`.

        Raises:
            RuntimeError: the device is out of memory.
        """
        return self.cache.grow(sequence, tokens)

    def release(self, sequence: SequenceState) -> None:
        """See `scheduler.Rooms.release`."""
        self.cache.release(sequence)

    def find(self, keys: Sequence[BlockKey]) -> int:
        """See `step.Runner.find`."""
        return self.cache.match(keys, limit=len(keys) * self.block_tokens)

    def offer(self, sequence: SequenceState) -> None:
        """See `step.Runner.offer`."""
        self.cache.offer(sequence, sequence.keys, computed=sequence.computed)

    def distrust(self, sequence: SequenceState) -> None:
        """See `step.Runner.distrust`."""
        self.cache.discard(sequence.keys)

    def blocks(self) -> BlockCounts:
        """See `step.Runner.blocks`."""
        pool = self.cache.pool
        return BlockCounts(free=pool.free, used=pool.used, cached=pool.cached, block_tokens=pool.block_tokens)

    @torch.inference_mode()
    def run(self, plan: Sequence[Work[SequenceState]]) -> list[Sample]:
        """Feed the plan's tokens in one forward pass and draw where a row is complete.

        Nothing but cache rows past `computed` is changed, so a step that failed can be run again.

        Raises:
            DeviceLost: the accelerator reported an error that later calls would meet again.
        """
        try:
            return _draw(plan, self._forward(plan), eos_ids=self._eos_ids)
        except torch.AcceleratorError as error:
            raise DeviceLost("the accelerator failed") from error

    def _forward(self, plan: Sequence[Work[SequenceState]]) -> Tensor:
        """[rows, vocab_size] float32: the logits after each sampled row's last known token and after its drafts."""
        ids: list[int] = []
        positions: list[int] = []
        kept: list[int] = []
        spans: list[tuple[SequenceState, int, int]] = []
        for work in plan:
            past, start, count = work.sequence.computed, len(ids), work.tokens + len(work.drafts)
            ids += work.sequence.next_ids(work.tokens)
            ids += work.drafts
            positions += range(past, past + count)
            spans.append((work.sequence, start, len(ids)))
            if work.sampled:
                kept += range(len(ids) - len(work.drafts) - 1, len(ids))
        packed = torch.tensor(ids + positions + kept, device=self._device)  # one copy to the device
        count = len(ids)
        output = self._model(
            input_ids=packed[None, :count],
            position_ids=packed[None, count : 2 * count],
            use_cache=False,
            past_key_values=None,
            logits_to_keep=packed[2 * count :],
            ragged_batch=self._memory.batch(spans),
        )
        logits: Tensor = output.logits[0, :, : self._vocab_size].float()
        return logits


@dataclass(slots=True, eq=False)
class _Candidate:
    """A sequence whose next tokens are being drawn, one position after the other while its drafts hold."""

    work: Work[SequenceState]
    first_row: int
    tokens: list[int] = field(default_factory=list)
    logprobs: list[TokenLogprob | None] = field(default_factory=list)
    constraint: TokenConstraint | None = field(init=False)

    def __post_init__(self) -> None:
        constraint = self.work.sequence.constraint
        # A copy: the sequence's own moves when the tokens are committed.
        self.constraint = None if constraint is None or not self.work.drafts else constraint.clone()

    @property
    def row(self) -> int:
        """The row of logits that the next draw is from."""
        return self.first_row + len(self.tokens)

    def sampling_row(self) -> SamplingRow:
        """What the next draw depends on beside the logits."""
        sequence = self.work.sequence
        constraint = self.constraint if self.constraint is not None else sequence.constraint
        return SamplingRow(
            params=sequence.request.sampling,
            seed=sequence.seed,
            position=sequence.position + len(self.tokens),
            prompt=sequence.request.prompt,
            output=[*sequence.generated, *self.tokens] if self.tokens else sequence.generated,
            mask=None if constraint is None else constraint.mask(),
        )

    def take(self, token: int, logprob: TokenLogprob | None, *, eos_ids: frozenset[int]) -> bool:
        """Keep a drawn token; whether the next row of logits is after the very same token."""
        drafts = self.work.drafts
        expected = drafts[len(self.tokens)] if len(self.tokens) < len(drafts) else None
        self.tokens.append(token)
        self.logprobs.append(logprob)
        if token != expected or token in eos_ids:
            return False
        if self.constraint is not None:
            self.constraint.advance(token)
        return True


def _draw(plan: Sequence[Work[SequenceState]], logits: Tensor, *, eos_ids: frozenset[int]) -> list[Sample]:
    """Draw for every sampled row, and on along its drafts while what is drawn is what was drafted.

    Each draw uses the noise of its own position, so the tokens are those that would have been drawn
    one by one (no rejection sampling is needed: a draft that is a point mass is accepted with exactly
    the probability the target gives it).
    """
    candidates: list[_Candidate] = []
    first_row = 0
    for work in plan:
        if work.sampled:
            candidates.append(_Candidate(work, first_row))
            first_row += 1 + len(work.drafts)
    active = candidates
    while active:
        rows_wanted = [candidate.row for candidate in active]
        chosen = logits if len(rows_wanted) == len(logits) else logits[rows_wanted]
        draws = draw_rows(chosen, [candidate.sampling_row() for candidate in active])
        active = [
            candidate
            for candidate, draw in zip(active, draws, strict=True)
            if draw.token is not None and candidate.take(draw.token, draw.logprob, eos_ids=eos_ids)
        ]
    return [
        Sample(candidate.work.sequence, tuple(candidate.tokens), tuple(candidate.logprobs)) for candidate in candidates
    ]


def _findable(sequence: SequenceState) -> int:
    """Tokens that may come from the cache: all but the last, whose output is what is wanted."""
    return sequence.position - 1
