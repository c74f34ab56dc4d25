"""Supervised engines that die when a test says so."""

import time
from collections.abc import Callable, Iterator, Sequence

import pytest

from generation.backoff import Backoff
from generation.errors import ContextLengthExceeded
from generation.ports import Engine, Observer, Stream
from generation.supervisor import SupervisedEngine
from generation.types import EngineStats, GenerationRequest, ModelInfo

QUICK = Backoff(first_s=0.01, longest_s=0.05)


IDLE = EngineStats(
    waiting=0, running=0, capacity=8, prefill_tokens=0, decode_tokens=0, requests=0, cancelled=0, block_tokens=16
)


def free_nothing() -> None:
    """Leave the garbage alone: in a process with thousands of tests behind it, a collection takes many seconds."""


class FakeEngine:
    """An engine whose death and counts a test decides."""

    def __init__(self, counts: EngineStats = IDLE, *, window: int = 64) -> None:
        self.counts = counts
        self.dead = False
        self.closed = 0
        self.looks_at_the_dead = 0
        self.fails_to_close = False
        self.info = ModelInfo(model="fake", revision="0", context_window=window, device="cpu", dtype="float32")

    def submit(self, request: GenerationRequest, *, observer: Observer) -> Stream:
        raise ContextLengthExceeded(prompt_tokens=1, max_tokens=1, context_window=1)

    def cached_tokens(self, prompt: Sequence[int], *, salt: str) -> int:
        return 0

    def stats(self) -> EngineStats:
        return self.counts

    def alive(self) -> bool:
        self.looks_at_the_dead += self.dead and not self.closed
        return not self.dead and not self.closed

    def close(self) -> None:
        self.closed += 1
        if self.fails_to_close:
            raise RuntimeError("the device does not answer")


class Factory:
    """Makes the given engines in turn, the last one over and over; an exception in their place is raised."""

    def __init__(self, *made: Engine | BaseException) -> None:
        self._made = [*made]
        self.calls: list[float] = []

    def __call__(self) -> Engine:
        self.calls.append(time.monotonic())
        made = self._made.pop(0) if len(self._made) > 1 else self._made[0]
        if isinstance(made, BaseException):
            raise made
        return made


@pytest.fixture
def supervise() -> Iterator[Callable[..., SupervisedEngine]]:
    """Make supervised engines that are closed after the test."""
    supervised: list[SupervisedEngine] = []

    def start(
        factory: Callable[[], Engine],
        backoff: Backoff = QUICK,
        free: Callable[[], object] = free_nothing,
        healthy_s: float = 60.0,
    ) -> SupervisedEngine:
        supervised.append(SupervisedEngine(factory, backoff=backoff, healthy_s=healthy_s, free=free))
        return supervised[-1]

    yield start
    for engine in supervised:
        engine.close()
