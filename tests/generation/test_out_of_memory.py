"""An out-of-memory device fails only the sequence it happens to: FAULTS.md C5, injected ×100."""

from dataclasses import dataclass
from typing import Any

import pytest
import torch

from generation.config import EngineConfig
from generation.engine import LocalEngine
from generation.errors import EngineOutOfMemory, EngineStopped, GenerationError, failure
from generation.runner import ModelRunner
from generation.types import FinishReason, ModelInfo
from tests.generation.fakes import LetterTokenizer, RecordingObserver, read, request
from tests.generation.stage import loaded
from tests.generation.tiny import VOCAB


@dataclass
class Allocator:
    """Called before each forward pass; refuses from the `after`-th on, until `refusals` were refused."""

    after: int = 0
    refusals: int = 0

    def __call__(self, *_: Any) -> None:
        if self.refusals == 0:
            return
        if self.after:
            self.after -= 1
            return
        self.refusals -= 1
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 MiB at a secret place")


async def test_c5_a_hundred_times_out_of_memory_in_prefill_and_decode_costs_a_hundred_requests_and_no_other() -> None:
    model, allocator = loaded(64), Allocator()
    hook = model.model.register_forward_pre_hook(allocator)
    engine = LocalEngine(
        ModelRunner(model, vocab_size=VOCAB, block_tokens=4),
        LetterTokenizer(),
        EngineConfig(model="tiny", speculation=False),
        info=ModelInfo(model="tiny", revision="0", context_window=256, device="cpu", dtype="float32"),
        eos_ids=frozenset(),
        vocab_size=VOCAB,
    )
    try:
        asked = request(max_tokens=4, prompt=range(5, 25))
        _, expected = await read(engine.submit(asked, observer=RecordingObserver()))
        for number in range(100):
            allocator.after, allocator.refusals = number % 4, 2  # the step, and the same step for this row alone
            observer = RecordingObserver()
            _, failed = await read(engine.submit(asked, observer=observer))
            assert (failed.finish_reason, failed.error) == (FinishReason.ERROR, str(EngineOutOfMemory()))
            assert observer.wait().generated_tokens == number % 4, "what was generated before is on the bill"
            _, next_one = await read(engine.submit(asked, observer=RecordingObserver()))
            assert next_one.token_ids == expected.token_ids
        assert engine.alive()
        stats = engine.stats()
        assert (stats.running, stats.waiting, stats.used_blocks) == (0, 0, 0)
    finally:
        engine.close()
        hook.remove()


@pytest.mark.parametrize("kind", [EngineOutOfMemory, EngineStopped])
def test_a_completions_error_text_maps_back_to_its_exception_type(kind: type[GenerationError]) -> None:
    assert type(failure(str(kind()))) is kind
    assert type(failure("The model failed on this sequence.")) is GenerationError
