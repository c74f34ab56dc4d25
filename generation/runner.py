"""One step of the model: a ragged batch in, new tokens for the finished rows out."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial

import torch
from torch import Tensor

from generation.batched_draws import BatchedDraws
from generation.constraints import TokenConstraint
from generation.draws import Draw, SamplingRow, draw_rows
from generation.graphs import Capture, DecodeGraphs
from generation.memory import Layout, Pages, Slabs, StepInputs, TokenRun, memory_of
from generation.paged_index import Upload, upload
from generation.prefix import BlockKey
from generation.scheduler import ScheduledTokens
from generation.sequence import SequenceState
from generation.step import BlockCounts, DeviceLost, OutOfMemory, Sample
from generation.types import ServingPath, TokenLogprob
from generation.weights import LoadedModel

DrawRows = Callable[[Tensor, Sequence[SamplingRow]], list[Draw]]


class ModelRunner:
    """Runs the model on the calling thread. Rows of a step do not affect each other."""

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
        capture: Capture | None = None,
        upload: Upload = upload,
    ) -> None:
        """Take a loaded model.

        Args:
            loaded: The model, its attention already ours.
            vocab_size: Logits from this id on belong to no token (padded rows of the output matrix).
            eos_ids: Nothing is drawn after these.
            block_tokens: Tokens that are cached, or not, together.
            prefix_cache: Reuse the blocks of earlier sequences with the same prefix.
            layout: Of keys and values; None takes pages on a GPU and slabs on a CPU.
            poison: Fill fresh room with NaN (for tests).
            capture: Turns decode steps over pages into graphs, see `generation.graphs`; None runs every
                step kernel by kernel.
            upload: Copies a step's numbers to the device, for pages.
        """
        self._model = loaded.model
        self._vocab_size = vocab_size
        self._eos_ids = eos_ids
        self._token_bytes = loaded.token_bytes
        self._on_cuda = loaded.device.type == "cuda"
        # On a CPU, where nothing is launched or waited for, rows one by one are the faster ones.
        self._draw_rows: DrawRows | BatchedDraws = draw_rows if loaded.device.type == "cpu" else BatchedDraws()
        self._memory = memory_of(
            loaded, block_tokens=block_tokens, layout=layout, prefix_cache=prefix_cache, poison=poison, upload=upload
        )
        self.cache = self._memory.cache
        self._graphs: DecodeGraphs | None = None
        if capture is not None and isinstance(self._memory, Pages):
            self._graphs = DecodeGraphs(self._feed, self._memory.cache.tensors, capture, upload=upload)

    @torch.inference_mode()
    def prepare(self, *, rows: int, tokens: int) -> None:
        """Capture the graphs of steps of up to `rows` rows of up to `tokens` tokens; nothing without graphs.

        Done before the first sequence, for a capture takes a tenth of a second, and what other threads do on the
        device meanwhile can break it.
        """
        if self._graphs is not None:
            self._graphs.prepare(rows=rows, tokens=tokens)

    @property
    def replays(self) -> bool:
        """Whether steps that only decode are replayed as CUDA graphs. Safe from any thread."""
        return self._graphs is not None and self._graphs.why_off is None

    def path(self, *, speculation: bool, unused_gpu: str | None = None) -> ServingPath:
        """What computes the steps now. Safe from any thread.

        Args:
            speculation: Whether tokens are drafted, which is not the runner's to know.
            unused_gpu: A sentence on why a GPU of this machine is not used.
        """
        whys = [unused_gpu, None if self._graphs is None else self._graphs.why_off]
        if isinstance(self._memory, Slabs):
            whys.append(self._memory.why)
        return ServingPath(
            layout="pages" if isinstance(self._memory, Pages) else "slabs",
            kernels="triton" if isinstance(self._memory, Pages) and self._on_cuda else "torch",
            graphs=self.replays,
            speculation=speculation,
            slower=tuple(why for why in whys if why is not None),
        )

    @property
    def block_tokens(self) -> int:
        """See `scheduler.KVCacheView.block_tokens`."""
        return self.cache.pool.block_tokens

    def match(self, sequence: SequenceState) -> int:
        """See `scheduler.KVCacheView.match`."""
        return self.cache.match(sequence.keys, limit=_findable(sequence))

    def allocate(self, sequence: SequenceState, tokens: int) -> int | None:
        """See `scheduler.KVCacheView.allocate`.

        Raises:
            RuntimeError: the device is out of memory.
        """
        return self.cache.allocate(sequence, sequence.keys, tokens=tokens, limit=_findable(sequence))

    def grow(self, sequence: SequenceState, tokens: int) -> bool:
        """See `scheduler.KVCacheView.grow`.

        Raises:
            RuntimeError: the device is out of memory.
        """
        return self.cache.grow(sequence, tokens)

    def deallocate(self, sequence: SequenceState) -> None:
        """See `scheduler.KVCacheView.deallocate`."""
        self.cache.deallocate(sequence)

    def find(self, keys: Sequence[BlockKey]) -> int:
        """See `step.Runner.find`."""
        return self.cache.match(keys, limit=len(keys) * self.block_tokens)

    def offer(self, sequence: SequenceState) -> None:
        """See `step.Runner.offer`."""
        self.cache.offer(sequence, sequence.keys, computed=sequence.computed)

    def distrust(self, sequence: SequenceState) -> None:
        """See `step.Runner.distrust`."""
        self.cache.discard(sequence.keys)

    def shed(self, share: float) -> int:
        """See `step.Runner.shed`."""
        return self.cache.shed(share)

    def blocks(self) -> BlockCounts:
        """See `step.Runner.blocks`."""
        pool = self.cache.pool
        return BlockCounts(
            free=pool.free,
            used=pool.used,
            cached=pool.cached,
            block_tokens=pool.block_tokens,
            block_bytes=pool.block_tokens * self._token_bytes,
        )

    @property
    def overlaps(self) -> bool:
        """See `step.Runner.overlaps`."""
        return isinstance(self._draw_rows, BatchedDraws)

    @torch.inference_mode()
    def run(
        self, plan: Sequence[ScheduledTokens[SequenceState]], *, meanwhile: Callable[[], None] | None = None
    ) -> list[Sample]:
        """Feed the plan's tokens in one forward pass and draw where a row is complete.

        Nothing but cache rows past `computed` is changed, so a step that failed can be run again. A GPU is
        given all of the forward pass before anything is asked of it: masks of constraints are made,
        and `meanwhile` is done, while it works.

        Raises:
            DeviceLost: the accelerator reported an error that later calls would meet again.
            OutOfMemory: there is no room for so much at once.
        """
        draw: DrawRows = self._draw_rows
        if isinstance(draw, BatchedDraws):
            draw = partial(draw, meanwhile=meanwhile)
        try:
            return _draw(plan, self._forward(plan), eos_ids=self._eos_ids, draw_rows=draw)
        except torch.AcceleratorError as error:
            if self._graphs is not None:
                # whether or not it was a graph's: the next engine does without
                self._graphs.give_up("The GPU failed while CUDA graphs served; the log says more.")
            raise DeviceLost("the accelerator failed") from error
        except (RuntimeError, MemoryError) as error:
            if not _is_out_of_memory(error):
                raise
            if torch.cuda.is_available():
                torch.cuda.empty_cache()  # fragments in torch's cache may suffice together
            raise OutOfMemory from error

    def _forward(self, plan: Sequence[ScheduledTokens[SequenceState]]) -> Tensor:
        """[rows, vocab_size] float32: the logits after each sampled row's last known token and after its drafts."""
        ids: list[int] = []
        kept: list[int] = []
        spans: list[TokenRun] = []
        for work in plan:
            start = len(ids)
            ids += work.sequence.next_ids(work.tokens)
            ids += work.drafts
            spans.append((work.sequence, start, len(ids)))
            if work.sampled:
                kept += range(len(ids) - len(work.drafts) - 1, len(ids))

        def eager() -> Tensor:
            return self._feed(self._memory.inputs(spans, ids, kept))

        # As many tokens as rows, and logits after each: a step that only decodes.
        if self._graphs is not None and isinstance(self._memory, Pages) and len(ids) == len(kept) == len(plan):
            return self._graphs.logits(ids, self._memory.rows(spans), eager=eager)
        return eager()

    def _feed(self, inputs: StepInputs) -> Tensor:
        """[n, vocab_size] float32: the logits after the tokens that are kept."""
        output = self._model(
            input_ids=inputs.ids,
            position_ids=inputs.positions,
            use_cache=False,
            past_key_values=None,
            logits_to_keep=inputs.kept,
            ragged_batch=inputs.batch,
        )
        logits: Tensor = output.logits[0, :, : self._vocab_size].float()
        return logits


