"""app.answering.quoting.strategy: quotes are the answer, in all of the room, or the question is refused."""

import json
from dataclasses import replace
from typing import Any

import pytest

from app.answering.answers.parts import JsonPart, Reason
from app.answering.formats.answer_formats import ANSWER_SCHEMA
from app.answering.languages.other_language import OtherLanguage
from app.answering.languages.refusals import no_evidence, unsure
from app.answering.languages.table import REFUSAL
from app.answering.metering.token_usage import Purpose
from app.answering.quoting.strategy import Quoting, by_quotes
from app.answering.states.finished import Finished
from app.answering.states.reading import Decision, Extract, Selection
from app.answering.states.strategy import Sources
from generation.errors import ContextLengthExceeded
from retrieval.types import Context, Span
from tests.app.answering.groundings import (
    LIMITS,
    NEARLY_SURE,
    QUESTION,
    SENTENCE,
    SURE,
    TEXT,
    begun,
    fitted,
    grounding_of,
    ship_reader,
)
from tests.app.answering.metered import meter_of
from tests.app.answering.part_texts import (
    highlighted_in,
    lead_in,
    quoted_in,
    quotes_in,
    require_tiling,
    text_of,
    texts_of,
)
from tests.app.answering.sources import source
from tests.generation.fakes import LetterTokenizer

ASKED = replace(QUESTION, text="When did the plant close?")


def quoting(*, window: int = 4000) -> Quoting:
    return Quoting(
        passage_reader=ship_reader(),
        tokenizer=LetterTokenizer(),
        limits=LIMITS,
        window=window,
    )


@pytest.mark.parametrize(("wanted", "tokens"), [(None, 900), (300, 300), (100_000, 100_000)])
def test_quotes_need_no_prompt_and_leave_all_room_to_the_sources(wanted: int | None, tokens: int) -> None:
    strategy, question = quoting(window=len(QUESTION.text)), replace(QUESTION, max_context_tokens=wanted)
    meter = meter_of(question)

    budget = strategy.budget(question)
    grounding = fitted(strategy, question, 3, meter)
    selection = strategy.selection(grounding, meter_of(question))
    assert selection is not None
    _, answer = begun(strategy.begin(grounding, meter))

    assert (budget.window, budget.output, budget.sources) == (tokens, 0, tokens)
    assert isinstance(answer, Finished)
    assert answer.prompt.ids == ()
    assert 0 < grounding.context.tokens <= tokens
    assert [source.hit.chunk.document_id for source in grounding.context.sources] == ["doc_1", "doc_2", "doc_3"][
        : len(grounding.context.sources)
    ]
    assert selection.quotes[0].words == "forty ships"
    assert highlighted_in(answer.text, answer.parts)[0] == ["forty ships"]


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
    assert (answer.probability is not None) == bool(quotes_in(answer.parts)) == selects
    assert [call.purpose for call in meter.calls] == [Purpose.LOCATE, Purpose.EXTRACT] * selects
    assert sources == [Sources(grounding, final=True)] * selects


def test_an_answer_that_is_stopped_while_its_sources_are_read_is_a_cancelled_one() -> None:
    strategy, meter = quoting(), meter_of(QUESTION)
    beginning = strategy.begin(fitted(strategy, QUESTION, 2, meter), meter)
    next(beginning)
    meter.close()

    sources, answer = begun(beginning)

    assert (sources, answer) == ([], Finished(reason=Reason.CANCELLED, finish_reason="cancelled"))


def quoted(score: float, outcome: Decision, *, note: OtherLanguage | None = None, **fields: Any) -> Finished:
    """The answer to a question that quotes answer: one sentence with its date highlighted."""
    shown = source(TEXT)
    quote = Extract(shown, Span(0, 34), SENTENCE, score, Span(28, 33))
    selection = Selection(() if outcome == "refused" else (quote,), score, outcome, decides=True, threshold=0.5)
    return by_quotes(grounding_of(replace(ASKED, **fields), Context((shown,), (), 9), note=note), selection)


def test_quotes_are_an_answer_that_words_lead() -> None:
    given = quoted(SURE, "answered")

    assert (given.reason, given.text) == (None, f"**4 May** [1]\n\n> {SENTENCE} [1]")
    lead = lead_in(given.parts)
    assert lead is not None
    assert text_of(given.text, lead) == "4 May"
    (sentence,) = quotes_in(given.parts)
    assert text_of(given.text, sentence.quoted) == SENTENCE
    assert highlighted_in(given.text, given.parts) == [["4 May"]]
    assert (given.probability, sentence.answers) == (SURE, SURE)
    assert [one.verified for one in given.citations] == [True, True]


def test_a_question_that_no_few_words_answer_has_no_lead() -> None:
    given = quoted(SURE, "answered", text="Why did the plant close?")

    assert (given.text, lead_in(given.parts)) == (f"> {SENTENCE} [1]", None)


