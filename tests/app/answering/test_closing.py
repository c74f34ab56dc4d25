"""app.answering.closing: an answer is reported with its sources, its models and their tokens, and its times."""

from dataclasses import replace

import pytest

from app.answering.answers.answer import Answer, WindowUse
from app.answering.answers.parts import ProsePart, Reason
from app.answering.citing.citation import CONFIRMED
from app.answering.closing import reported
from app.answering.metering.token_usage import ModelCall, Purpose
from app.answering.prompt import Component, Prompt, Segment
from app.answering.question import Question
from app.answering.quoting.strategy import by_quotes
from app.answering.states.finished import Finished
from app.answering.states.reading import Decision, Extract, Selection
from app.answering.states.sources import Grounding
from app.answering.states.strategy import Begun
from app.types import Components, Principal, Role
from generation.types import Completion, FinishReason, SamplingParams, Timings
from retrieval.types import Context, Scope, Span
from tests.app.answering.groundings import grounding_of
from tests.app.answering.metered import meter_of
from tests.app.answering.metering.test_meter import HeldEngine
from tests.app.answering.part_texts import text_of
from tests.app.answering.sources import source

QUESTION = Question(
    request_id="req_1",
    endpoint="ask",
    principal=Principal("t1", "u1", "k1", Role.MEMBER),
    text="When did the plant close?",
    scope=Scope(tenant_id="t1"),
)
TEXT = "The plant in Oslo closed on 4 May. Nobody was hurt."
SURE = (1 + CONFIRMED) / 2
PROMPT = Prompt((Segment(Component.TEMPLATE, (1, 2, 3, 4)), Segment(Component.QUESTION, (5, 6, 7))))
CHOSEN = (
    ModelCall(purpose=Purpose.LOCATE, model="reader", prompt_tokens=7),
    ModelCall(purpose=Purpose.EXTRACT, model="embedder", prompt_tokens=5),
)


def report(finished: Finished, grounding: Grounding | None, *, question: Question = QUESTION) -> Answer:
    """The report of an answer for which the models of `CHOSEN` read and, with a completion, the engine generated."""
    engine = HeldEngine()
    meter = meter_of(question, engine=engine)
    for call in CHOSEN:
        with meter.reading(call.purpose, model=call.model, revision="1", tokens=call.prompt_tokens):
            pass
    if finished.completion is not None:
        meter.generating(Purpose.ANSWER, finished.prompt, SamplingParams(max_tokens=8))
        engine.observers[0].finish(finished.completion)
    return reported(Begun(question=question, grounding=grounding, answer=finished, meter=meter), finished)


def quoted(outcome: Decision) -> Answer:
    """The report of an answer by quotes: one sentence with its date highlighted."""
    shown = source(TEXT)
    quote = Extract(shown, Span(0, 34), TEXT[:34], SURE, Span(28, 33))
    selection = Selection(() if outcome == "refused" else (quote,), SURE, outcome, decides=True, threshold=0.5)
    grounding = grounding_of(QUESTION, Context((shown,), (), 9))
    return report(by_quotes(grounding, selection), grounding)


@pytest.mark.parametrize(
    ("counted", "components"),
    [(7, Components(template=4, question=3)), (9, Components(template=6, question=3)), (2, Components(1, question=1))],
)
def test_the_components_of_an_answer_sum_to_what_the_server_counted(counted: int, components: Components) -> None:
    usage = report(generated(prompt_tokens=counted), grounding_of(QUESTION, Context((), (), 0))).usage

    assert usage.components == components
    assert usage.components.total == sum(call.prompt_tokens for call in usage.calls if call.purpose is Purpose.ANSWER)


def generated(reason: FinishReason = FinishReason.STOP, *, prompt_tokens: int = 7) -> Finished:
    completion = Completion("req_1", "Because", (1, 2), reason, prompt_tokens, 0, 2, Timings(1.0, 2.0, 3.0))
    return Finished(
        reason=None,
        text="Because",
        finish_reason=reason.value,
        prompt=PROMPT,
        model="m",
        completion=completion,
    )


def test_an_answer_by_quotes_names_the_model_that_found_the_words_and_counts_what_was_read() -> None:
    given = quoted("answered")

    assert given.reason is None
    assert given.usage.calls == CHOSEN
    assert (given.usage.prompt_tokens, given.usage.completion_tokens, given.usage.total_tokens) == (12, 0, 12)
    assert given.model == "reader", "the model that found the words, not the one that was not called"


@pytest.mark.parametrize(("outcome", "reason"), [("unsure", "unsure"), ("refused", "not_in_sources")])
def test_nearest_passages_and_a_refusal_are_no_answer(outcome: Decision, reason: str) -> None:
    given = quoted(outcome)

    assert given.reason == reason


