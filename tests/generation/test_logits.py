"""generation.logits changes exactly what was asked for, as the references do."""

from collections import Counter

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import RepetitionPenaltyLogitsProcessor

from generation.logits import (
    add_bias,
    allow_only,
    apply_mask,
    penalise_occurrence,
    penalise_repetition,
    process,
)
from generation.types import SamplingParams

VOCAB = 12
INF = float("inf")

rows = st.lists(st.floats(-30, 30, width=32), min_size=VOCAB, max_size=VOCAB).map(torch.tensor)
tokens = st.lists(st.integers(0, VOCAB - 1), max_size=20)


@settings(deadline=None)
@given(logits=rows, seen=tokens, penalty=st.sampled_from([0.5, 1.1, 1.3, 4.0]))
def test_the_repetition_penalty_equals_transformers(logits: torch.Tensor, seen: list[int], penalty: float) -> None:
    ids = torch.tensor([seen], dtype=torch.long)

    expected = RepetitionPenaltyLogitsProcessor(penalty=penalty)(ids, logits[None].clone())[0]

    assert torch.equal(penalise_repetition(logits, seen, penalty=penalty), expected)


@settings(deadline=None)
@given(
    logits=rows, output=tokens, presence=st.sampled_from([-2.0, 0.0, 0.75]), frequency=st.sampled_from([-0.5, 0.0, 1.5])
)
def test_presence_and_frequency_penalties_equal_their_formula(
    logits: torch.Tensor, output: list[int], presence: float, frequency: float
) -> None:
    counts = Counter(output)
    expected = [
        value - presence * (counts[token] > 0) - frequency * counts[token]
        for token, value in enumerate(logits.tolist())
    ]

    penalised = penalise_occurrence(logits, output, presence=presence, frequency=frequency)

    assert penalised.tolist() == pytest.approx(expected, rel=1e-6, abs=1e-6)


@settings(deadline=None)
@given(logits=rows, allowed=st.sets(st.integers(0, VOCAB + 5), min_size=1), masked=st.sets(st.integers(0, VOCAB - 1)))
def test_only_allowed_tokens_keep_their_logits(logits: torch.Tensor, allowed: set[int], masked: set[int]) -> None:
    mask = torch.tensor([token not in masked for token in range(VOCAB)])

    left = apply_mask(allow_only(logits, sorted(allowed)), mask)

    assert left.tolist() == [
        value if token in allowed and token not in masked else -INF for token, value in enumerate(logits.tolist())
    ]


def test_a_bias_is_added_to_its_token_alone() -> None:
    assert add_bias(torch.tensor([1.0, -INF, 3.0]), [(2, -1.5), (1, 50.0), (7, 9.0)]).tolist() == [1.0, -INF, 1.5]


def test_everything_is_applied_in_the_documented_order() -> None:
    params = SamplingParams(
        max_tokens=1,
        logit_bias=((0, -4.0), (3, 50.0)),
        allowed_tokens=(0, 1, 2),
        repetition_penalty=2.0,
        presence_penalty=0.5,
        frequency_penalty=0.25,
    )
    logits = torch.tensor([3.0, 2.0, 4.0, 1.0, 9.0])

    processed = process(logits, params, prompt=[0, 4], output=[1, 1], mask=torch.tensor([1, 1, 0, 1, 1]).bool())

    # 0: (3 - 4) * 2, in the prompt alone; 1: 2 / 2 - 0.5 - 2 * 0.25; the bias does not bring 3 back
    assert processed.tolist() == [-2.0, 0.0, -INF, -INF, -INF]
    assert logits.tolist() == [3.0, 2.0, 4.0, 1.0, 9.0]


def test_a_row_of_which_nothing_is_asked_is_handed_back_itself() -> None:
    logits = torch.tensor([1.0, 2.0])

    assert process(logits, SamplingParams(max_tokens=1), prompt=[0], output=[1], mask=None) is logits


def test_ids_beyond_the_vocabulary_are_passed_over() -> None:
    logits = torch.tensor([1.0, 2.0])

    assert penalise_repetition(logits, [5, 1], penalty=2.0).tolist() == [1.0, 1.0]
    assert penalise_occurrence(logits, [5, 1], presence=1.0, frequency=0.0).tolist() == [1.0, 1.0]


@pytest.mark.parametrize(
    ("field", "value"),
    [
        *(
            (field, float("nan"))
            for field in (
                "temperature",
                "min_p",
                "top_p",
                "repetition_penalty",
                "presence_penalty",
                "frequency_penalty",
            )
        ),
        ("min_p", -0.1),
        ("min_p", 1.0),
        ("repetition_penalty", 0.0),
        ("repetition_penalty", INF),
        ("presence_penalty", 2.1),
        ("frequency_penalty", -2.1),
        ("logit_bias", ((1, float("nan")),)),
        ("logit_bias", ((1, INF),)),
        ("logit_bias", ((1, 2.0), (1, 3.0))),
        ("logit_bias", ((-1, 2.0),)),
        ("allowed_tokens", ()),
        ("allowed_tokens", (3, -1)),
        ("logprobs", -1),
        ("logprobs", 21),
    ],
)
def test_parameters_out_of_range_are_refused(field: str, value: object) -> None:
    with pytest.raises(ValueError, match=r"must|at least"):
        SamplingParams(max_tokens=1, **{field: value})  # type: ignore[arg-type]


def test_parameters_at_the_ends_of_their_ranges_are_accepted() -> None:
    SamplingParams(
        max_tokens=1,
        min_p=0.99,
        repetition_penalty=100.0,
        presence_penalty=-2.0,
        frequency_penalty=2.0,
        logit_bias=((0, -100.0), (1, 100.0)),
        allowed_tokens=(0,),
        logprobs=20,
    )