def test_an_answer_that_is_less_than_almost_certain_is_not_verified() -> None:
    given = quoted(NEARLY_SURE, "answered")

    assert given.reason is None
    expected = len(quotes_in(given.parts)) + (lead_in(given.parts) is not None)
    assert [(one.answers, one.verified) for one in given.citations] == [(NEARLY_SURE, False)] * expected


def test_the_nearest_passages_are_shown_below_a_sentence_and_are_not_verified() -> None:
    given = quoted(SURE, "unsure")

    assert given.reason == "unsure"
    assert given.text == f"{unsure('')}\n\n> {SENTENCE} [1]"
    assert lead_in(given.parts) is None
    assert [(one.answers, one.verified) for one in given.citations] == [(SURE, False)]
    assert quoted_in(given.text, given.parts) == [SENTENCE]
    assert (given.abstention.stage, given.probability) == ("reader", SURE)


def test_a_refusal_quotes_nothing_and_says_how_likely_an_answer_was() -> None:
    given = quoted(0.125, "refused")

    assert (given.reason, given.text) == ("not_in_sources", REFUSAL)
    assert (given.citations, quotes_in(given.parts), lead_in(given.parts)) == ((), [], None)
    assert given.probability == 0.125


@pytest.mark.parametrize(("score", "outcome"), [(SURE, "answered"), (SURE, "unsure"), (0.125, "refused")])
def test_in_json_every_outcome_is_a_document(score: float, outcome: Decision) -> None:
    given = quoted(score, outcome, format="json", json_schema=ANSWER_SCHEMA)
    document = json.loads(given.text)

    said = {"answered": "4 May", "unsure": SENTENCE, "refused": REFUSAL}[outcome]
    assert document == {"answer": said, "sources": [] if outcome == "refused" else [1]}


GREEK = OtherLanguage("It is Greek.", "Ελληνικά")
UNSURE = unsure("")


@pytest.mark.parametrize(
    ("score", "outcome", "note", "said"),
    [
        (SURE, "answered", None, [("lead", "**4 May** [1]"), ("quote", f"{SENTENCE} [1]")]),
        (SURE, "answered", GREEK, [("lead", "**4 May** [1]"), ("quote", f"{SENTENCE} [1]")]),
        (SURE, "unsure", None, [("note", UNSURE), ("quote", f"{SENTENCE} [1]")]),
        (SURE, "unsure", GREEK, [("note", GREEK.text), ("note", UNSURE), ("quote", f"{SENTENCE} [1]")]),
        (0.125, "refused", None, [("refusal", REFUSAL)]),
        (0.125, "refused", GREEK, [("refusal", REFUSAL), ("note", GREEK.text)]),
    ],
)
def test_each_character_of_an_answer_is_in_a_part_that_says_what_it_is(
    score: float, outcome: Decision, note: OtherLanguage | None, said: list[tuple[str, str]]
) -> None:
    given = quoted(score, outcome, note=note)

    require_tiling(given.text, given.parts, given.citations)
    assert texts_of(given.text, given.parts) == said


@pytest.mark.parametrize(
    ("score", "outcome", "said"),
    [
        (SURE, "answered", [("lead", "4 May [1]"), ("quote", f"“{SENTENCE}” [1]")]),
        (SURE, "unsure", [("note", UNSURE), ("quote", f"“{SENTENCE}” [1]")]),
        (0.125, "refused", [("refusal", REFUSAL)]),
    ],
)
def test_the_parts_of_plain_text_include_their_quotation_marks(
    score: float, outcome: Decision, said: list[tuple[str, str]]
) -> None:
    given = quoted(score, outcome, format="text")

    require_tiling(given.text, given.parts, given.citations)
    assert texts_of(given.text, given.parts) == said


@pytest.mark.parametrize(("score", "outcome"), [(SURE, "answered"), (SURE, "unsure"), (0.125, "refused")])
@pytest.mark.parametrize("note", [None, GREEK])
def test_json_is_one_part(score: float, outcome: Decision, note: OtherLanguage | None) -> None:
    given = quoted(score, outcome, note=note, format="json", json_schema=ANSWER_SCHEMA)

    require_tiling(given.text, given.parts, given.citations)
    assert given.parts == (JsonPart(start_char=0, end_char=len(given.text)),)


@pytest.mark.parametrize(
    ("fields", "said"),
    [({}, [("refusal", no_evidence(""))]), ({"dry_run": True}, [])],
    ids=["no evidence", "dry run"],
)
def test_an_answer_without_sources_is_its_refusal_alone(fields: dict[str, Any], said: list[tuple[str, str]]) -> None:
    given = by_quotes(grounding_of(replace(ASKED, **fields)), None)

    require_tiling(given.text, given.parts)
    assert texts_of(given.text, given.parts) == said