@pytest.mark.parametrize(("outcome", "cited"), [("answered", ("chunk_1",)), ("unsure", ("chunk_1",)), ("refused", ())])
def test_each_chunk_that_is_cited_is_reported_once(outcome: Decision, cited: tuple[str, ...]) -> None:
    given = quoted(outcome)

    assert (given.sources.presented, given.sources.cited) == (("chunk_1",), cited)


@pytest.mark.parametrize(
    ("outcome", "parts", "lead"),
    [
        ("answered", [("lead", (0,)), ("quote", (1,))], "4 May"),
        ("unsure", [("note", ()), ("quote", (0,))], None),
        ("refused", [("refusal", ())], None),
    ],
)
def test_each_part_is_reported_with_the_places_of_its_footnotes(
    outcome: Decision, parts: list[tuple[str, tuple[int, ...]]], lead: str | None
) -> None:
    given = quoted(outcome)

    assert [(part.kind, part.citations) for part in given.parts] == parts
    assert (None if given.lead is None else text_of(given.text, given.lead)) == lead
    assert [text_of(given.text, quote.quoted) for quote in given.quotes] == (
        [] if outcome == "refused" else [TEXT[:34]]
    )
    assert given.uncited == ()


def test_the_sentences_that_no_source_supports_are_those_of_the_prose() -> None:
    prose = ProsePart(start_char=0, end_char=7, uncited=(Span(0, 7),))
    given = report(replace(generated(), parts=(prose,)), grounding_of(QUESTION))

    assert (given.parts, given.uncited, given.quotes, given.lead) == ((prose,), (Span(0, 7),), (), None)


@pytest.mark.parametrize(
    "reason", [FinishReason.STOP, FinishReason.LENGTH, FinishReason.REPETITION, FinishReason.CANCELLED]
)
def test_a_generation_that_came_to_an_end_is_reported_as_an_answer(reason: FinishReason) -> None:
    given = report(generated(reason), grounding_of(QUESTION))

    assert (given.reason, given.error, given.finish_reason) == (None, None, reason.value)
    assert given.model == "m"


@pytest.mark.parametrize("reason", [FinishReason.ERROR, FinishReason.DEADLINE])
def test_a_generation_that_failed_is_reported_as_no_answer_with_what_it_has(reason: FinishReason) -> None:
    failed = replace(generated(reason), reason=Reason.ERROR, error="The model failed.")

    given = report(failed, grounding_of(QUESTION))

    assert (given.reason, given.error) == ("error", "The model failed.")
    assert given.finish_reason == reason.value
    assert (given.text, given.usage.completion_tokens) == ("Because", 2)


@pytest.mark.parametrize("reason", [Reason.NOT_VERIFIED, Reason.NOT_IN_SOURCES, Reason.NO_EVIDENCE])
def test_a_refusal_that_a_model_wrote_is_no_answer(reason: Reason) -> None:
    given = report(replace(generated(), reason=reason), grounding_of(QUESTION))

    assert given.reason == reason


@pytest.mark.parametrize(("read", "components"), [(7, Components(template=4, question=3)), (0, Components())])
def test_a_prompt_counts_where_the_model_has_read_it(read: int, components: Components) -> None:
    given = report(generated(prompt_tokens=read), grounding_of(QUESTION))

    assert given.usage.components == components
    assert given.budget == WindowUse(context_window=64, reserved_output=8, prompt_tokens=7)


def test_a_dry_run_plans_the_call_that_it_does_not_make() -> None:
    dry = replace(QUESTION, dry_run=True)

    given = report(Finished(reason=Reason.DRY_RUN, prompt=PROMPT, model="m"), grounding_of(dry), question=dry)

    planned = ModelCall(purpose=Purpose.ANSWER, model="m", prompt_tokens=7, planned=True)
    assert given.usage.calls == (*CHOSEN, planned)
    assert given.usage.components == Components(template=4, question=3)


def test_the_times_of_an_answer_count_from_its_question() -> None:
    grounding = grounding_of(QUESTION)
    grounding = replace(grounding, retrieve_ms=4.04, retrieved=replace(grounding.retrieved, rerank_ms=5.06))

    times = report(generated(), grounding).timings_ms

    assert (times["queue"], times["retrieve"], times["rerank"]) == (1.0, 4.0, 5.1)
    assert times["first_token"] is not None
    assert times["total"] is not None
    assert times["total"] - times["first_token"] == pytest.approx(1.0, abs=0.11), "the engine's last millisecond"


def test_a_reply_without_a_search_has_no_sources_and_no_room() -> None:
    given = report(Finished(reason=None, text="Hello."), None)

    assert (given.reason, given.text) == (None, "Hello.")
    assert (given.sources.retrieved, given.sources.presented) == (0, ())
    assert given.budget == WindowUse(context_window=0, reserved_output=0, prompt_tokens=0)
    assert (given.timings_ms["queue"], given.timings_ms["retrieve"], given.timings_ms["rerank"]) == (0.0, 0.0, 0.0)
    assert given.timings_ms["first_token"] is None
