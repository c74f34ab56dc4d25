"""app.answering.quoting.strategy: quotes are the answer, in all of the room, or the question is refused."""

import json
from dataclasses import replace
from typing import Any, cast

import pytest

from app.answering.citing.citation import CONFIRMED
from app.answering.fitting import Fitting
from app.answering.formats.answer_formats import ANSWER_SCHEMA
from app.answering.languages.refusals import unsure
from app.answering.languages.table import REFUSAL
from app.answering.metering.meter import Meter
from app.answering.metering.token_usage import Purpose
from app.answering.question import Limits, Question
from app.answering.quoting.quoter import Quoter
from app.answering.quoting.strategy import Quoting, by_quotes
from app.answering.states.finished import Finished
from app.answering.states.reading import Outcome, Quote, Selection
from app.answering.states.sources import Grounding
from app.answering.states.strategy import Sources
from app.db.contents import ContentRepository
from app.types import Principal, Role
from generation.errors import ContextLengthExceeded
from retrieval.types import Context, Scope, Span
from tests.app.answering.groundings import begun, grounding_of, retrieved, ships
from tests.app.answering.metered import meter_of
from tests.app.answering.pointing_reader import PointingReader
from tests.app.answering.sources import source
from tests.generation.fakes import LetterTokenizer
from tests.retrieval.fakes import HashingEmbedder

QUESTION = Question(
    request_id="req_1",
    endpoint="ask",
    principal=Principal("t", "u", "k", Role.READER),
    text="How many ships came in May?",
    scope=Scope(tenant_id="t"),
)
TEXT = "The plant in Oslo closed on 4 May. Nobody was hurt."
SENTENCE = TEXT[:34]
ASKED = replace(QUESTION, text="When did the plant close?")
SURE, NEARLY_SURE = (1 + CONFIRMED) / 2, CONFIRMED / 2


def quoting(*, window: int = 4000) -> Quoting:
    return Quoting(
        quoter=Quoter(embedder=HashingEmbedder(), reader=PointingReader("forty ships")),
        tokenizer=LetterTokenizer(),
        limits=Limits(max_context_tokens=900, max_output_tokens=100, min_evidence=0.0, max_waiting=8),
        window=window,
    )


def fitted(strategy: Quoting, question: Question, count: int, meter: Meter) -> Grounding:
    """The documents about ships that fit, without pages."""
    fitting = Fitting(cast(ContentRepository, None))
    found = fitting.fit(question, retrieved(question, ships(count, 2)), strategy.budget(question), meter)
    return replace(found, pages=dict)


@pytest.mark.parametrize(("wanted", "tokens"), [(None, 900), (300, 300), (100_000, 100_000)])
def test_quotes_need_no_prompt_and_leave_all_room_to_the_sources(wanted: int | None, tokens: int) -> None:
    strategy, question = quoting(window=len(QUESTION.text)), replace(QUESTION, max_context_tokens=wanted)
    meter = meter_of(question)

    budget = strategy.budget(question)
    grounding = fitted(strategy, question, 3, meter)
    selection = strategy.selection(grounding, meter_of(question))
    _, answer = begun(strategy.begin(grounding, meter))

    assert (budget.window, budget.output, budget.sources) == (tokens, 0, tokens)
    assert isinstance(answer, Finished)
    assert answer.prompt.ids == ()
    assert 0 < grounding.context.tokens <= tokens
    assert [source.hit.chunk.document_id for source in grounding.context.sources] == ["doc_1", "doc_2", "doc_3"][
        : len(grounding.context.sources)
    ]
    assert selection.quotes[0].words == "forty ships"
    assert [answer.text[one.start_char : one.end_char] for one in answer.quoted[0].highlights] == ["forty ships"]


def test_c9_a_question_longer_than_the_window_is_refused_where_quotes_answer_too() -> None:
    strategy = quoting(window=len(QUESTION.text) - 1)

    with pytest.raises(ContextLengthExceeded) as caught:
        strategy.budget(QUESTION)

    found = caught.value
    assert (found.prompt_tokens, found.max_tokens, found.context_window) == (
        len(QUESTION.text),
        0,
        len(QUESTION.text) - 1,
    )


