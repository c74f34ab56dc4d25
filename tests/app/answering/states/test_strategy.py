"""app.answering.states.strategy: which of several strategies answers a question."""

from collections.abc import Sequence

import pytest

from app.answering.metering.meter import Meter
from app.answering.question import Question
from app.answering.states.sources import Grounding, TokenBudget
from app.answering.states.strategy import Beginning, first_fit
from app.errors import InvalidRequest, UnsupportedParameter
from app.types import Principal, Role
from generation.errors import EngineFull
from retrieval.types import Scope

QUESTION = Question(
    request_id="req_1",
    endpoint="ask",
    principal=Principal("t", "u", "k", Role.READER),
    text="Why?",
    scope=Scope(tenant_id="t"),
)
INVALID, UNSUPPORTED = InvalidRequest("No answer without documents."), UnsupportedParameter("No log probabilities.")
FULL = EngineFull(retry_after_s=1)


class Says:
    """A strategy that admits every question, or refuses each with the same error, and answers none."""

    def __init__(self, error: Exception | None = None) -> None:
        self.error = error
        self.asked: list[Question] = []

    def admit(self, question: Question) -> None:
        self.asked.append(question)
        if self.error is not None:
            raise self.error

    def budget(self, question: Question) -> TokenBudget:
        raise AssertionError("only whether it can answer is asked")

    def begin(self, grounding: Grounding, meter: Meter) -> Beginning:
        raise AssertionError("only whether it can answer is asked")


@pytest.mark.parametrize(
    ("errors", "place"),
    [
        ([None], 0),
        ([None, None], 0),
        ([None, FULL], 0),
        ([INVALID, None], 1),
        ([UNSUPPORTED, None], 1),
        ([INVALID, UNSUPPORTED, None], 2),
        ([INVALID, None, INVALID], 1),
    ],
)
def test_the_first_strategy_that_admits_a_question_answers_it(errors: Sequence[Exception | None], place: int) -> None:
    strategies = [Says(error) for error in errors]

    assert first_fit(strategies, QUESTION) is strategies[place]
    assert [one.asked for one in strategies] == [[QUESTION]] * (place + 1) + [[]] * (len(strategies) - place - 1)


@pytest.mark.parametrize(
    "errors", [[INVALID], [UNSUPPORTED], [INVALID, UNSUPPORTED], [UNSUPPORTED, INVALID], [INVALID, INVALID, FULL]]
)
def test_where_none_admits_a_question_the_last_one_says_why(errors: Sequence[Exception]) -> None:
    with pytest.raises(type(errors[-1])) as refusal:
        first_fit([Says(error) for error in errors], QUESTION)

    assert refusal.value is errors[-1]


@pytest.mark.parametrize("before", [[], [INVALID]])
def test_a_strategy_that_fits_and_has_too_much_to_do_refuses_and_no_other_is_asked(before: Sequence[Exception]) -> None:
    other = Says()

    with pytest.raises(EngineFull) as refusal:
        first_fit([*map(Says, before), Says(FULL), other], QUESTION)

    assert refusal.value is FULL
    assert other.asked == []
