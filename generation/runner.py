"""One step of the model: a ragged batch in, one new token per finished row out."""

from collections.abc import Sequence

import torch
from torch import Tensor

from generation.attention import Row
from generation.kv_cache import KVCache
from generation.sampling import sample
from generation.scheduler import Work
from generation.sequence import SequenceState
from generation.step import DeviceLost, Sample
from generation.weights import LoadedModel


class ModelRunner:
    """Runs the model on the calling thread. Rows of a step do not see each other."""

    def __init__(self, loaded: LoadedModel, *, vocab_size: int) -> None:
        """Take a loaded model.

        Args:
            loaded: The model, its attention already ours.
            vocab_size: Logits from this id on belong to no token (padded rows of the output matrix).
        """
        self._model = loaded.model
        self._device = loaded.device
        self._vocab_size = vocab_size
        self.cache = KVCache(
            layers=loaded.layers,
            kv_heads=loaded.kv_heads,
            head_dim=loaded.head_dim,
            capacity_tokens=loaded.kv_capacity_tokens,
            dtype=loaded.dtype,
            device=loaded.device,
        )

    def allocate(self, sequence: SequenceState) -> None:
        """Make room for a sequence's keys and values.

        Raises:
            RuntimeError: the device is out of memory.
        """
        self.cache.allocate(sequence, sequence.reserved)

    def release(self, sequence: SequenceState) -> None:
        """Give a sequence's room back. Idempotent."""
        self.cache.release(sequence)

    @torch.inference_mode()
    def run(self, plan: Sequence[Work[SequenceState]]) -> list[Sample]:
        """Feed the plan's tokens in one forward pass and draw where a row is complete.

        Nothing but cache rows past `computed` is changed, so a step that failed can be run again.

        Raises:
            DeviceLost: the accelerator reported an error that later calls would meet again.
        """
        try:
            return self._sample(plan, self._forward(plan))
        except torch.AcceleratorError as error:
            raise DeviceLost("the accelerator failed") from error

    def _sample(self, plan: Sequence[Work[SequenceState]], logits: Tensor) -> list[Sample]:
        sampled = [work.sequence for work in plan if work.sampled]
        if not sampled:
            return []
        # amax carries NaN; -inf alone means that nothing can be drawn
        finite = logits.amax(dim=-1).isfinite().tolist()
        draws = [
            sample(row, sequence.request.sampling, seed=sequence.seed, position=sequence.position)
            for row, sequence, usable in zip(logits, sampled, finite, strict=True)
            if usable
        ]
        tokens = iter(torch.stack(draws).tolist() if draws else [])
        return [
            Sample(sequence, next(tokens) if usable else None) for sequence, usable in zip(sampled, finite, strict=True)
        ]

    def _forward(self, plan: Sequence[Work[SequenceState]]) -> Tensor:
        """[rows, vocab_size] float32: the logits after the last token of each row to be sampled."""
        ids: list[int] = []
        positions: list[int] = []
        last: list[int] = []
        rows: list[Row] = []
        for work in plan:
            past, start = work.sequence.computed, len(ids)
            ids += work.sequence.next_ids(work.tokens)
            positions += range(past, past + work.tokens)
            rows.append(Row(start, len(ids), past, self.cache.slab(work.sequence)))
            if work.sampled:
                last.append(len(ids) - 1)
        output = self._model(
            input_ids=torch.tensor([ids], device=self._device),
            position_ids=torch.tensor([positions], device=self._device),
            use_cache=False,
            past_key_values=None,
            logits_to_keep=torch.tensor(last, dtype=torch.long, device=self._device),
            ragged_rows=rows,
        )
        logits: Tensor = output.logits[0, :, : self._vocab_size].float()
        return logits
