"""app.answering.abstention: when Footnote refuses, stage by stage."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.answering.abstention import without_generation
from app.answering.answers.answer import AbstentionReport
from app.answering.answers.parts import NoteCode, NotePart, Reason, RefusedPart, of_kind
from app.answering.formats.answer_formats import ANSWER_SCHEMA
from app.answering.generating.footnote_writer import FootnoteWriter
from app.answering.generating.refusing import (
    after_generation,
    is_unconfirmed,
    refused_before_generation,
    watched_refusal,
)
from app.answering.generating.wording import Wording
from app.answering.languages.other_language import OtherLanguage
from app.answering.languages.refusals import no_evidence, unsure
from app.answering.languages.table import REFUSAL, languages
from app.answering.question import AnswerDefaults, Question
from app.answering.retrieving.evidence import evidence_score, with_evidence
from app.answering.states.reading import Decision, Extract, Selection
from app.answering.states.sources import Grounding
from app.types import Principal, Role
from generation.types import Abstention, Completion, FinishReason, Timings
from retrieval.types import Context, Hit, Scope, Span
from tests.app.answering.groundings import grounding_of
from tests.app.answering.part_texts import require_tiling, text_of, texts_of
from tests.app.answering.sources import REPORT, source
from tests.generation.fakes import LetterTokenizer
from tests.retrieval.fakes import ranked

REVENUE = "How did revenue develop?"


def alike(text: str, cosine: float | None) -> Hit:
    (hit,) = ranked(text)
    return replace(hit, scores=replace(hit.scores, dense=cosine))


@pytest.mark.parametrize(
    ("text", "cosine", "evident"),
    [
        ("Sales.", 0.4, True),
        ("Sales.", 0.38, False),
        ("Revenue.", 0.25, True),
        ("Revenue.", 0.2, False),
        ("Sales.", None, False),
    ],
)
def test_meaning_counts_and_shared_words_make_up_for_some_of_it(text: str, cosine: float | None, evident: bool) -> None:
    assert (evidence_score(REVENUE, [alike(text, cosine)]) >= 0.3) == evident


@pytest.mark.parametrize("cosine", [-0.5, None])
def test_most_of_the_words_are_evidence_whatever_the_embedder_says(cosine: float | None) -> None:
    far = alike("The part XK-42 is sold in Oslo.", cosine)

    assert evidence_score("Is part XK-42 sold?", [far]) >= 0.3
    assert evidence_score("Is part XK-43 red, cheap, and available?", [far]) < 0.3


def test_nothing_found_is_no_evidence() -> None:
    assert evidence_score(REVENUE, []) == 0


def test_a_question_without_a_content_word_has_only_its_meaning() -> None:
    assert evidence_score("What is it?", [alike("What is it?", None)]) == 0
    assert evidence_score("What is it?", [alike("It is.", 0.5)]) >= 0.3


hits = st.lists(
    st.builds(
        alike,
        st.lists(st.sampled_from(["revenue", "develop", "rain", "oslo"]), min_size=1, max_size=4).map(" ".join),
        st.none() | st.floats(-1, 1),
    ),
    max_size=5,
)


@given(found=hits, more=hits)
def test_a_score_is_a_share_and_finding_more_never_lowers_it(found: list[Hit], more: list[Hit]) -> None:
    assert 0 <= evidence_score(REVENUE, found) <= evidence_score(REVENUE, [*found, *more]) <= 1


@given(cosines=st.tuples(st.floats(-1, 1), st.floats(-1, 1)).map(sorted), text=st.sampled_from(["Revenue.", "Rain."]))
def test_of_two_passages_with_the_same_words_the_nearer_one_scores_at_least_as_much(
    cosines: list[float], text: str
) -> None:
    low, high = (evidence_score(REVENUE, [alike(text, cosine)]) for cosine in cosines)

    assert low <= high


QUESTION = Question(
    request_id="req_1",
    endpoint="ask",
    principal=Principal("t", "u", "k", Role.READER),
    text=REVENUE,
    scope=Scope(tenant_id="t"),
)
LIMITS = AnswerDefaults(
    max_context_tokens=100, max_output_tokens=10, min_evidence=0.3, max_waiting=1, abstention_threshold=0.7
)
EVIDENCE = AbstentionReport(score=0.8, threshold=0.3)
GREEK = OtherLanguage("It is Greek.", "Ελληνικά")
EMPTY, SHOWN = Context((), (), 0), Context((source(REPORT),), (), 10)
COMPLETION = Completion("req_1", "", (1,), FinishReason.STOP, 0, 0, 1, Timings(1.0, 2.0, 3.0), abstention=0.4)


def grounded(
    question: Question = QUESTION, context: Context = SHOWN, *, note: OtherLanguage | None = None
) -> Grounding:
    return grounding_of(question, context, evidence=EVIDENCE, note=note)


def selected(score: float, outcome: Decision, *, reads: bool = True) -> Selection:
    """A selection with the best sentence of the report, by a reader or without one."""
    quote = Extract(SHOWN.sources[0], Span(0, 66), REPORT[:66], score, Span(28, 38) if reads else None)
    quotes = () if outcome == "refused" else (quote,)
    return Selection(
        quotes,
        score,
        outcome,
        decides=reads,
        threshold=0.5,
        probabilities=((1, Span(0, 66), score),),
    )


def written(text: str, *, strict: bool = False) -> FootnoteWriter:
    writer = FootnoteWriter(SHOWN.sources, strict=strict, refusal=REFUSAL)
    writer.feed(text)
    writer.finish()
    return writer


def test_hits_that_are_no_evidence_are_not_presented() -> None:
    hits = (alike("Sales.", 0.38),)

    assert with_evidence(REVENUE, hits, minimum=0.2)[0] == hits
    none, report = with_evidence(REVENUE, hits, minimum=0.3)
    assert none == ()
    assert (report.stage, report.score, report.threshold) == (None, evidence_score(REVENUE, hits), 0.3)


@pytest.mark.parametrize(("asked", "threshold"), [(None, 0.7), (0.2, 0.2)])
def test_the_questions_threshold_precedes_the_servers(asked: float | None, threshold: float) -> None:
    assert LIMITS.refused_from(replace(QUESTION, abstention_threshold=asked)) == threshold


def test_without_sources_a_question_is_refused_unless_it_wants_an_answer_anyway() -> None:
    assert refused_before_generation(QUESTION, EMPTY, None)
    assert refused_before_generation(replace(QUESTION, json_schema="{}"), EMPTY, None)
    assert not refused_before_generation(replace(QUESTION, on_no_evidence="answer"), EMPTY, None)
    assert not refused_before_generation(QUESTION, SHOWN, None)


def test_the_quotes_refuse_where_a_reader_read_and_the_question_allows_it() -> None:
    refused = selected(0.1, "refused")

    assert refused_before_generation(QUESTION, SHOWN, refused)
    assert not refused_before_generation(QUESTION, SHOWN, selected(0.5, "answered"))
    assert not refused_before_generation(QUESTION, SHOWN, selected(0.4, "unsure"))
    assert not refused_before_generation(QUESTION, SHOWN, selected(0.1, "refused", reads=False))
    assert not refused_before_generation(replace(QUESTION, on_no_evidence="answer"), SHOWN, refused)
    assert not refused_before_generation(replace(QUESTION, json_schema="{}"), SHOWN, refused)
    assert refused_before_generation(replace(QUESTION, json_schema=ANSWER_SCHEMA), SHOWN, refused)


def test_the_first_token_is_watched_where_prose_answers_from_sources() -> None:
    tokenizer = LetterTokenizer()
    watched = watched_refusal(QUESTION, SHOWN, tokenizer=tokenizer, limits=LIMITS, wording=Wording())

    assert watched == Abstention(tuple(tokenizer.encode(REFUSAL)), 0.7)
    assert watched_refusal(QUESTION, EMPTY, tokenizer=tokenizer, limits=LIMITS, wording=Wording()) is None
    assert (
        watched_refusal(
            replace(QUESTION, json_schema="{}"), SHOWN, tokenizer=tokenizer, limits=LIMITS, wording=Wording()
        )
        is None
    )


@pytest.mark.parametrize(
    ("context", "selection", "expected"),
    [
        (EMPTY, None, ("no_evidence", "retrieval", 0.8, 0.3, no_evidence(""))),
        (SHOWN, selected(0.125, "refused"), ("not_in_sources", "reader", 0.875, 0.5, REFUSAL)),
        (SHOWN, selected(0.125, "refused", reads=False), ("not_in_sources", "reader", 0.875, 0.5, REFUSAL)),
        (SHOWN, selected(0.375, "unsure"), ("unsure", "reader", 0.625, 0.5, unsure(""))),
    ],
)
def test_the_stage_that_refused_before_generation_is_reported(
    context: Context, selection: Selection | None, expected: tuple[str, str, float, float, str]
) -> None:
    finished = without_generation(grounded(context=context), selection)
    report = finished.abstention

    assert (finished.reason, report.stage, report.score, report.threshold, finished.text) == expected
    assert finished.reason is not None
    assert finished.reason.refuses or finished.reason is Reason.UNSURE


def test_the_sentence_above_the_nearest_passages_is_in_the_questions_language() -> None:
    german = replace(QUESTION, text="Wie hat sich der Umsatz in diesem Jahr entwickelt?")
    finished = without_generation(grounded(german), selected(0.4, "unsure"))

    assert finished.text == languages()["de"].texts.unsure


@pytest.mark.parametrize(
    ("context", "selection", "text"),
    [
        (EMPTY, None, f"{no_evidence('')}\n\nIt is Greek."),
        (SHOWN, selected(0.125, "refused"), f"{REFUSAL}\n\nIt is Greek."),
        (SHOWN, selected(0.375, "unsure"), f"It is Greek.\n\n{unsure('')}"),
        (SHOWN, selected(0.625, "answered"), ""),
    ],
)
def test_the_note_follows_a_refusal_and_precedes_the_sentence_above_the_nearest_passages(
    context: Context, selection: Selection | None, text: str
) -> None:
    assert without_generation(grounded(context=context, note=GREEK), selection).text == text


@pytest.mark.parametrize(("context", "reason"), [(EMPTY, Reason.NO_EVIDENCE), (SHOWN, Reason.NOT_IN_SOURCES)])
def test_a_refusal_and_its_note_are_two_parts_that_say_why(context: Context, reason: Reason) -> None:
    selection = selected(0.125, "refused") if context is SHOWN else None
    found = without_generation(grounded(context=context, note=GREEK), selection)
    refused, said = found.parts

    require_tiling(found.text, found.parts)
    assert isinstance(refused, RefusedPart)
    assert (refused.reason, text_of(found.text, said)) == (reason, GREEK.text)
    assert isinstance(said, NotePart)
    assert (said.code, said.language) == (NoteCode.OTHER_LANGUAGE, GREEK.language)


def test_nearest_passages_are_below_two_notes_of_which_the_first_names_a_language() -> None:
    found = without_generation(grounded(note=GREEK), selected(0.375, "unsure"))

    require_tiling(found.text, found.parts)
    assert texts_of(found.text, found.parts) == [("note", GREEK.text), ("note", unsure(""))]
    assert [(part.code, part.language) for part in of_kind(found.parts, NotePart)] == [
        (NoteCode.OTHER_LANGUAGE, GREEK.language),
        (NoteCode.NEAREST_PASSAGES, None),
    ]


def test_a_dry_run_has_no_note() -> None:
    dry = replace(QUESTION, dry_run=True)

    assert without_generation(grounded(dry, note=GREEK), selected(0.125, "refused")).text == ""


def test_quotes_are_an_answer_and_a_dry_run_is_none() -> None:
    answered = selected(0.625, "answered")
    asked = replace(QUESTION, dry_run=True)
    quoted = without_generation(grounded(), answered)
    dry = without_generation(grounded(asked, EMPTY), None)
    dry_with_sources = without_generation(grounded(asked), answered)

    assert (quoted.reason, quoted.abstention, quoted.text) == (None, AbstentionReport(None, 0.375, 0.5), "")
    assert (dry.reason, dry.abstention.stage, dry.text) == ("dry_run", "retrieval", "")
    assert (dry_with_sources.reason, dry_with_sources.abstention) == ("dry_run", EVIDENCE)


@pytest.mark.parametrize(
    ("text", "strict", "failed", "reason", "stage"),
    [
        ("Revenue rose 12 percent to 48 million dollars in 2025.", False, False, None, None),
        (REFUSAL, False, False, "not_in_sources", "model"),
        (f"{REFUSAL} [1]", False, False, "not_in_sources", "model"),
        ("Lavender blooms in June.", True, False, "not_verified", "verifier"),
        (REFUSAL, False, True, "not_in_sources", None),
    ],
)
def test_the_written_answer_decides_the_final_refusal_reason_and_stage(
    text: str, strict: bool, failed: bool, reason: str | None, stage: str | None
) -> None:
    ended, report = after_generation(
        written(text, strict=strict),
        COMPLETION,
        context=SHOWN,
        selection=selected(0.5, "answered"),
        threshold=0.7,
        failed=failed,
    )

    assert (ended, report.stage) == (reason, stage)
    assert ended is None or ended.refuses
    assert (report.score, report.threshold) == (0.5, 0.7)


@pytest.mark.parametrize(
    ("selection", "refusing", "score"),
    [
        (selected(0.5, "answered"), 0.4, 0.5),
        (selected(0.75, "answered"), 0.4, 0.4),
        (selected(0.125, "refused", reads=False), 0.4, 0.4),
        (None, 0.4, 0.4),
        (selected(0.5, "answered"), None, None),
    ],
)
def test_the_doubt_is_the_greater_of_the_models_and_the_readers(
    selection: Selection | None, refusing: float | None, score: float | None
) -> None:
    completion = replace(COMPLETION, abstention=refusing)
    _, report = after_generation(
        written("Lavender."), completion, context=SHOWN, selection=selection, threshold=0.7, failed=False
    )

    assert report.score == score
    assert report.threshold == (None if refusing is None else 0.7)


@pytest.mark.parametrize(
    ("question", "text", "strict", "unconfirmed"),
    [
        (REVENUE, "Lavender blooms in June.", False, True),
        (REVENUE, "Lavender blooms in June.", True, True),
        (REVENUE, "Revenue rose 12 percent to 48 million dollars in 2025.", False, False),
        (REVENUE, REFUSAL, False, False),
        ("Wie hat sich der Umsatz entwickelt?", "Lavender blooms in June.", False, False),
    ],
)
def test_an_answer_of_which_nothing_is_verified_is_unconfirmed(
    question: str, text: str, strict: bool, unconfirmed: bool
) -> None:
    asked = replace(QUESTION, text=question)

    assert is_unconfirmed(asked, SHOWN, written(text, strict=strict), COMPLETION) == unconfirmed
    assert not is_unconfirmed(asked, EMPTY, written(text, strict=strict), COMPLETION)


@pytest.mark.parametrize(("error", "unconfirmed"), [(None, True), ("The model failed.", False)])
def test_an_answer_that_went_round_in_a_circle_is_unconfirmed_whatever_it_cites(
    error: str | None, unconfirmed: bool
) -> None:
    answer = written("Revenue rose 12 percent to 48 million dollars in 2025.")
    circle = replace(COMPLETION, finish_reason=FinishReason.REPETITION, error=error)

    assert is_unconfirmed(replace(QUESTION, text=REVENUE), SHOWN, answer, circle) == unconfirmed
