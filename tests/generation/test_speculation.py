"""generation.speculation drafts where it pays, and loses next to nothing where it does not."""

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from generation.drafting import SourceDrafter
from generation.pacing import StepCost
from generation.speculation import Acceptance, SpeculationPolicy, Speculative

Cost = Callable[[int], float]


def line(fixed: float, row: float) -> Cost:
    return lambda rows: fixed + row * rows


def learned(cost: Cost, *, policy: SpeculationPolicy | None = None) -> SpeculationPolicy:
    """A policy that has seen steps of many sizes."""
    policy = policy or SpeculationPolicy()
    for step in range(600):
        rows = 1 + step * 7 % 24
        policy.observe(rows=rows, seconds=cost(rows))
    return policy


def practised(first: float, following: float) -> Acceptance:
    """A record in which a draft's first token, and each one after a right one, was right this often."""
    acceptance, random_ = Acceptance(), random.Random(0)
    for _ in range(400):
        accepted = 0
        while accepted < 6 and random_.random() < (following if accepted else first):
            accepted += 1
        acceptance.learn(6, accepted)
    return acceptance


@dataclass
class Text:
    """A sequence whose drafts are right with a known probability; it drafts in `share` of the steps."""

    acceptance: Acceptance
    random: random.Random
    right: float
    share: float = 1.0
    generated: int = 0
    asked: list[int] = field(default_factory=list)

    @property
    def drafter(self) -> "Text":
        return self

    def push(self, token_id: int) -> None:
        self.generated += 1

    def propose(self, limit: int) -> list[int]:
        self.asked.append(limit)
        return [0] * limit if self.random.random() < self.share else []

    def verify(self, draft: list[int]) -> None:
        accepted = 0
        while accepted < len(draft) and self.random.random() < self.right:
            accepted += 1
        self.acceptance.learn(len(draft), accepted)
        for _ in range(1 + accepted):
            self.push(0)


class Certain(Acceptance):
    """A record that expects nearly every draft to be right, whatever it is taught."""

    @property
    def first(self) -> float:
        return 0.99

    @property
    def following(self) -> float:
        return 0.99


@dataclass
class Outcome:
    """Tokens per second against the same steps without drafts, and rows drafted in vain per token."""

    gain: float
    wasted: float
    drafted: int


def simulate(
    cost: Cost, *, right: float, batch: int, seed: int = 0, tokens: int = 120, rounds: int = 20, noise: float = 0.0
) -> Outcome:
    """Serve `rounds` batches of fresh texts of `tokens` tokens each, one policy throughout."""
    policy, random_ = SpeculationPolicy(), random.Random(seed)
    seconds = alone = 0.0
    generated = drafted = accepted = 0
    for _ in range(rounds):
        texts = [Text(policy.acceptance(), random_, right) for _ in range(batch)]
        while texts:
            drafts = policy.propose(texts, budget=512 - len(texts))
            rows = len(texts) + sum(map(len, drafts))
            took = cost(rows) * (1 + noise * random_.random()) * (20 if noise and random_.random() < 0.01 else 1)
            policy.observe(rows=rows, seconds=took)
            seconds += cost(rows)
            before = sum(text.generated for text in texts)
            for text, draft in zip(texts, drafts, strict=True):
                text.verify(draft)
            new = sum(text.generated for text in texts) - before
            alone += new * cost(len(texts)) / len(texts)
            generated, drafted, accepted = generated + new, drafted + rows - len(texts), accepted + new - len(texts)
            texts = [text for text in texts if text.generated < tokens]
    return Outcome(gain=alone / seconds, wasted=(drafted - accepted) / generated, drafted=drafted)


MEMORY_BOUND, BALANCED, COMPUTE_BOUND = line(1.0, 0.004), line(1.0, 0.06), line(0.05, 1.0)


@pytest.mark.parametrize("noise", [0.0, 0.2], ids=["steady", "noisy"])
@pytest.mark.parametrize("batch", [1, 8, 32])
@pytest.mark.parametrize("cost", [MEMORY_BOUND, BALANCED, COMPUTE_BOUND], ids=["memory", "balanced", "compute"])
def test_text_that_copies_nothing_loses_at_most_two_percent(cost, batch, noise):
    for right in (0.0, 0.05):
        assert simulate(cost, right=right, batch=batch, noise=noise).gain >= 0.98


@pytest.mark.parametrize("noise", [0.0, 0.2], ids=["steady", "noisy"])
@pytest.mark.parametrize("batch", [1, 8])
def test_quoting_text_gains_where_rows_are_nearly_free(batch, noise):
    assert simulate(MEMORY_BOUND, right=0.8, batch=batch, noise=noise).gain >= 1.7


