"""app.answering.quoting.features and score: what makes a unit of the sources likelier to be an answer."""

from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.answering.quoting.candidates import candidates_of
from app.answering.quoting.features import Features, Read, features_of
from app.answering.quoting.score import (
    CERTAIN_WITH_JUDGE,
    CERTAIN_WITH_READER,
    CERTAIN_WITHOUT_READER,
    MOST_GAP,
    MOST_MARGIN,
    WITH_JUDGE,
    WITH_READER,
    WITHOUT_READER,
    certainty,
    certainty_values,
    logit,
    probability,
    promise,
    values,
)
from retrieval.types import Scores, Source
from tests.app.answering.sources import source

ALL = pytest.mark.parametrize(
    "weights", [WITH_JUDGE, WITH_READER, WITHOUT_READER], ids=["with a judge", "with a reader", "without one"]
)


def features(question: str, *texts: str) -> list[Features]:
    """Of each unit of each text, the texts being sources in the order of their rank."""
    sources = [ranked(source(text, number=number), 1 / number) for number, text in enumerate(texts, start=1)]
    return features_of(question, candidates_of(sources))


def plain(**changes: Any) -> Features:
    """Features of an ordinary unit, some of them changed."""
    (found,) = features("Did it rain?", "Rain fell in town.")
    ordinary: dict[str, Any] = {"share": 0.5, "lead": 0.0, **changes}
    return replace(found, **ordinary)


def ranked(found: Source, fused: float, *, rerank: float | None = None) -> Source:
    return replace(found, hit=replace(found.hit, scores=Scores(fused=fused, rerank=rerank)))


def scored(weights: Mapping[str, float], found: Features, *, cosine: float = 0.5, best: float = 0.5) -> float:
    return probability(logit(weights, values(found, cosine=cosine, best_cosine=best)))


def test_a_name_that_the_question_brings_along_is_not_the_one_it_asks_for() -> None:
    assert [found.fits for found in features("Who was in Oslo?", "It was in Oslo. It was Zoë Müller in Oslo.")] == [
        -1.0,
        1.0,
    ]


@pytest.mark.parametrize(
    ("question", "text", "fits"),
    [
        ("How many ships came?", "Forty ships came.", 1.0),
        ("How many ships came?", "Ships came.", -1.0),
        ("When did it close?", "It closed in May.", 1.0),
        ("When did it close?", "It closed at last.", -1.0),
        ("Why did it close?", "It closed in May.", 0.0),
    ],
)
def test_the_kind_of_answer_that_is_asked_for_is_looked_for(question: str, text: str, fits: float) -> None:
    assert [found.fits for found in features(question, text)] == [fits]


def test_shared_words_are_a_share_of_the_questions_and_their_lead_is_counted_from_the_best() -> None:
    best, other = features("Did rain fall in Oslo?", "Rain may fall in Oslo.", "Snow fell on Rome.")

    assert 1 >= best.share > other.share >= 0
    assert best.lead == 0
    assert other.lead == pytest.approx(best.share - other.share)


def test_what_the_passage_around_a_unit_says_of_the_question_is_counted_too() -> None:
    """The passage's other sentences and its headings may name what a sentence only means."""
    under = source("It opened in May. Ships came to Oslo.", heading="The harbour")
    first, _ = features_of("When did the harbour of Oslo open?", candidates_of([under]))

    assert 1 >= first.covered > first.share


def test_a_rerankers_order_comes_before_the_searchs() -> None:
    first = ranked(source("Rain fell.", number=1), 0.9, rerank=0.1)
    second = ranked(source("Snow fell.", number=2), 0.1, rerank=0.8)

    assert [found.rank for found in features_of("What fell?", candidates_of([first, second]))] == [1, 0]


def test_margins_and_evidence_are_kept_and_their_lead_is_counted_from_the_largest() -> None:
    found = features_of(
        "What fell?", candidates_of([source("Rain fell. Snow fell.")]), [Read(2.0, -1.0), Read(-3.0, 4.0)]
    )

    assert [(one.margin, one.margin_lead) for one in found] == [(2.0, 0.0), (-3.0, 5.0)]
    assert [(one.evidence, one.evidence_lead) for one in found] == [(-1.0, 5.0), (4.0, 0.0)]


def test_lines_that_may_be_headings_are_marked() -> None:
    assert [found.heading for found in features("What fell?", "Rain in Oslo\nSnow in Reno")] == [1.0, 1.0]


def test_nothing_has_no_features() -> None:
    assert features_of("What fell?", []) == []


