"""app.tuning.span_reader.calibration: a reader with known margins gets known thresholds, shares and probabilities."""

import json
import math
import re
from collections.abc import Sequence
from dataclasses import asdict, replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.evaluation.squad import contains_any
from app.tuning.adapter.packs import Corpus
from app.tuning.span_reader.calibration import ALL, Mark, area_under_curve, calibrate, fit, least_answered, marker_of
from app.tuning.span_reader.cases import SHOWN, Kind, cases_of
from retrieval.reader_config import Calibration
from tests.app.tuning.drawers import FIRST, corpus_of, drawers, numbers

COUNT = 40


@pytest.fixture(scope="module")
def corpus():
    return corpus_of(drawers(COUNT))


def known(question: str, passages: Sequence[str]) -> list[Mark | None]:
    """Margins by the number asked for.

    The right passage gets 0, 1, … by question, and every fourth answer is beside the point. Where no passage is
    right a margin is 20.5 for odd numbers and -1 for even ones; a changed question gets -50.
    """
    asked = int(re.findall(r"\d+", question)[0])
    about = numbers(passages)
    found: list[Mark | None] = []
    for number, passage in zip(about, passages, strict=True):
        at = passage.index("item" if asked % 4 == 0 else "drawer d")
        end = at + len(f"drawer d{number}")
        if asked < FIRST or " not " in question:
            margin = -50.0
        elif number == asked:
            margin = float(asked - FIRST)
        else:
            margin = 20.5 if asked % 2 and asked not in about else -1.0
        found.append(Mark(at, end, margin))
    return found


@pytest.fixture(scope="module")
def calibrated(corpus):
    return calibrate([corpus], known, seed=3)


def test_the_threshold_refuses_one_answerable_question_in_ten(calibrated):
    found = calibrated.measured[ALL]

    # Margins are 0, 1, … 39: four lie below the fifth, and it is answered.
    calibration = calibrated.calibration
    assert calibration.threshold == calibration.probability(4.0)
    assert found.refused[Kind.ANSWERABLE] == 4 / COUNT


def test_refused_shares_and_areas_are_those_of_the_margins(calibrated):
    found = calibrated.measured[ALL]

    assert {found.cases[kind] for kind in Kind if kind is not Kind.PERTURBED} == {COUNT}
    assert 0 < found.cases[Kind.PERTURBED] <= COUNT  # not every question can be changed
    for kind in (Kind.NEAR, Kind.RANDOM):
        assert found.refused[kind] == 0.5
        # Against -1 every margin but that of the first questions wins; against 20.5 those of 21 to 39 do.
        assert found.area_under_curve[kind] == pytest.approx(0.5 + 0.5 * 19 / COUNT)
    assert found.refused[Kind.PERTURBED] == 1.0
    assert found.area_under_curve[Kind.PERTURBED] == 1.0


def test_answers_are_judged_where_the_best_margin_points(calibrated):
    found = calibrated.measured[ALL]

    assert found.contains == 0.75
    assert found.right_passage == 1.0
    assert 0.75 <= found.f1 < 1.0


