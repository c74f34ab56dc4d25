"""generation.scheduler shares steps out fairly, knowing counts alone."""

import subprocess
import sys
from dataclasses import dataclass

from hypothesis import given, settings
from hypothesis import strategies as st

from generation.scheduler import Scheduler


@dataclass(eq=False)
class Counted:
    """A sequence of counts: a prompt, then outputs, as the engine would keep them."""

    prompt: int
    outputs: int
    computed: int = 0
    generated: int = 0

    @property
    def remaining(self) -> int:
        return self.prompt + self.generated - self.computed

    @property
    def reserved(self) -> int:
        return self.prompt + self.outputs


def scheduler(
    *sequences: Counted, max_running: int = 4, step_tokens: int = 16, capacity_tokens: int = 1000
) -> Scheduler[Counted]:
    made: Scheduler[Counted] = Scheduler(
        max_running=max_running, step_tokens=step_tokens, capacity_tokens=capacity_tokens
    )
    for sequence in sequences:
        made.add(sequence)
    while made.admit():
        pass
    return made


def advance(subject: Scheduler[Counted]) -> list[tuple[Counted, int]]:
    """Plan and carry out one step."""
    plan = subject.plan()
    for work in plan:
        work.sequence.computed += work.tokens
        if work.sampled:
            work.sequence.generated += 1
            if work.sequence.generated == work.sequence.outputs:
                subject.remove(work.sequence)
    subject.check_integrity()
    return [(work.sequence, work.tokens) for work in plan]


def test_the_scheduler_needs_no_torch() -> None:
    program = "import sys, generation.scheduler; sys.exit('torch' in sys.modules or 'numpy' in sys.modules)"

    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


def test_a_long_prompt_is_read_in_chunks_while_others_decode() -> None:
    talking, long = Counted(prompt=1, outputs=9), Counted(prompt=40, outputs=9)
    subject = scheduler(talking, long)

    assert [advance(subject) for _ in range(4)] == [
        [(talking, 1), (long, 15)],
        [(talking, 1), (long, 15)],
        [(talking, 1), (long, 10)],
        [(talking, 1), (long, 1)],
    ]


def test_prompts_are_read_in_order_of_arrival() -> None:
    first, second = Counted(prompt=20, outputs=1), Counted(prompt=20, outputs=1)
    subject = scheduler(first, second)

    assert advance(subject) == [(first, 16)]
    assert advance(subject) == [(first, 4), (second, 12)]


def test_a_sequence_is_sampled_only_when_its_prompt_is_read() -> None:
    subject = scheduler(Counted(prompt=20, outputs=2))

    assert [work.sampled for work in subject.plan()] == [False]
    advance(subject)
    assert [work.sampled for work in subject.plan()] == [True]


def test_admission_stops_at_max_running_and_resumes_when_one_leaves() -> None:
    sequences = [Counted(prompt=1, outputs=2) for _ in range(3)]
    subject = scheduler(*sequences, max_running=2)

    assert subject.running == sequences[:2]
    subject.remove(sequences[0])
    assert subject.admit() is sequences[2]


def test_admission_waits_for_room_in_the_cache_and_nobody_overtakes() -> None:
    big, bigger, small = (Counted(prompt=size, outputs=10) for size in (50, 60, 1))
    subject = scheduler(big, bigger, small, capacity_tokens=100)

    assert subject.running == [big]
    subject.remove(big)
    assert subject.admit() is bigger
    assert subject.admit() is small


def test_a_waiting_sequence_can_leave() -> None:
    first, second = Counted(prompt=1, outputs=1), Counted(prompt=1, outputs=1)
    subject = scheduler(first, second, max_running=1)

    subject.remove(second)

    assert list(subject.waiting) == []
    subject.check_integrity()


@settings(deadline=None)
@given(
    lengths=st.lists(st.tuples(st.integers(1, 60), st.integers(1, 8)), min_size=1, max_size=12),
    max_running=st.integers(1, 5),
    extra_tokens=st.integers(0, 20),
)
def test_every_sequence_ends_and_no_step_exceeds_its_budget(
    lengths: list[tuple[int, int]], max_running: int, extra_tokens: int
) -> None:
    sequences = [Counted(prompt, outputs) for prompt, outputs in lengths]
    step_tokens = max_running + extra_tokens
    subject = scheduler(*sequences, max_running=max_running, step_tokens=step_tokens, capacity_tokens=150)

    while subject.running:
        decoding = {id(sequence) for sequence in subject.running if sequence.remaining == 1}
        step = advance(subject)
        assert 0 < sum(tokens for _, tokens in step) <= step_tokens
        assert decoding <= {id(sequence) for sequence, _ in step}, "a decode was left out"
        while subject.admit():
            pass

    assert all(sequence.generated == sequence.outputs for sequence in sequences)
    assert all(sequence.computed == sequence.prompt + sequence.outputs - 1 for sequence in sequences)