@ALL
def test_among_equals_the_nearer_to_the_question_is_likelier(weights: Mapping[str, float]) -> None:
    assert scored(weights, plain(), cosine=0.2, best=0.6) < scored(weights, plain(), cosine=0.6, best=0.6)


@ALL
def test_among_equals_the_one_with_more_of_the_questions_words_is_likelier(weights: Mapping[str, float]) -> None:
    fewer = plain(share=0.1, lead=0.4)

    assert scored(weights, fewer) < scored(weights, plain())
    assert promise(fewer) < promise(plain())


@ALL
def test_among_equals_the_one_that_retrieval_ranks_higher_is_likelier(weights: Mapping[str, float]) -> None:
    lower = plain(rank=3)

    assert scored(weights, lower) < scored(weights, plain())
    assert promise(lower) < promise(plain())


def test_among_equals_the_one_of_which_the_reader_is_surer_is_likelier() -> None:
    less = plain(margin=-4.0, margin_lead=8.0)
    more = plain(margin=4.0)

    assert scored(WITH_READER, less) < scored(WITH_READER, more)
    assert promise(less) < promise(more)


def test_margins_beyond_the_largest_say_nothing_more() -> None:
    far, farther = (plain(margin=times * MOST_MARGIN) for times in (1, 5))
    behind, farther_behind = (
        plain(margin=-times * MOST_MARGIN, margin_lead=2 * times * MOST_MARGIN) for times in (1, 5)
    )

    assert scored(WITH_READER, far) == scored(WITH_READER, farther)
    assert scored(WITH_READER, behind) == scored(WITH_READER, farther_behind)


def test_without_a_reader_margins_count_nothing() -> None:
    assert scored(WITHOUT_READER, plain()) == scored(WITHOUT_READER, plain(margin=9.0, margin_lead=3.0))


def test_every_weight_has_its_value_and_every_value_a_weight() -> None:
    named = values(plain(), cosine=0.5, best_cosine=0.5).keys()

    for weights in (WITH_JUDGE, WITH_READER, WITHOUT_READER):
        assert weights.keys() == named
    assert WITH_READER["judge"] == WITH_READER["judge_lead"] == WITHOUT_READER["judge"] == 0.0


@ALL
@given(
    found=st.fixed_dictionaries(
        {one.name: st.integers(0, 1000) if one.name == "rank" else st.floats(-1e5, 1e5) for one in fields(Features)}
    ),
    cosine=st.floats(-1, 1),
)
def test_a_probability_is_never_certain(weights: Mapping[str, float], found: dict[str, Any], cosine: float) -> None:
    assert 0 < scored(weights, Features(**found), cosine=cosine, best=1.0) < 1


CERTAIN = pytest.mark.parametrize(
    "weights",
    [CERTAIN_WITH_JUDGE, CERTAIN_WITH_READER, CERTAIN_WITHOUT_READER],
    ids=["with a judge", "with a reader", "without one"],
)


def certain(weights: Mapping[str, float], *logits: float) -> float:
    """The certainty where candidates of these log-odds are alike in everything else."""
    alike = values(plain(), cosine=0.5, best_cosine=0.5)
    return certainty(weights, logits, [alike] * len(logits))


@CERTAIN
def test_every_value_of_the_best_candidate_has_its_weight(weights: Mapping[str, float]) -> None:
    named = certainty_values(values(plain(), cosine=0.5, best_cosine=0.5), best=1.0, next_best=0.0).keys()

    assert weights.keys() == named


@CERTAIN
def test_the_likelier_the_best_candidate_the_more_certain_is_the_answer(weights: Mapping[str, float]) -> None:
    assert certain(weights, -2.0, -3.0) < certain(weights, 2.0, 1.0)


@CERTAIN
def test_certainty_is_the_best_candidates_in_whichever_order_they_come(weights: Mapping[str, float]) -> None:
    assert certain(weights, -1.0, 3.0, 0.5) == certain(weights, 3.0, 0.5, -1.0)
    assert certain(weights, 3.0, 0.5, -1.0) == certain(weights, 3.0, 0.5)


@CERTAIN
def test_a_gap_beyond_the_largest_says_nothing_more(weights: Mapping[str, float]) -> None:
    assert certain(weights, 3.0, 3.0 - MOST_GAP) == certain(weights, 3.0, 3.0 - 5 * MOST_GAP)


@CERTAIN
@given(logits=st.lists(st.floats(-1e5, 1e5), min_size=1, max_size=4))
def test_nothing_is_ever_certain(weights: Mapping[str, float], logits: list[float]) -> None:
    assert 0 < certain(weights, *logits) < 1