def test_every_set_has_figures_of_its_own_and_those_of_all_together(corpus, calibrated):
    other = corpus_of(drawers(COUNT // 2, name="fewer"))

    found = calibrate([corpus, other], known, seed=3).measured

    assert set(found) == {ALL, "drawers", "fewer"}
    assert found["drawers"].cases == calibrated.measured["drawers"].cases
    assert found[ALL].cases[Kind.NEAR] == COUNT + COUNT // 2
    assert json.loads(json.dumps(asdict(calibrated)))["measured"][ALL]["contains"] == 0.75


def test_the_same_seed_gives_the_same_calibration(corpus, calibrated):
    assert calibrate([corpus], known, seed=3) == calibrated
    assert cases_of(corpus, questions=9, seed=3) == cases_of(corpus, questions=9, seed=3)
    assert cases_of(corpus, questions=9, seed=3) != cases_of(corpus, questions=9, seed=4)


def test_a_reader_that_has_learnt_nothing_is_refused(corpus):
    def contrary(question: str, passages: Sequence[str]) -> list[Mark | None]:
        return [mark and replace(mark, margin=-mark.margin) for mark in known(question, passages)]

    with pytest.raises(ValueError, match="learnt nothing"):
        calibrate([corpus], contrary, seed=3)


def test_without_questions_there_is_nothing_to_calibrate_on(corpus):
    with pytest.raises(ValueError, match="no held-back questions"):
        calibrate([Corpus(corpus.question_set, [])], known, seed=3)


def test_passages_without_text_are_passed_over(corpus, calibrated):
    def silent(question: str, passages: Sequence[str]) -> list[Mark | None]:
        return [mark if mark.margin != -1.0 else None for mark in known(question, passages) if mark]

    found = calibrate([corpus], silent, seed=3).measured[ALL]

    assert found.contains == calibrated.measured[ALL].contains
    assert found.cases[Kind.NEAR] == COUNT / 2
    assert found.refused[Kind.NEAR] == 0.0


def test_a_question_is_asked_of_the_right_passage_and_in_three_ways_of_none(corpus):
    cases = cases_of(corpus, questions=COUNT, seed=1)
    by_question = {question.text: question.answers for question in corpus.question_set.questions.values()}

    assert {case.kind for case in cases} == set(Kind)
    places = set()
    for case in cases:
        assert len(set(case.passages)) == SHOWN
        if case.kind is Kind.ANSWERABLE:
            holds = [contains_any(passage, case.golds) for passage in case.passages]
            assert holds == [place == case.right for place in range(SHOWN)]
            places.add(case.right)
        elif case.kind is Kind.PERTURBED:
            assert case.question not in by_question
        else:
            assert not any(contains_any(passage, by_question[case.question]) for passage in case.passages)
        assert case.kind is Kind.ANSWERABLE or (case.golds, case.right) == ((), None)
    assert places == set(range(SHOWN))


def test_no_more_questions_are_asked_than_wanted(corpus):
    cases = cases_of(corpus, questions=7, seed=1)

    assert sum(case.kind is Kind.ANSWERABLE for case in cases) == 7
    assert cases == cases_of(corpus, questions=COUNT, seed=1)[: len(cases)]


def test_a_set_of_too_few_passages_asks_nothing():
    assert cases_of(corpus_of(drawers(SHOWN)), questions=9, seed=1) == []


@pytest.mark.parametrize("count", [1, 7, 1000])
def test_margins_that_tell_the_two_apart_have_a_finite_slope(count):
    """Platt's targets are (n + 1) / (n + 2): at margins of 1 and -1 their log-odds, log(n + 1), are the slope."""
    margins = np.array([1.0] * count + [-1.0] * count)

    slope, bias = fit(margins, margins > 0)

    assert slope == pytest.approx(math.log(count + 1))
    assert bias == pytest.approx(0, abs=1e-9)


def loss(margins: list[float], answerable: list[bool], slope: float, bias: float) -> float:
    """The weighted negative log-likelihood, term by term."""
    counts = {kind: answerable.count(kind) for kind in (True, False)}
    total = 0.0
    for margin, kind in zip(margins, answerable, strict=True):
        score = slope * margin + bias
        target = (counts[True] + 1) / (counts[True] + 2) if kind else 1 / (counts[False] + 2)
        total += (target * softplus(-score) + (1 - target) * softplus(score)) / (2 * counts[kind])
    return total


def softplus(score: float) -> float:
    """log(1 + exp(score)), of great scores too."""
    return max(score, 0.0) + math.log1p(math.exp(-abs(score)))


@settings(deadline=None, max_examples=30)
@given(
    with_=st.lists(st.floats(-15, 15, width=16), min_size=1, max_size=12),
    without=st.lists(st.floats(-15, 15, width=16), min_size=1, max_size=12),
)
def test_no_slope_and_bias_beside_the_fitted_ones_are_likelier(with_, without):
    margins, answerable = with_ + without, [True] * len(with_) + [False] * len(without)

    slope, bias = fit(np.array(margins), np.array(answerable))

    best = loss(margins, answerable, slope, bias)
    for turn in range(8):
        aside, up = 1e-2 * math.cos(turn * math.pi / 4), 1e-2 * math.sin(turn * math.pi / 4)
        assert best <= loss(margins, answerable, slope + aside, bias + up) + 1e-12


@given(
    positive=st.lists(st.integers(-5, 5), min_size=1, max_size=20),
    negative=st.lists(st.integers(-5, 5), min_size=1, max_size=20),
)
def test_the_area_under_the_curve_is_the_share_of_pairs_in_order(positive, negative):
    pairs = [(one > other) + 0.5 * (one == other) for one in positive for other in negative]

    found = area_under_curve(np.array(positive, dtype=np.float64), np.array(negative, dtype=np.float64))

    assert found == pytest.approx(sum(pairs) / len(pairs))


@given(margins=st.lists(st.floats(-50, 50), min_size=1, max_size=50, unique=True), refused=st.sampled_from((0.1, 0.25)))
def test_the_least_answered_margin_leaves_the_share_below_it(margins, refused):
    least = least_answered(np.array(margins), refused=refused)

    assert sum(margin < least for margin in margins) == int(refused * len(margins))


def test_a_model_marks_what_the_reader_that_serves_it_points_at(tmp_path):
    from retrieval.span_reader import EncoderSpanReader
    from tests.retrieval.reader_folder import VOCABULARY, build_base, tokenizer, trained

    spelling = tokenizer(VOCABULARY)
    spelling.no_truncation()
    spelling.no_padding()
    model = trained(build_base(tmp_path))
    calibration = Calibration(slope=0.5, bias=-1.0)
    reader = EncoderSpanReader(model, spelling, name="tiny", revision="0", calibration=calibration, batch_tokens=400)
    passages = ["acme revenue rose", "", "cats of the dogs " * 150, "winter"]

    marks = marker_of(model, spelling)("revenue of acme", passages)

    for mark, pointer in zip(marks, reader.read("revenue of acme", passages), strict=True):
        assert (mark is None) == (pointer is None)
        if mark is not None and pointer is not None:
            assert (mark.start, mark.end) == (pointer.start, pointer.end)
            assert calibration.probability(mark.margin) == pytest.approx(pointer.probability, abs=1e-4)
    assert marker_of(model, spelling)("revenue", [""]) == [None]