@pytest.mark.parametrize("batch", [1, 8, 32])
def test_little_is_drafted_where_every_row_costs_in_full(batch):
    outcome = simulate(COMPUTE_BOUND, right=0.8, batch=batch)

    assert outcome.drafted <= 0.1 * 20 * 120 * batch
    assert outcome.gain >= 0.98


@settings(max_examples=20, deadline=None)
@given(
    fixed=st.floats(0.0, 1.0), row=st.floats(0.001, 1.0), right=st.floats(0.0, 1.0), batch=st.integers(1, 3)
)  # fmt: skip
def test_whatever_the_cost_and_the_text_little_is_lost(fixed, row, right, batch):
    outcome = simulate(line(fixed, row), right=right, batch=batch, tokens=80, rounds=4)

    # two percent of the steps, and ten steps to learn what rows cost
    assert 1 / outcome.gain - 1 <= 0.02 + 10 / (80 * 4)


def test_the_account_bounds_the_loss_even_when_every_estimate_is_wrong():
    """Each sequence believes in its drafts, and each of them is wrong."""
    policy = learned(line(1.0, 0.05))
    lost = steps = 0.0
    for _ in range(300):
        text = Text(Certain(everyone=policy.acceptance()), random.Random(0), 0.0)
        draft = policy.propose([text], budget=99)[0]
        text.verify(draft)
        policy.observe(rows=1 + len(draft), seconds=1.05 + 0.05 * len(draft))
        lost += 0.05 * len(draft)
        steps += 1.05

    assert 0 < lost <= 4 * 1.05 + 0.02 * (steps + lost)


def test_drafting_resumes_when_a_text_begins_to_quote():
    policy = learned(line(1.0, 0.02))
    text = Text(policy.acceptance(), random.Random(1), 0.0)

    def rate() -> float:
        before = text.generated
        for _ in range(300):
            draft = policy.propose([text], budget=99)[0]
            text.verify(draft)
            policy.observe(rows=1 + len(draft), seconds=1.0 + 0.02 * (1 + len(draft)))
        return (text.generated - before) / 300

    assert rate() == 1.0
    text.right = 0.9
    rate()
    assert rate() > 3.0


def test_probes_become_rare_while_they_fail():
    policy = learned(line(1.0, 0.05))
    text = Text(policy.acceptance(), random.Random(0), 0.0)
    for _ in range(200):
        text.acceptance.learn(1, 0)  # nothing pays any more, probes aside
    text.asked.clear()
    for _ in range(2000):
        text.verify(policy.propose([text], budget=99)[0])
        policy.observe(rows=1, seconds=1.05)

    assert 2000 / 128 - 1 <= len(text.asked) <= 2000 / 128 + 2
    assert set(text.asked) == {2}


def test_a_probe_waits_until_there_is_something_to_propose():
    policy = learned(line(1.0, 0.5))
    text = Text(policy.acceptance(), random.Random(0), 1.0, share=0.0)
    for _ in range(40):
        text.acceptance.learn(1, 0)
    for _ in range(400):
        assert policy.propose([text], budget=99) == [[]]
        policy.observe(rows=1, seconds=1.5)
    text.share = 1.0

    assert policy.propose([text], budget=99) == [[0, 0]]


@settings(max_examples=60, deadline=None)
@given(
    rates=st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1)), min_size=1, max_size=3),
    row=st.floats(0.002, 2.0),
    budget=st.integers(0, 7),
    limits=st.lists(st.integers(-1, 4), min_size=3, max_size=3),
)
def test_lengths_are_the_best_of_all(rates, row, budget, limits):
    policy = learned(line(1.0, row), policy=SpeculationPolicy(max_draft=3))
    estimates = [practised(first, following) for first, following in rates]
    limits = limits[: len(rates)]

    def expected_rate(lengths: tuple[int, ...]) -> float:
        tokens = sum(
            1 + sum(e.first * e.following**j for j in range(length))
            for e, length in zip(estimates, lengths, strict=True)
        )
        return tokens / (policy.cost.seconds(len(rates)) + policy.cost.row * sum(lengths))

    lengths = policy.lengths(estimates, budget=budget, limits=limits)
    allowed = product(*(range(max(0, min(limit, 3)) + 1) for limit in limits))
    best = max(expected_rate(choice) for choice in allowed if sum(choice) <= budget)

    assert sum(lengths) <= budget
    assert all(0 <= length <= max(0, min(limit, 3)) for length, limit in zip(lengths, limits, strict=True))
    assert expected_rate(tuple(lengths)) == pytest.approx(best, rel=1e-9)


