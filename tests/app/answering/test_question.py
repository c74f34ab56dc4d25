"""app.answering.question: what a question may use of the context window, and how its answer is generated."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.answering.question import GREEDY, AnswerDefaults, Question
from app.types import Principal, Role
from generation.errors import ContextLengthExceeded
from generation.types import CitationMarkers, JsonSchema
from retrieval.types import Scope

LIMITS = AnswerDefaults(max_context_tokens=3000, max_output_tokens=512, min_evidence=0.3, max_waiting=4)


def question(**fields: object) -> Question:
    return Question(
        request_id="req_1",
        endpoint="ask",
        principal=Principal("t", "u", "k", Role.MEMBER),
        text="Why?",
        scope=Scope(tenant_id="t"),
        **fields,  # type: ignore[arg-type]  # named by the tests below
    )


@given(
    window=st.integers(1, 9000),
    fixed=st.integers(0, 9000),
    context=st.none() | st.integers(1, 9000),
    output=st.none() | st.integers(1, 9000),
)
def test_prompt_and_output_never_exceed_the_window(window, fixed, context, output):
    asked = question(max_context_tokens=context, max_output_tokens=output)
    try:
        max_output, room = LIMITS.room(asked, window=window, fixed=fixed)
    except ContextLengthExceeded:
        assert fixed + (output or 1) + 1 > window
        return

    assert fixed + room + max_output <= window
    assert 1 <= room <= (context or 3000)
    assert max_output == output if output is not None else 1 <= max_output <= 512


def test_json_is_asked_of_whoever_asked_for_it_and_markers_of_presented_sources_of_all_others() -> None:
    assert question(json_schema="{}").constraint(3) == JsonSchema("{}")
    assert question().constraint(3) == CitationMarkers(3)
    assert question().constraint(0) is None


def test_every_choice_is_sampled_as_asked_with_a_seed_of_its_own() -> None:
    asked = question(sampling=replace(GREEDY, temperature=0.7, seed=3))

    assert [asked.again(choice).sampling.seed for choice in range(3)] == [3, 4, 5]
    assert asked.again(2).sampling.temperature == 0.7


@pytest.mark.parametrize("deadline", [None, 0.0])
def test_time_is_left_until_the_deadline(deadline: float | None) -> None:
    left = question(deadline=deadline).seconds_left

    assert left is None if deadline is None else left is not None and left < 0
