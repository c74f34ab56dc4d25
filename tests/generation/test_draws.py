"""generation.draws samples each row of a batch independently of the others."""

import math
import random

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from generation.draws import SamplingRow, draw_rows
from generation.sampling import sample
from generation.types import SamplingParams

torch.set_num_threads(1)

INF, NAN = float("inf"), float("nan")
VOCAB = 400


def row(
    *,
    temperature: float = 0.0,
    top_k: int = 0,
    allowed: tuple[int, ...] | None = None,
    bias: tuple[tuple[int, float], ...] = (),
    logprobs: int | None = None,
    seed: int = 1,
    position: int = 0,
    mask: Tensor | None = None,
) -> SamplingRow:
    params = SamplingParams(
        max_tokens=1,
        temperature=temperature,
        top_k=top_k,
        allowed_tokens=allowed,
        logit_bias=bias,
        logprobs=logprobs,
    )
    return SamplingRow(params=params, seed=seed, position=position, prompt=(), output=(), mask=mask)


def any_row(choice: random.Random) -> SamplingRow:
    """A row of any kind: greedy or sampled, with or without everything else."""
    params = SamplingParams(
        max_tokens=1,
        temperature=choice.choice([0.0, 0.0, 0.7, 1.0, 1.5]),
        min_p=choice.choice([0.0, 0.0, 0.05]),
        top_k=choice.choice([0, 0, 3, 50]),
        top_p=choice.choice([1.0, 0.9, 0.5]),
        repetition_penalty=choice.choice([1.0, 1.0, 1.3]),
        presence_penalty=choice.choice([0.0, 0.0, 0.5]),
        logit_bias=choice.choice([(), (), ((3, 5.0), (4, -100.0))]),
        allowed_tokens=choice.choice([None, None, tuple(range(0, VOCAB, 7))]),
        logprobs=choice.choice([None, None, 0, 5]),
    )
    mask = torch.arange(VOCAB) % 2 == 0 if choice.random() < 0.3 else None
    prompt = [choice.randrange(VOCAB) for _ in range(20)]
    output = [choice.randrange(VOCAB) for _ in range(9)]
    return SamplingRow(params, choice.randrange(2**64), choice.randrange(5000), prompt, output, mask)


@pytest.mark.parametrize("seed", range(4))
def test_a_row_gets_in_any_batch_and_order_what_it_gets_alone(seed: int) -> None:
    choice = random.Random(seed)
    rows = [any_row(choice) for _ in range(32)]
    logits = torch.randn(32, VOCAB, generator=torch.Generator().manual_seed(seed)) * 3
    logits[5], logits[11, 7] = -INF, NAN
    before = logits.clone()
    alone = [draw_rows(logits[n : n + 1], [rows[n]])[0] for n in range(32)]
    order = choice.sample(range(32), 32)

    assert draw_rows(logits, rows) == alone
    assert draw_rows(logits[order], [rows[n] for n in order]) == [alone[n] for n in order]
    assert alone[5].token is alone[11].token is None
    assert torch.equal(logits.nan_to_num(), before.nan_to_num())


def test_a_plain_sampled_row_is_drawn_as_sample_draws_it() -> None:
    logits = torch.randn(1, VOCAB, generator=torch.Generator().manual_seed(3))
    asked = row(temperature=1.0, top_k=20, seed=5, position=6)

    assert draw_rows(logits, [asked])[0].token == int(sample(logits[0], asked.params, seed=5, position=6))