def test_sequences_without_a_drafter_get_nothing_and_count_as_rows():
    @dataclass
    class Plain:
        drafter: None = None
        acceptance: None = None

    policy = learned(line(1.0, 0.01))
    text = Text(policy.acceptance(), random.Random(0), 1.0)
    alone = policy.propose([text], budget=99)[0]
    crowd: list[Speculative] = [Plain(), *([Plain()] * 15), text]
    drafts = policy.propose(crowd, budget=99)

    assert drafts[:-1] == [[]] * 16
    assert 0 < len(drafts[-1]) < len(alone)


def test_drafts_keep_the_budget_and_what_a_sequence_can_still_use():
    policy = learned(line(1.0, 0.002))
    texts = [Text(policy.acceptance(), random.Random(0), 1.0) for _ in range(3)]

    assert sum(map(len, policy.propose(texts, budget=4))) == 4
    drafts = policy.propose(texts, budget=99, limits=[99, 1, 0])
    assert len(drafts[1]) == 1 < len(drafts[0])
    assert drafts[2] == []
    assert policy.propose(texts, budget=0) == [[], [], []]
    assert policy.propose([], budget=9) == []


def test_the_first_steps_draft_a_little():
    policy = SpeculationPolicy()
    text = Text(policy.acceptance(), random.Random(0), 1.0)

    assert policy.propose([text], budget=99) == [[]]  # nothing is known of the cost
    policy.observe(rows=1, seconds=0.02)
    assert 2 <= len(policy.propose([text], budget=99)[0]) <= 8


def test_the_same_calls_give_the_same_drafts():
    assert simulate(BALANCED, right=0.7, batch=4, noise=0.3) == simulate(BALANCED, right=0.7, batch=4, noise=0.3)


def test_a_source_drafter_is_a_drafter():
    @dataclass
    class Sequence:
        drafter: SourceDrafter
        acceptance: Acceptance

    policy = learned(line(1.0, 0.002))
    sequence = Sequence(SourceDrafter([1, 2, 3, 4, 5, 0, 1, 2, 3]), policy.acceptance())

    assert policy.propose([sequence], budget=99) == [[4, 5, 0, 1, 2, 3]]


@pytest.mark.parametrize(("first", "following"), [(0.9, 0.9), (0.3, 0.95), (0.6, 0.2), (0.0, 0.5), (1.0, 1.0)])
def test_acceptance_is_learned_for_the_first_token_and_the_following_ones(first, following):
    acceptance = practised(first, following)

    assert acceptance.first == pytest.approx(first, abs=0.15)
    if first:
        assert acceptance.following == pytest.approx(following, abs=0.15)


def test_a_new_sequence_starts_from_what_held_for_all():
    policy = SpeculationPolicy()
    fresh = policy.acceptance()
    for _ in range(50):
        policy.acceptance().learn(3, 0)

    assert policy.acceptance().first < 0.1 < fresh.first


def test_an_empty_draft_teaches_nothing():
    acceptance = Acceptance()
    before = acceptance.first, acceptance.following
    acceptance.learn(0, 0)

    assert (acceptance.first, acceptance.following) == before


@pytest.mark.parametrize("cost", [MEMORY_BOUND, BALANCED, COMPUTE_BOUND])
def test_the_cost_of_a_row_is_learned_despite_noise_and_outliers(cost):
    learned_cost, random_ = StepCost(), random.Random(2)
    for step in range(1500):
        rows = random_.randint(1, 32)
        slow = 30 if step % 50 == 0 else 1  # the first step too: it warms up
        learned_cost.observe(rows=rows, seconds=cost(rows) * (0.95 + 0.1 * random_.random()) * slow)

    for rows in (1, 8, 32):
        assert learned_cost.seconds(rows) == pytest.approx(cost(rows), rel=0.25, abs=0.1 * cost(16))
    assert learned_cost.row == pytest.approx(cost(2) - cost(1), rel=0.25, abs=0.004)


def test_a_steady_load_does_not_forget_what_a_row_costs():
    cost = StepCost()
    for step in range(800):
        cost.observe(rows=1 + step % 16, seconds=1.0 + 0.1 * (1 + step % 16))
    for _ in range(5000):
        cost.observe(rows=8, seconds=1.8)

    assert cost.row == pytest.approx(0.1, rel=0.1)


def test_a_clock_that_stood_still_teaches_nothing():
    cost = StepCost()
    cost.observe(rows=4, seconds=0.02)
    before = cost.row, cost.seconds(9)
    for seconds in (0.0, -1.0, float("nan"), float("inf")):
        cost.observe(rows=4, seconds=seconds)

    assert (cost.row, cost.seconds(9)) == before


def test_limits_that_cannot_be_are_refused():
    with pytest.raises(ValueError, match="max_draft"):
        SpeculationPolicy(max_draft=0)
    with pytest.raises(ValueError, match="loss_share"):
        SpeculationPolicy(loss_share=1.5)
