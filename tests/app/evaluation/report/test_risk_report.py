"""app.evaluation.report.answer_report judges a run's scores at other thresholds."""

from typing import Any

from app.evaluation.record import SetRun
from app.evaluation.report.answer_report import FALSE_REFUSALS, HEAD, operating_rows, outcomes_of
from app.evaluation.report.page import html_report
from app.evaluation.risk_coverage import ScoredQuestion
from tests.app.evaluation.runs import run_of, set_run
from tests.app.evaluation.thresholds import threshold_for


def found(values: dict[str, dict[str, float]], **abstention: dict[str, float]) -> SetRun:
    """A set's run with these values, and scores by group: `near_miss` is presented/near-miss."""
    groups = {
        "answers": "answers",
        "answerable": "presented/answerable",
        "near_miss": "presented/near-miss",
        "off_topic": "presented/off-topic",
    }
    update: dict[str, Any] = {"abstention": {groups[name]: scores for name, scores in abstention.items()}}
    return set_run("a", values).model_copy(update=update)


ASKED = found(
    {"answers/contains": {"q1": 1.0, "q2": 0.0, "q3": 1.0}, "answers/refusal": {"u1": 0.0, "u2": 1.0}},
    answers={"q1": 0.1, "q2": 0.6, "q3": 0.3, "u1": 0.4, "u2": 1.0},
)
PRESENTED = found(
    {
        "presented/answerable/contains": {"q1": 1.0, "q2": 0.0},
        "presented/near-miss/refusal": {"u1": 0.0},
        "presented/off-topic/refusal": {"q1": 1.0, "q2": 1.0},
    },
    answerable={"q1": 0.1, "q2": 0.6},
    near_miss={"u1": 0.4},
    off_topic={"q1": 0.9, "q2": 0.8},
)


def test_an_answer_is_right_when_it_holds_a_gold_answer_and_never_to_an_unanswerable_question() -> None:
    assert outcomes_of(ASKED) == {
        "answers": [
            ScoredQuestion(0.1, True, True),
            ScoredQuestion(0.6, True, False),
            ScoredQuestion(0.3, True, True),
            ScoredQuestion(0.4, False, False),
            ScoredQuestion(1.0, False, False),
        ]
    }


def test_answerables_stand_beside_each_group_that_holds_no_answer() -> None:
    outcomes = outcomes_of(PRESENTED)

    assert {name: [outcome.score for outcome in members] for name, members in outcomes.items()} == {
        "near-miss": [0.1, 0.6, 0.4],
        "off-topic": [0.1, 0.6, 0.9, 0.8],
    }
    assert [outcome.answerable for outcome in outcomes["off-topic"]] == [True, True, False, False]


def test_a_run_without_scores_or_with_questions_of_one_kind_has_no_curve() -> None:
    assert outcomes_of(set_run("a", {"answers/contains": {"q1": 1.0}, "answers/refusal": {"u1": 1.0}})) == {}
    assert outcomes_of(found({"answers/contains": {"q1": 1.0}}, answers={"q1": 0.1})) == {}
    assert operating_rows(set_run("a", {"answers/f1": {"q1": 1.0}})) == []


def test_a_score_of_a_question_without_a_figure_is_left_out() -> None:
    values = {"answers/contains": {"q1": 1.0}, "answers/refusal": {"u1": 1.0}}

    assert len(outcomes_of(found(values, answers={"q1": 0.1, "u1": 0.7, "failed": 0.2}))["answers"]) == 2


def test_each_row_is_what_a_share_of_false_refusals_buys() -> None:
    rows = operating_rows(PRESENTED)

    shown = [dict(zip(HEAD, row, strict=True)) for row in rows]
    assert [(row["questions"], row["threshold"]) for row in shown] == [
        ("near-miss (n=3)", "none"),
        ("off-topic (n=4)", "0.8"),
    ]
    assert shown[1]["answerables refused"] == "0.000"
    assert shown[1]["unanswerables refused"] == "1.000"
    assert shown[1]["risk"] == "0.500"


def test_the_rows_are_the_points_of_threshold_for() -> None:
    outcomes = outcomes_of(ASKED)["answers"]
    wanted = {threshold_for(outcomes, false_refusals=share).threshold for share in FALSE_REFUSALS}

    shown = {row[HEAD.index("threshold")] for row in operating_rows(ASKED)}
    assert shown == {"none" if threshold is None else f"{threshold:.3g}" for threshold in wanted}


def test_the_page_draws_a_curve_for_each_and_only_where_there_are_scores() -> None:
    page = html_report(run_of(PRESENTED))

    assert "Risk and coverage" in page
    assert page.count("<polyline") == 2
    assert "Risk and coverage" not in html_report(run_of(set_run("a", {"answers/f1": {"q1": 1.0}})))


def test_a_long_curve_is_thinned_to_its_end() -> None:
    questions = {f"q{at}": 1.0 for at in range(300)}
    values = {"answers/contains": questions, "answers/refusal": {"u": 0.0}}
    scores = {name: at / 400 for at, name in enumerate([*questions, "u"])}

    page = html_report(run_of(found(values, answers=scores)))

    assert 100 <= page.count('r="3"') <= 200 < len(scores)
    assert "nothing refused: coverage 1.000" in page
