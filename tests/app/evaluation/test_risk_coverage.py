"""app.evaluation.risk_coverage: what each threshold of refusing costs and buys."""

import itertools
import random
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.evaluation.report.curves import risk_coverage_chart
from app.evaluation.risk_coverage import OperatingPoint, ScoredQuestion, area_under, risk_coverage
from tests.app.evaluation.thresholds import threshold_for

# Few distinct scores: ties are what goes wrong.
outcomes = st.lists(
    st.tuples(st.sampled_from([0.0, 0.1, 0.3, 0.5, 1.0]), st.sampled_from(["right", "wrong", "unanswerable"])).map(
        lambda pair: ScoredQuestion(pair[0], answerable=pair[1] != "unanswerable", correct=pair[1] == "right")
    ),
    min_size=1,
    max_size=12,
)


def asked(*kinds: tuple[float, str]) -> list[ScoredQuestion]:
    """Outcomes by score and "right", "wrong" or "unanswerable"."""
    return [ScoredQuestion(score, answerable=kind != "unanswerable", correct=kind == "right") for score, kind in kinds]


def naive(given: list[ScoredQuestion], threshold: float | None) -> OperatingPoint:
    """A threshold's point from the definition."""
    answered = [outcome for outcome in given if threshold is None or outcome.score < threshold]
    refused = [outcome for outcome in given if threshold is not None and outcome.score >= threshold]

    def share(part: int, whole: int) -> float:
        return part / whole if whole else 0.0

    return OperatingPoint(
        threshold,
        coverage=len(answered) / len(given),
        risk=share(sum(not outcome.correct for outcome in answered), len(answered)),
        false_refusals=share(sum(o.answerable for o in refused), sum(o.answerable for o in given)),
        true_refusals=share(sum(not o.answerable for o in refused), sum(not o.answerable for o in given)),
    )


@given(given=outcomes)
def test_every_point_is_what_its_threshold_does(given: list[ScoredQuestion]) -> None:
    points = risk_coverage(given)

    assert points == tuple(naive(given, point.threshold) for point in points)
    assert [point.threshold for point in points] == [*sorted({outcome.score for outcome in given}), None]


@given(given=outcomes)
def test_a_lower_threshold_answers_less_and_refuses_more_of_both_kinds(given: list[ScoredQuestion]) -> None:
    for lower, higher in itertools.pairwise(risk_coverage(given)):
        assert lower.coverage < higher.coverage
        assert lower.false_refusals >= higher.false_refusals
        assert lower.true_refusals >= higher.true_refusals


@given(given=outcomes, wanted=st.floats(0, 1))
def test_the_threshold_keeps_the_wanted_rate_and_no_lower_one_does(given: list[ScoredQuestion], wanted: float) -> None:
    chosen, points = threshold_for(given, false_refusals=wanted), risk_coverage(given)

    assert chosen.false_refusals <= wanted
    assert all(point.false_refusals > wanted for point in points[: points.index(chosen)])


def test_a_rate_that_is_no_share_is_refused() -> None:
    with pytest.raises(ValueError, match="between 0 and 1"):
        threshold_for(asked((0.1, "right")), false_refusals=1.1)


@given(given=outcomes, seed=st.integers(0, 99))
def test_the_area_does_not_depend_on_the_order(given: list[ScoredQuestion], seed: int) -> None:
    shuffled = random.Random(seed).sample(given, len(given))

    assert area_under(shuffled) == pytest.approx(area_under(given))
    assert 0 <= area_under(given) <= 1


@given(given=outcomes.filter(lambda given: len(given) <= 5))
def test_among_equal_scores_the_area_is_the_mean_over_all_orders(given: list[ScoredQuestion]) -> None:
    areas = []
    for order in itertools.permutations(given):
        if [outcome.score for outcome in order] == sorted(outcome.score for outcome in given):
            wrong = list(itertools.accumulate(not outcome.correct for outcome in order))
            areas.append(sum(count / place for place, count in enumerate(wrong, start=1)) / len(given))

    assert area_under(given) == pytest.approx(sum(areas) / len(areas))


def test_a_score_that_tells_right_from_wrong_has_a_smaller_area() -> None:
    good = asked((0.1, "right"), (0.2, "right"), (0.8, "wrong"), (0.9, "unanswerable"))
    blind = asked((0.5, "right"), (0.5, "right"), (0.5, "wrong"), (0.5, "unanswerable"))
    bad = asked((0.9, "right"), (0.8, "right"), (0.2, "wrong"), (0.1, "unanswerable"))

    assert area_under(good) < area_under(blind) < area_under(bad)
    assert area_under(blind) == pytest.approx(0.5)


def test_an_outcome_is_a_score_and_no_answer_to_an_unanswerable_question_is_right() -> None:
    with pytest.raises(ValueError, match="number"):
        ScoredQuestion(float("nan"), answerable=True, correct=True)
    with pytest.raises(ValueError, match="unanswerable"):
        ScoredQuestion(0.5, answerable=False, correct=True)


@given(curves=st.dictionaries(st.text(alphabet="a<&\"'", min_size=1, max_size=5), outcomes, max_size=8))
def test_a_chart_is_well_formed_and_has_every_point_that_answers_something(
    curves: dict[str, list[ScoredQuestion]],
) -> None:
    points = {name: risk_coverage(given) for name, given in curves.items()}

    drawn = ElementTree.fromstring(risk_coverage_chart(points, title='risk & "coverage"'))

    assert len(drawn.findall(".//circle")) == sum(len(curve) - 1 for curve in points.values())
    assert {text.text for text in drawn.findall(".//text[@class='value']")} == set(curves)
    for circle in drawn.iter("circle"):
        assert 0 <= float(circle.attrib["cx"]) <= 860
        assert 0 <= float(circle.attrib["cy"]) <= 320