@pytest.mark.parametrize(("dry_run", "count", "selects"), [(False, 2, True), (True, 2, False), (False, 0, False)])
def test_quotes_are_selected_where_there_are_sources_and_they_are_the_answer(
    dry_run: bool, count: int, selects: bool
) -> None:
    strategy, question = quoting(), replace(QUESTION, dry_run=dry_run)
    meter = meter_of(question)
    grounding = fitted(strategy, question, count, meter)

    sources, answer = begun(strategy.begin(grounding, meter))

    assert isinstance(answer, Finished)
    assert (answer.answers is not None) == bool(answer.quoted) == selects
    assert [call.purpose for call in meter.calls] == [Purpose.LOCATE, Purpose.EXTRACT] * selects
    assert sources == [Sources(grounding, final=True)] * selects


def test_an_answer_that_is_stopped_while_its_sources_are_read_is_a_cancelled_one() -> None:
    strategy, meter = quoting(), meter_of(QUESTION)
    beginning = strategy.begin(fitted(strategy, QUESTION, 2, meter), meter)
    next(beginning)
    meter.close()

    sources, answer = begun(beginning)

    assert (sources, answer) == ([], Finished(reason="cancelled", finish_reason="cancelled"))


def quoted(score: float, outcome: Outcome, **fields: Any) -> Finished:
    """The answer to a question that quotes answer: one sentence with its date highlighted."""
    shown = source(TEXT)
    quote = Quote(shown, Span(0, 34), SENTENCE, score, Span(28, 33))
    selection = Selection(() if outcome == "refused" else (quote,), score, outcome, decides=True, threshold=0.5)
    return by_quotes(grounding_of(replace(ASKED, **fields), Context((shown,), (), 9)), selection)


def test_quotes_are_an_answer_that_words_lead() -> None:
    given = quoted(SURE, "answered")

    assert (given.reason, given.text) == (None, f"**4 May** [1]\n\n> {SENTENCE} [1]")
    assert given.lead is not None
    assert given.text[given.lead.start_char : given.lead.end_char] == "4 May"
    (sentence,) = given.quoted
    assert given.text[sentence.start_char : sentence.end_char] == SENTENCE
    assert [given.text[one.start_char : one.end_char] for one in sentence.highlights] == ["4 May"]
    assert (given.answers, sentence.answers) == (SURE, SURE)
    assert [one.verified for one in given.citations] == [True, True]


def test_a_question_that_no_few_words_answer_has_no_lead() -> None:
    given = quoted(SURE, "answered", text="Why did the plant close?")

    assert (given.text, given.lead) == (f"> {SENTENCE} [1]", None)


def test_an_answer_that_is_less_than_almost_certain_is_not_verified() -> None:
    given = quoted(NEARLY_SURE, "answered")

    assert given.reason is None
    expected = len(given.quoted) + (given.lead is not None)
    assert [(one.answers, one.verified) for one in given.citations] == [(NEARLY_SURE, False)] * expected


def test_the_nearest_passages_are_shown_below_a_sentence_and_are_not_verified() -> None:
    given = quoted(SURE, "unsure")

    assert given.reason == "unsure"
    assert given.text == f"{unsure('')}\n\n> {SENTENCE} [1]"
    assert given.lead is None
    assert [(one.answers, one.verified) for one in given.citations] == [(SURE, False)]
    assert [given.text[one.start_char : one.end_char] for one in given.quoted] == [SENTENCE]
    assert (given.abstention.stage, given.answers) == ("reader", SURE)


def test_a_refusal_quotes_nothing_and_says_how_likely_an_answer_was() -> None:
    given = quoted(0.125, "refused")

    assert (given.reason, given.text) == ("not_in_sources", REFUSAL)
    assert (given.citations, given.quoted, given.lead, given.answers) == ((), (), None, 0.125)


@pytest.mark.parametrize(("score", "outcome"), [(SURE, "answered"), (SURE, "unsure"), (0.125, "refused")])
def test_in_json_every_outcome_is_a_document(score: float, outcome: Outcome) -> None:
    given = quoted(score, outcome, format="json", json_schema=ANSWER_SCHEMA)
    document = json.loads(given.text)

    said = {"answered": "4 May", "unsure": SENTENCE, "refused": REFUSAL}[outcome]
    assert document == {"answer": said, "sources": [] if outcome == "refused" else [1]}