def _is_out_of_memory(error: BaseException) -> bool:
    """The allocator of an accelerator has its own exception type, that of the CPU has none."""
    return isinstance(error, torch.OutOfMemoryError | MemoryError) or "can't allocate memory" in str(error)


@dataclass(slots=True, eq=False)
class _Candidate:
    """A sequence whose next tokens are being drawn, one position after the other while its drafts hold."""

    work: ScheduledTokens[SequenceState]
    first_row: int
    tokens: list[int] = field(default_factory=list)
    logprobs: list[TokenLogprob | None] = field(default_factory=list)
    abstention: float | None = None
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
        """The inputs of the next draw other than the logits."""
        sequence = self.work.sequence
        constraint = self.constraint if self.constraint is not None else sequence.constraint
        return SamplingRow(
            params=sequence.request.sampling,
            seed=sequence.seed,
            position=sequence.position + len(self.tokens),
            prompt=sequence.request.prompt,
            output=[*sequence.generated, *self.tokens] if self.tokens else sequence.generated,
            mask=None if constraint is None else constraint.mask(),
            abstention=None if sequence.generated or self.tokens else sequence.request.abstention,
        )

    def take(self, draw: Draw, *, eos_ids: frozenset[int]) -> bool:
        """Store the drawn token; returns whether the next row of logits follows that token."""
        drafts, token = self.work.drafts, draw.token
        if token is None:
            return False
        expected = drafts[len(self.tokens)] if len(self.tokens) < len(drafts) else None
        if not self.tokens:
            self.abstention = draw.abstention
        self.tokens.append(token)
        self.logprobs.append(draw.logprob)
        if token != expected or token in eos_ids:
            return False
        if self.constraint is not None:
            self.constraint.advance(token)
        return True


def _draw(
    plan: Sequence[ScheduledTokens[SequenceState]], logits: Tensor, *, eos_ids: frozenset[int], draw_rows: DrawRows
) -> list[Sample]:
    """Draw for every sampled row, and for its drafts as long as each drawn token equals the draft.

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
            candidate for candidate, draw in zip(active, draws, strict=True) if candidate.take(draw, eos_ids=eos_ids)
        ]
    return [
        Sample(
            candidate.work.sequence,
            tuple(candidate.tokens),
            tuple(candidate.logprobs),
            abstention=candidate.abstention,
        )
        for candidate in candidates
    ]


def _findable(sequence: SequenceState) -> int:
    """Tokens that may come from the cache: all but the last, whose logits are needed."""
    return sequence.position - 1
