"""app.answering.outcome: how generation ended becomes what the answer says."""

import time

import pytest

from app.answering.answer import Answer, Budget, SourceReport
from app.answering.footnote_writer import FootnoteWriter
from app.answering.outcome import Outcome
from app.answering.prepared import PreparationCost, Prepared
from app.answering.prompt import Prompt
from app.answering.question import Question
from app.types import Principal, Role
from generation.types import Completion, FinishReason, Timings
from retrieval.types import Context, Scope


def prepared() -> Prepared:
    question = Question(
        request_id="req_1",
        endpoint="ask",
        principal=Principal("t1", "u1", "k1", Role.MEMBER),
        text="Why?",
        scope=Scope(tenant_id="t1"),
    )
    context = Context(sources=(), dropped=(), tokens=0)
    return Prepared(
        question=question,
        context=context,
        prompt=Prompt(segments=()),
        report=SourceReport.of((), context),
        budget=Budget(64, 8, 0),
        cost=PreparationCost(started=time.perf_counter(), retrieve_ms=0.0),
    )


def answer(reason: FinishReason, *, error: str | None = None) -> Answer:
    writer = FootnoteWriter((), pages={})
    writer.feed("Because")
    writer.finish()
    completion = Completion("req_1", "Because", (1, 2), reason, 0, 0, 2, Timings(1.0, 2.0, 3.0), error=error)
    return Outcome(prepared=prepared(), model="m", completion=completion).generated(writer)


@pytest.mark.parametrize("reason", [FinishReason.STOP, FinishReason.LENGTH, FinishReason.CANCELLED])
def test_a_generation_that_came_to_an_end_is_an_answer(reason: FinishReason) -> None:
    given = answer(reason)

    assert (given.answered, given.reason, given.error, given.finish_reason) == (True, None, None, reason.value)


def test_a_generation_that_failed_is_no_answer_and_says_so() -> None:
    given = answer(FinishReason.ERROR, error="The model failed.")

    assert (given.answered, given.reason, given.error) == (False, "error", "The model failed.")


def test_a_generation_that_met_its_deadline_is_an_error_that_keeps_what_it_has() -> None:
    given = answer(FinishReason.DEADLINE)

    assert (given.answered, given.reason, given.finish_reason) == (False, "error", "deadline")
    assert given.error == "The answer was not finished before its deadline."
    assert (given.text, given.usage.completion_tokens) == ("Because", 2)


def test_a_strict_answer_of_which_nothing_was_verified_is_a_refusal_by_the_verifier() -> None:
    writer = FootnoteWriter((), strict=True, refusal="I don't know.")
    writer.feed("Because the sea is deep.")
    writer.finish()
    completion = Completion("req_1", "", (1, 2), FinishReason.STOP, 0, 0, 2, Timings(1.0, 2.0, 3.0))

    given = Outcome(prepared=prepared(), model="m", completion=completion).generated(writer)

    assert (given.answered, given.reason, given.text) == (False, "not_verified", "I don't know.")
    assert given.abstention.stage == "verifier"
    assert (given.citations, given.uncited) == ((), ())
