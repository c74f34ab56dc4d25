"""A refusal is given whole from its threshold on and not begun below it, whatever else the engine does."""

from dataclasses import replace
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from generation.abstention import RefusalConstraint, decide, refusal_probability
from generation.constraints import ConstraintCompiler, TokenConstraint
from generation.draws import SamplingRow, draw_rows
from generation.types import (
    Abstention,
    CitationMarkers,
    SamplingParams,
)
from tests.generation.stage import tokenizer

torch.set_num_threads(1)

INF = float("inf")


def row(abstention: Abstention | None, *, mask: Tensor | None = None, **params: Any) -> SamplingRow:
    return SamplingRow(
        params=SamplingParams(max_tokens=1, **params),
        seed=5,
        position=3,
        prompt=(1, 2),
        output=(),
        mask=mask,
        abstention=abstention,
    )


@given(
    logits=st.lists(st.floats(-30, 30, width=32), min_size=3, max_size=12),
    first=st.integers(0, 2),
    threshold=st.floats(0, 1, exclude_min=True),
    temperature=st.sampled_from([0.0, 0.7, 5.0]),
    bias=st.sampled_from([0.0, 50.0, -50.0]),
    allowed=st.sets(st.integers(0, 2), min_size=1),
)
def test_from_the_threshold_on_the_refusal_begins_and_below_it_something_else_that_is_allowed(
    logits: list[float], first: int, threshold: float, temperature: float, bias: float, allowed: set[int]
) -> None:
    raw = torch.tensor([logits])
    mask = torch.tensor([token in allowed for token in range(len(logits))])
    expected = float(torch.softmax(raw[0].masked_fill(~mask, -INF).double(), 0)[first])
    asked = row(Abstention((first, 1), threshold), mask=mask, temperature=temperature, logit_bias=((first, bias),))

    (drawn,) = draw_rows(raw, [asked])

    assert drawn.token is not None
    assert drawn.token in allowed
    assert drawn.abstention == expected
    assert (drawn.token == first) == (expected >= threshold)


@given(
    seed=st.integers(0, 2**32),
    temperature=st.sampled_from([0.0, 0.7, 1.5]),
    top_k=st.sampled_from([0, 3]),
    logprobs=st.sampled_from([None, 2]),
)
def test_without_a_threshold_the_draw_is_what_it_would_have_been(
    seed: int, temperature: float, top_k: int, logprobs: int | None
) -> None:
    logits = 3 * torch.randn(3, 40, generator=torch.Generator().manual_seed(seed))
    watched = row(Abstention((9,)), temperature=temperature, top_k=top_k, logprobs=logprobs)
    plain = replace(watched, abstention=None)

    mixed, alone = draw_rows(logits, [watched, plain, watched]), draw_rows(logits, [plain] * 3)

    assert [(draw.token, draw.logprob) for draw in mixed] == [(draw.token, draw.logprob) for draw in alone]
    assert mixed[1].abstention is None
    for n in (0, 2):
        assert mixed[n].abstention == float(logits[n].double().softmax(0)[9])


def test_a_model_that_gives_no_numbers_neither_refuses_nor_reports() -> None:
    (drawn,) = draw_rows(torch.full((1, 4), float("nan")), [row(Abstention((1,), 0.5))])

    assert drawn.token is None
    assert drawn.abstention is None


def test_the_only_allowed_token_is_given_at_any_threshold_and_a_forbidden_one_at_none() -> None:
    logits = torch.tensor([-1e30, 2.0, 5.0])
    only = torch.tensor([True, False, False])
    sure = refusal_probability(logits, 0, mask=only)
    never = refusal_probability(logits, 0, mask=~only)
    masked, others = logits.masked_fill(~only, -INF), logits.masked_fill(only, -INF)

    assert (float(sure), float(never)) == (1.0, 0.0)
    assert decide(masked, 0, probability=sure, threshold=1.0).isfinite().tolist() == [True, False, False]
    assert decide(others, 0, probability=never, threshold=5e-324).isfinite().tolist() == [False, True, True]


def allowed_ids(constraint: TokenConstraint) -> list[int] | None:
    mask = constraint.mask()
    return None if mask is None else mask.nonzero()[:, 0].tolist()


def refusing(*refusal: int, otherwise: TokenConstraint | None = None) -> RefusalConstraint:
    return RefusalConstraint(refusal, otherwise=otherwise, eos_ids=frozenset({7, 8}), vocab_size=20)


def test_a_refusal_that_has_begun_is_said_whole_and_then_ends() -> None:
    constraint = refusing(3, 4, 3)
    assert allowed_ids(constraint) is None
    for said, due in ((3, [4]), (4, [3]), (3, [7, 8]), (8, [7, 8])):
        constraint.advance(said)

        assert allowed_ids(constraint) == due
        assert [token for token in range(20) if constraint.allows(token)] == due


def test_any_other_beginning_is_free_of_the_refusal_even_where_its_token_comes_later() -> None:
    constraint = refusing(3, 4)
    for token in (9, 3, 12):
        constraint.advance(token)

        assert allowed_ids(constraint) is None
        assert constraint.allows(5)


def test_an_answer_keeps_the_constraint_it_had_and_a_refusal_does_not_move_it() -> None:
    ids = tokenizer()
    compiler = ConstraintCompiler(ids, eos_ids=ids.eos_ids, vocab_size=ids.vocab_size)
    (word,), (letter,), (bracket,), (nine,) = (ids.encode(char) for char in "yx[9")

    def constraint() -> RefusalConstraint:
        return RefusalConstraint(
            (letter, bracket),
            otherwise=compiler.compile(CitationMarkers(2)),
            eos_ids=ids.eos_ids,
            vocab_size=ids.vocab_size,
        )

    answer, refusal, plain = constraint(), constraint(), compiler.compile(CitationMarkers(2))
    assert allowed_ids(answer) == allowed_ids(plain)
    for token in (word, bracket):
        answer.advance(token)
        plain.advance(token)
        assert allowed_ids(answer) == allowed_ids(plain)
    refusal.advance(letter)
    refusal.advance(bracket)

    assert not answer.allows(nine)
    assert allowed_ids(refusal) == sorted(ids.eos_ids)


def test_a_clone_looks_ahead_without_moving_the_sequence() -> None:
    constraint = refusing(3, 4)
    constraint.advance(3)
    ahead = constraint.clone()
    ahead.advance(4)

    assert (allowed_ids(constraint), allowed_ids(ahead)) == ([4], [7, 8])
    with pytest.raises(AssertionError, match="forbids"):
        constraint.advance(5)
