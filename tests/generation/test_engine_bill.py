"""The engine's counters equal the sum of its sequences' bills, also after cancellation, preemption and failure."""

import random
from collections.abc import Callable, Sequence

from hypothesis import example, given, settings
from hypothesis import strategies as st

from generation.prefix import BlockKey
from generation.sequence import SequenceState
from generation.step import Sample
from tests.generation.fakes import Plan, RecordingObserver, ScriptedRunner, request, scripted_engine, wait_until


class CrampedRunner(ScriptedRunner):
    """Finds some of a prompt at random, has room for little, and fails at random."""

    def __init__(self, *, seed: int, room: int, failing: bool) -> None:
        super().__init__("abcdefghij" * 5)
        self._chance = random.Random(seed)
        self._room = room
        self._failing = failing
        self.grown: dict[int, int] = {}

    def find(self, keys: Sequence[BlockKey]) -> int:
        return 0

    def allocate(self, sequence: SequenceState, tokens: int) -> int | None:
        if self.grown and sum(self.grown.values()) + tokens > self._room:
            return None
        self.grown[id(sequence)] = tokens
        return self._chance.choice([0, 0, self._chance.randrange(sequence.position)])

    def grow(self, sequence: SequenceState, tokens: int) -> bool:
        others = sum(held for other, held in self.grown.items() if other != id(sequence))
        if others and others + tokens > self._room:
            return False
        self.grown[id(sequence)] = tokens
        return True

    def deallocate(self, sequence: SequenceState) -> None:
        self.grown.pop(id(sequence), None)

    def run(self, plan: Plan, *, meanwhile: Callable[[], None]) -> list[Sample]:
        if self._failing and self._chance.random() < 0.05:
            raise RuntimeError("the model failed")
        return super().run(plan, meanwhile=meanwhile)


@settings(deadline=None, max_examples=40)
@given(
    seed=st.integers(0, 2**32),
    room=st.integers(30, 120),
    failing=st.booleans(),
    asked=st.lists(st.tuples(st.integers(1, 60), st.integers(1, 30)), min_size=1, max_size=12),
    leaving=st.floats(0, 1),
    overlaps=st.booleans(),
)
@example(seed=1, room=60, failing=False, asked=[(20, 30)] * 6, leaving=0.0, overlaps=False)
def test_the_counters_are_the_sum_of_the_bills(
    seed: int, room: int, failing: bool, asked: list[tuple[int, int]], leaving: float, overlaps: bool
) -> None:
    """Invariant 4, at the engine: exactly, however often a sequence loses its room."""
    chance = random.Random(seed)
    runner = CrampedRunner(seed=seed, room=room, failing=failing)
    runner.overlaps = overlaps
    engine = scripted_engine(runner, max_running=4, step_tokens=16, reader_grace_s=0.0)
    observers = [RecordingObserver() for _ in asked]
    streams = [
        engine.submit(request(str(number), prompt=range(1, prompt + 1), max_tokens=most), observer=observer)
        for number, ((prompt, most), observer) in enumerate(zip(asked, observers, strict=True))
    ]
    for stream in streams:
        if chance.random() < leaving:
            stream.close()
    bills = [observer.wait() for observer in observers]
    wait_until(lambda: engine.stats().running + engine.stats().waiting == 0)
    engine.close()

    stats = engine.stats()
    assert stats.decode_tokens == sum(bill.generated_tokens for bill in bills)
    assert stats.prompt_tokens == sum(bill.prompt_tokens - bill.cached_tokens for bill in bills)
    assert stats.requests == len(asked)
    assert all(len(bill.text) == bill.generated_tokens for bill in bills if bill.error is None), "a letter a token"


def test_the_cramped_engine_of_this_test_does_preempt_and_recompute() -> None:
    """It would prove little if nothing ever gave way."""
    engine = scripted_engine(
        CrampedRunner(seed=1, room=60, failing=False), max_running=4, step_tokens=16, reader_grace_s=0.0
    )
    observers = [RecordingObserver() for _ in range(6)]
    for number, observer in enumerate(observers):
        engine.submit(request(str(number), prompt=range(1, 21), max_tokens=30), observer=observer)
    for observer in observers:
        observer.wait()
    engine.close()

    stats = engine.stats()
    assert stats.preemptions > 0
    assert stats.recomputed_tokens > 0
    assert stats.prefill_tokens != stats.prompt_tokens
