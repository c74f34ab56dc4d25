"""generation.scheduler shares the tokens of a step and the cache fairly between sequences."""

import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from generation.block_pool import BlockPool
from generation.prefix import BlockKey, PrefixChain
from generation.scheduler import AdmissionFailed, Plan, Scheduler

BLOCK = 4


@dataclass(eq=False)
class Counted:
    """A sequence of counts: a prompt, then outputs, as the engine would keep them."""

    prompt: int
    outputs: int
    content: int = 0
    user: str = "ann"
    priority: int = 0
    submitted_at: float = 0.0
    computed: int = 0
    generated: int = 0
    preempted: bool = False
    blocks: list[int] = field(default_factory=list)

    @property
    def remaining(self) -> int:
        return self.position - self.computed

    @property
    def position(self) -> int:
        return self.prompt + self.generated

    @property
    def longest_draft(self) -> int:
        return self.outputs - self.generated - 1

    @property
    def keys(self) -> Sequence[BlockKey]:
        chain = PrefixChain(salt=str(self.content), block_tokens=BLOCK)
        chain.extend(range(self.position))
        return chain.keys

    def preempt(self) -> None:
        self.computed, self.preempted = 0, True


class CountedCache:
    """A cache of a bounded number of tokens, booked in blocks as on a GPU: found blocks are shared."""

    def __init__(self, tokens: int) -> None:
        self.pool = BlockPool(blocks=tokens // BLOCK, block_tokens=BLOCK)
        self.broken: set[int] = set()

    @property
    def block_tokens(self) -> int:
        return BLOCK

    def _found(self, sequence: Counted) -> list[int]:
        return self.pool.match(sequence.keys[: (sequence.position - 1) // BLOCK])

    def match(self, sequence: Counted) -> int:
        return BLOCK * len(self._found(sequence))

    def allocate(self, sequence: Counted, tokens: int) -> int | None:
        if id(sequence) in self.broken:
            raise MemoryError
        found = self._found(sequence)
        self.pool.acquire(found)
        rest = self.pool.allocate(-(-tokens // BLOCK) - len(found))
        if rest is None:
            self.pool.release(found)
            return None
        sequence.blocks = found + rest
        return BLOCK * len(found)

    def grow(self, sequence: Counted, tokens: int) -> bool:
        if id(sequence) in self.broken:
            raise MemoryError
        more = self.pool.allocate(max(0, -(-tokens // BLOCK) - len(sequence.blocks)))
        sequence.blocks += more or []
        return more is not None

    def deallocate(self, sequence: Counted) -> None:
        self.pool.release(sequence.blocks)
        sequence.blocks = []

    def offer(self, sequence: Counted) -> None:
        for place in range(sequence.computed // BLOCK):
            if not self.pool.match([sequence.keys[place]]):
                self.pool.publish(sequence.blocks[place], sequence.keys[place])


class Always:
    """Drafts the same number of tokens for everyone."""

    def __init__(self, drafts: int) -> None:
        self._drafts = drafts

    def propose(self, sequences: Sequence[Counted], *, budget: int) -> list[list[int]]:
        each = min(self._drafts, budget // len(sequences)) if sequences else 0
        return [[7] * each for _ in sequences]


class Subject(Scheduler[Counted]):
    """A scheduler whose cache can be looked at."""

    def __init__(self, cache: CountedCache, *, max_running: int, step_tokens: int, drafter: Always | None) -> None:
        super().__init__(cache, max_running=max_running, step_tokens=step_tokens, drafter=drafter)
        self.cache = cache


def scheduler(
    *sequences: Counted,
    max_running: int = 4,
    step_tokens: int = 16,
    capacity_tokens: int = 1000,
    drafts: int = 0,
) -> Subject:
    made = Subject(
        CountedCache(capacity_tokens),
        max_running=max_running,
        step_tokens=step_tokens,
        drafter=Always(drafts) if drafts else None,
    )
    for number, sequence in enumerate(sequences):
        sequence.content = sequence.content or -1 - number
        made.add(sequence)
    admit_all(made)
    return made


def admit_all(subject: Subject) -> None:
    while subject.admit(now=0.0):
        pass


def carry_out(subject: Subject, plan: Plan[Counted], *, right: int = 0) -> None:
    """What the engine does with a plan, `right` of the drafts of each sequence being accepted."""
    for work in plan.work:
        sequence = work.sequence
        accepted = min(right, len(work.drafts))
        assert BLOCK * len(sequence.blocks) >= sequence.computed + work.tokens + len(work.drafts), "no room"
        sequence.computed += work.tokens + accepted
        sequence.generated += (1 + accepted) if work.sampled else 0
        subject.cache.offer(sequence)
        if sequence.generated == sequence.outputs:
            subject.remove(sequence)
    subject.check_integrity()
    subject.cache.pool.check_integrity()


def advance(subject: Subject, *, right: int = 0) -> list[tuple[Counted, int]]:
    """Plan and carry out one step."""
    plan = subject.plan()
    carry_out(subject, plan, right=right)
    return [(work.sequence, work.tokens) for work in plan.work]


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

    assert [work.sampled for work in subject.plan().work] == [False]
    advance(subject)
    assert [work.sampled for work in subject.plan().work] == [True]


def test_admission_stops_at_max_running_and_resumes_when_one_leaves() -> None:
    sequences = [Counted(prompt=1, outputs=2) for _ in range(3)]
    subject = scheduler(*sequences, max_running=2)

    assert subject.running == sequences[:2]
    subject.remove(sequences[0])
    assert subject.admit(now=0.0) is sequences[2]


def test_admission_waits_for_room_in_the_cache_and_nobody_overtakes() -> None:
    big, bigger, small = (Counted(prompt=size, outputs=10) for size in (50, 60, 1))
    subject = scheduler(big, bigger, small, capacity_tokens=100)

    assert subject.running == [big]
    subject.remove(big)
    assert subject.admit(now=0.0) is bigger
    assert subject.admit(now=0.0) is small


def test_a_waiting_sequence_can_leave() -> None:
    first, second = Counted(prompt=1, outputs=1), Counted(prompt=1, outputs=1)
    subject = scheduler(first, second, max_running=1)

    subject.remove(second)

    assert list(subject.waiting) == []
    subject.check_integrity()


def test_a_prompt_that_was_computed_before_is_found_but_for_its_last_token() -> None:
    first = Counted(prompt=9, outputs=1, content=1)
    subject = scheduler(first)
    advance(subject)

    again = Counted(prompt=9, outputs=1, content=1)
    subject.add(again)
    subject.admit(now=0.0)

    assert again.computed == 8
    assert advance(subject) == [(again, 1)]


def test_a_sequence_waits_for_blocks_that_another_is_computing_and_then_finds_them() -> None:
    first, same, other = (Counted(prompt=40, outputs=2, content=content) for content in (1, 1, 2))
    subject = scheduler(first, same, other)

    assert subject.running == [first, other], "who shares nothing does not wait"
    while same not in subject.running:
        advance(subject)
        subject.admit(now=0.0)

    assert same.computed == 36


def test_room_runs_out_and_the_last_one_gives_way_then_ends_all_the_same() -> None:
    first, last = Counted(prompt=10, outputs=20), Counted(prompt=10, outputs=20)
    subject = scheduler(first, last, capacity_tokens=40)
    assert subject.running == [first, last]

    while last in subject.running:
        advance(subject)
    assert (subject.preemptions, last.computed, last.preempted) == (1, 0, True)
    while first.generated < first.outputs:
        advance(subject)
    admit_all(subject)
    assert last.computed > 0, "what was computed before was found"
    while subject.running:
        advance(subject)

    assert (first.generated, last.generated) == (20, 20)


def test_the_lowest_priority_gives_way() -> None:
    low, high = Counted(prompt=10, outputs=20), Counted(prompt=10, outputs=20, priority=1)
    subject = scheduler(low, high, capacity_tokens=40)

    while len(subject.running) == 2:
        advance(subject)

    assert subject.running == [high]


def test_a_sequence_whose_room_cannot_be_had_fails_alone() -> None:
    subject = scheduler(Counted(prompt=4, outputs=9))
    sick, well = Counted(prompt=4, outputs=9, content=5), Counted(prompt=4, outputs=9, content=6)
    subject.cache.broken.add(id(sick))
    subject.add(sick)
    subject.add(well)

    with pytest.raises(AdmissionFailed) as caught:
        admit_all(subject)
    subject.remove(sick)
    admit_all(subject)

    assert caught.value.sequence is sick
    assert well in subject.running


def test_a_sequence_that_cannot_grow_fails_alone() -> None:
    sick, well = Counted(prompt=4, outputs=9), Counted(prompt=4, outputs=9)
    subject = scheduler(sick, well)
    advance(subject)
    subject.cache.broken.add(id(sick))

    plan = subject.plan()

    assert plan.failed == (sick,)
    assert [work.sequence for work in plan.work] == [well]


def test_drafts_are_planned_only_when_no_prompt_is_being_read() -> None:
    subject = scheduler(Counted(prompt=1, outputs=9), Counted(prompt=20, outputs=9), drafts=3)

    advance(subject)
    assert [work.drafts for work in subject.plan().work] == [(), ()]
    advance(subject)
    assert [work.drafts for work in subject.plan().work] == [(7, 7, 7), (7, 7, 7)]


def test_drafts_end_before_the_last_token() -> None:
    subject = scheduler(Counted(prompt=1, outputs=3), drafts=9)

    advance(subject)

    assert [work.drafts for work in subject.plan().work] == [(7,)]


def test_a_small_prefill_budget_holds_only_while_others_decode() -> None:
    subject = scheduler(Counted(prompt=1, outputs=9), Counted(prompt=40, outputs=9))
    carry_out(subject, subject.plan(prefill_budget=5))

    assert [work.tokens for work in subject.plan(prefill_budget=5).work] == [1, 5]
    assert [work.tokens for work in scheduler(Counted(prompt=40, outputs=1)).plan(prefill_budget=5).work] == [16]


@settings(deadline=None, max_examples=150)
@given(
    lengths=st.lists(st.tuples(st.integers(1, 60), st.integers(1, 30), st.integers(1, 3)), min_size=1, max_size=12),
    max_running=st.integers(1, 5),
    extra_tokens=st.integers(0, 20),
    capacity_tokens=st.integers(92, 200),
    drafts=st.integers(0, 4),
    right=st.integers(0, 4),
)
def test_every_sequence_ends_and_no_step_exceeds_its_budget(
    lengths: list[tuple[int, int, int]],
    max_running: int,
    extra_tokens: int,
    capacity_tokens: int,
    drafts: int,
    right: int,
) -> None:
    sequences = [Counted(prompt, outputs, content=content) for prompt, outputs, content in lengths]
    step_tokens = max_running + extra_tokens
    subject = scheduler(
        *sequences, max_running=max_running, step_tokens=step_tokens, capacity_tokens=capacity_tokens, drafts=drafts
    )

    while subject.running:
        decoding = {id(sequence) for sequence in subject.running if sequence.remaining == 1}
        plan = subject.plan()
        fed = sum(work.tokens + len(work.drafts) for work in plan.work)
        assert 0 < fed <= step_tokens
        planned = {id(work.sequence) for work in plan.work}
        assert decoding & {id(sequence) for sequence in subject.running} <= planned, "a decode was left out"
        carry_out(subject, plan, right=right)
        admit_all(subject)

    assert all(sequence.generated == sequence.outputs for sequence in sequences)
    assert not subject.waiting
    assert subject.cache.pool.used == 0
