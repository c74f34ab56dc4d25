"""app.answering.outcome: how generation ended becomes what the answer says."""

import json
import time
from dataclasses import replace
from typing import Any

import pytest

from app.answering.answer import Answer, Budget, SourceReport
from app.answering.citation import CONFIRMED
from app.answering.formats import ANSWER_SCHEMA
from app.answering.generating.footnote_writer import FootnoteWriter
from app.answering.languages.refusals import unsure
from app.answering.languages.table import REFUSAL
from app.answering.metering.token_usage import ModelCall, Purpose
from app.answering.outcome import Outcome
from app.answering.prepared import PreparationCost, Prepared
from app.answering.prompt import Prompt
from app.answering.question import Question
from app.answering.quoting.quotes import Outcome as Chosen
from app.answering.quoting.quotes import Quote, Selection
from app.answering.quoting.rendering import quotation
from app.types import Principal, Role
from generation.types import Completion, FinishReason, SamplingParams, Timings
from retrieval.types import Context, Scope, Span
from tests.app.answering.metered import meter_of
from tests.app.answering.metering.test_meter import HeldEngine
from tests.app.answering.sources import source


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
        meter=meter_of(question),
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
    engine = HeldEngine()
    asked = prepared()
    asked = replace(asked, meter=meter_of(asked.question, engine=engine))
    asked.meter.generating(Purpose.ANSWER, Prompt(()), SamplingParams(max_tokens=8))
    engine.observers[0].finish(completion)
    return Outcome(prepared=asked, model="m", completion=completion).generated(writer)


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


TEXT = "The plant in Oslo closed on 4 May. Nobody was hurt."
SENTENCE = TEXT[:34]
ASKED = "When did the plant close?"
SURE, NEARLY_SURE = (1 + CONFIRMED) / 2, CONFIRMED / 2


CHOSEN = (
    ModelCall(purpose=Purpose.LOCATE, model="reader", prompt_tokens=7),
    ModelCall(purpose=Purpose.EXTRACT, model="embedder", prompt_tokens=5),
)


def by_quotes(score: float, outcome: Chosen, **fields: Any) -> Answer:
    """The answer to a question that quotes answer: one sentence with its date highlighted."""
    shown = source(TEXT)
    quote = Quote(shown, Span(0, 34), SENTENCE, score, Span(28, 33))
    selection = Selection(() if outcome == "refused" else (quote,), score, outcome, decides=True, threshold=0.5)
    asked = replace(
        prepared(),
        question=replace(prepared().question, **{"text": ASKED, **fields}),
        context=Context((shown,), (), 9),
        selection=selection,
        by_quotes=True,
    )
    for call in CHOSEN:
        with asked.meter.reading(call.purpose, model=call.model, revision="1", tokens=call.prompt_tokens):
            pass
    return Outcome(prepared=asked, model="m").ungenerated()


def test_quotes_are_an_answer_that_words_lead() -> None:
    given = by_quotes(SURE, "answered")

    assert (given.answered, given.reason, given.text) == (True, None, f"**4 May** [1]\n\n> {SENTENCE} [1]")
    assert given.lead is not None
    assert given.text[given.lead.start_char : given.lead.end_char] == "4 May"
    (quoted,) = given.quoted
    assert given.text[quoted.start_char : quoted.end_char] == SENTENCE
    assert [given.text[one.start_char : one.end_char] for one in quoted.highlights] == ["4 May"]
    assert (given.answers, quoted.answers) == (SURE, SURE)
    assert [one.verified for one in given.citations] == [True, True]
    assert given.usage.calls == CHOSEN
    assert (given.usage.prompt_tokens, given.usage.completion_tokens, given.usage.total_tokens) == (12, 0, 12)
    assert given.model == "reader", "the model that found the words, not the one that was not called"


def test_a_question_that_no_few_words_answer_has_no_lead() -> None:
    given = by_quotes(SURE, "answered", text="Why did the plant close?")

    assert (given.text, given.lead) == (f"> {SENTENCE} [1]", None)