@pytest.mark.parametrize("bad", [NAN, INF])
@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_a_row_that_is_not_numbers_draws_nothing_and_spares_its_neighbours(bad: float, temperature: float) -> None:
    logits = torch.tensor([[1.0, 2.0, 0.0], [0.0, bad, 1.0], [3.0, 2.0, -INF]])
    only_second = row(temperature=temperature, allowed=(0,), logprobs=2)

    draws = draw_rows(logits, [row(), only_second, row()])

    assert [draw.token for draw in draws] == [1, None, 0]
    assert draws[1].logprob is None


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_a_row_of_which_nothing_is_allowed_draws_nothing(temperature: float) -> None:
    logits = torch.tensor([[1.0, -INF, 0.0]] * 4)
    rows = [
        row(temperature=temperature, mask=torch.zeros(3, dtype=torch.bool)),
        row(temperature=temperature, allowed=(1,)),
        row(temperature=temperature, allowed=(3,)),
        row(temperature=temperature, allowed=(2,)),
    ]

    assert [draw.token for draw in draw_rows(logits, rows)] == [None, None, None, 2]


def test_no_rows_give_no_draws() -> None:
    assert draw_rows(torch.empty(0, 5), []) == []


@settings(deadline=None)
@given(
    seed=st.integers(0, 2**31),
    temperature=st.sampled_from([0.0, 0.5, 1.0, 50.0]),
    top_k=st.sampled_from([0, 1, 30]),
    allowed=st.none() | st.sets(st.integers(0, 599), min_size=1, max_size=300),
    masked=st.none() | st.sets(st.integers(0, 599), max_size=590),
)
def test_what_is_not_allowed_is_never_drawn(
    seed: int, temperature: float, top_k: int, allowed: set[int] | None, masked: set[int] | None
) -> None:
    logits = torch.randn(1, 600, generator=torch.Generator().manual_seed(seed)) * 4
    mask = None if masked is None else torch.tensor([token not in masked for token in range(600)])
    left = set(range(600) if allowed is None else allowed) - (masked or set())
    asked = row(
        temperature=temperature,
        top_k=top_k,
        allowed=None if allowed is None else tuple(sorted(allowed)),
        bias=((1, 100.0), (2, -100.0)),
        seed=seed,
        mask=mask,
    )

    token = draw_rows(logits, [asked])[0].token

    assert token in left if left else token is None


def test_log_probabilities_are_those_of_the_untouched_logits() -> None:
    logits = torch.tensor([[2.0, 3.0, 3.0, 1.0, -INF]])

    draw = draw_rows(logits, [row(allowed=(3, 0), bias=((3, 50.0),), logprobs=3)])[0]

    raw = torch.log_softmax(logits[0], 0).tolist()
    assert draw.token == 3
    assert draw.logprob is not None
    assert (draw.logprob.token_id, draw.logprob.logprob) == (3, raw[3])
    assert draw.logprob.top == ((1, raw[1]), (2, raw[2]), (0, raw[0]))  # the tie goes to the lower id


def test_top_log_probabilities_leave_out_what_the_model_rules_out() -> None:
    draw = draw_rows(torch.tensor([[2.0, -INF, 1.0]]), [row(logprobs=20)])[0]

    assert draw.logprob is not None
    assert [token for token, _ in draw.logprob.top] == [0, 2]
    assert math.fsum(math.exp(logprob) for _, logprob in draw.logprob.top) == pytest.approx(1)


def test_zero_top_log_probabilities_report_the_chosen_token_alone() -> None:
    draw = draw_rows(torch.tensor([[2.0, 1.0]]), [row(logprobs=0)])[0]

    assert draw.logprob is not None
    assert draw.logprob.top == ()
    assert draw.logprob.logprob == pytest.approx(-math.log1p(math.exp(-1)))


@settings(deadline=None)
@given(eighths=st.lists(st.integers(-8, 8), min_size=1, max_size=60), top=st.integers(1, 20))
def test_top_log_probabilities_are_the_best_with_ties_by_id(eighths: list[int], top: int) -> None:
    logits = torch.tensor([eighths], dtype=torch.float32) / 8
    order = sorted(range(len(eighths)), key=lambda token: (-eighths[token], token))

    draw = draw_rows(logits, [row(logprobs=top)])[0]

    assert draw.logprob is not None
    assert [token for token, _ in draw.logprob.top] == order[:top]
    assert draw.token == order[0]
