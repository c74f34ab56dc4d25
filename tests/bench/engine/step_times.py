"""Times the steps of our engine: those its speculator observes, and those of the runner and of the model."""

import time
from collections.abc import Callable, Sequence

from torch import nn

from generation.config import EngineConfig
from generation.engine import LocalEngine
from generation.graphs import CudaCapture
from generation.runner import ModelRunner
from generation.scheduler import ScheduledTokens
from generation.sequence import SequenceState
from generation.speculation import SpeculationPolicy
from generation.speculator import Speculator
from generation.step import Sample
from generation.tokenizer import ChatTokenizer
from generation.weights import load_model
from tests.bench.subjects import Footnote


class Spans:
    """When calls began (`time.perf_counter`) and how many seconds each took."""

    def __init__(self) -> None:
        self._spans: list[tuple[float, float]] = []

    def add(self, began: float) -> None:
        """Add a call that ends now."""
        self._spans.append((began, time.perf_counter() - began))

    def seconds(self, *, since: float) -> float:
        """Of all calls that began after `since`."""
        return sum(spent for began, spent in self._spans if began > since)


class TimedFootnote(Footnote):
    """Our engine, built of the parts that `LocalEngine.load` takes, two of which take times. It has no constraints."""

    def loader(self, config: EngineConfig, tokenizer: ChatTokenizer) -> Callable[[], LocalEngine]:
        """See `Footnote.loader`."""
        loaded = load_model(config)
        eos_ids = loaded.eos_ids | tokenizer.eos_ids
        vocab_size = min(loaded.vocab_size, tokenizer.vocab_size)
        capture = CudaCapture() if config.cuda_graphs and loaded.device.type == "cuda" else None
        self.speculator = _NotingSpeculator(SpeculationPolicy())
        self.model, self.steps = _timed(loaded.model), Spans()

        def serve() -> LocalEngine:
            runner = _TimedRunner(
                loaded,
                vocab_size=vocab_size,
                eos_ids=eos_ids,
                block_tokens=config.block_tokens,
                prefix_cache=config.prefix_cache,
                capture=capture,
            )
            runner.spans = self.steps
            return LocalEngine(
                runner,
                tokenizer,
                config,
                info=loaded.info,
                eos_ids=eos_ids,
                vocab_size=vocab_size,
                speculation=self.speculator if config.speculation else None,
            )

        return serve


class _NotingSpeculator(Speculator):
    """Notes (rows, seconds) of each step that only decodes."""

    def __init__(self, policy: SpeculationPolicy) -> None:
        super().__init__(policy)
        self.observed: list[tuple[int, float]] = []

    def observe(self, *, rows: int, seconds: float) -> None:
        """See `Speculator.observe`."""
        self.observed.append((rows, seconds))
        super().observe(rows=rows, seconds=seconds)


class _TimedRunner(ModelRunner):
    """Notes each step in `spans`."""

    spans: Spans

    def run(
        self, plan: Sequence[ScheduledTokens[SequenceState]], *, meanwhile: Callable[[], None] | None = None
    ) -> list[Sample]:
        """See `ModelRunner.run`."""
        began = time.perf_counter()
        try:
            return super().run(plan, meanwhile=meanwhile)
        finally:
            self.spans.add(began)


def _timed(model: nn.Module) -> Spans:
    """The model's forward passes from now on."""
    spans, began = Spans(), [0.0]

    def before(*_: object) -> None:
        began[0] = time.perf_counter()

    def after(*_: object) -> None:
        spans.add(began[0])

    model.register_forward_pre_hook(before)
    model.register_forward_hook(after)
    return spans