def test_an_answer_that_is_less_than_almost_certain_is_not_verified() -> None:
    given = by_quotes(NEARLY_SURE, "answered")

    assert given.answered
    expected = len(given.quoted) + (given.lead is not None)
    assert [(one.answers, one.verified) for one in given.citations] == [(NEARLY_SURE, False)] * expected


def test_the_nearest_passages_are_shown_below_a_sentence_and_are_not_verified() -> None:
    given = by_quotes(SURE, "unsure")

    assert (given.answered, given.reason) == (False, "unsure")
    assert given.text == f"{unsure('')}\n\n> {SENTENCE} [1]"
    assert given.lead is None
    assert [(one.answers, one.verified) for one in given.citations] == [(SURE, False)]
    assert [given.text[one.start_char : one.end_char] for one in given.quoted] == [SENTENCE]
    assert (given.abstention.stage, given.answers) == ("reader", SURE)
    assert given.sources.cited == ("chunk_1",)


def test_a_refusal_quotes_nothing_and_says_how_likely_an_answer_was() -> None:
    given = by_quotes(0.125, "refused")

    assert (given.answered, given.reason, given.text) == (False, "not_in_sources", REFUSAL)
    assert (given.citations, given.quoted, given.lead, given.answers) == ((), (), None, 0.125)


@pytest.mark.parametrize(("score", "outcome"), [(SURE, "answered"), (SURE, "unsure"), (0.125, "refused")])
def test_in_json_every_outcome_is_a_document(score: float, outcome: Chosen) -> None:
    given = by_quotes(score, outcome, format="json", json_schema=ANSWER_SCHEMA)
    document = json.loads(given.text)

    said = {"answered": "4 May", "unsure": SENTENCE, "refused": REFUSAL}[outcome]
    assert document == {"answer": said, "sources": [] if outcome == "refused" else [1]}


def generated(text: str, score: float, *, quotes: bool = False) -> Answer:
    """A generated answer from a source whose first sentence answers with this probability."""
    shown = source(TEXT)
    quote = Quote(shown, Span(0, 34), SENTENCE, score)
    asked = replace(
        prepared(),
        context=Context((shown,), (), 9),
        selection=Selection((quote,), score, "answered", probabilities=((1, Span(0, 34), score),)),
    )
    writer = FootnoteWriter(asked.context.sources)
    writer.feed(text)
    writer.finish()
    if quotes:
        writer.quote(quotation([quote], form="markdown", pages={}))
    completion = Completion("req_1", text, (1, 2), FinishReason.STOP, 0, 0, 2, Timings(1.0, 2.0, 3.0))
    return Outcome(prepared=asked, model="m", completion=completion).generated(writer)


@pytest.mark.parametrize(
    ("text", "score", "expected"),
    [
        (f"{SENTENCE} [1]", SURE, [(SURE, True)]),
        (f"{SENTENCE} [1]", NEARLY_SURE, [(NEARLY_SURE, False)]),
        ("Nobody was hurt. [1]", SURE, [(0.0, False)]),
    ],
)
def test_a_generated_answer_is_as_likely_to_answer_as_what_it_cites(
    text: str, score: float, expected: list[tuple[float, bool]]
) -> None:
    given = generated(text, score)

    assert [(one.answers, one.verified) for one in given.citations] == expected
    assert given.answers == expected[0][0]


def test_a_generated_answer_that_cites_nothing_is_not_known_to_answer() -> None:
    given = generated("Lavender blooms in June.", SURE)

    assert (given.answers, given.citations) == (0.0, ())


def test_quotes_behind_a_generated_answer_verify_nothing_that_it_says() -> None:
    given = generated("Ninety zeppelins were sold at auction. [1]", SURE, quotes=True)

    assert [one.verified for one in given.citations] == [False, True]
    (quoted,) = given.quoted
    assert given.text[quoted.start_char : quoted.end_char] == SENTENCE


def test_where_nothing_was_selected_nothing_is_estimated() -> None:
    given = answer(FinishReason.STOP)

    assert (given.answers, given.lead, given.quoted) == (None, None, ())
