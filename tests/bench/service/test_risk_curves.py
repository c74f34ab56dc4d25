"""tests.bench.service.risk_curves: what each file of a measurement says of risk and coverage."""

import json
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pytest

from app.evaluation.report.curves import picture, risk_coverage_chart
from app.evaluation.risk_coverage import ScoredQuestion
from tests.app.evaluation.runs import run_of, set_run
from tests.bench.service.plain_questions.questions import load
from tests.bench.service.risk_curves import confirmed, drawn, outcomes_of


def written(tmp_path: Path, found: Any) -> Path:
    file = tmp_path / "found.json"
    file.write_text(found if isinstance(found, str) else json.dumps(found), encoding="utf-8")
    return file


def test_a_run_gives_each_group_with_scores(tmp_path: Path) -> None:
    values = {"answers/contains": {"q1": 1.0, "q2": 0.0}, "presented/answerable/contains": {"q1": 1.0}}
    found = set_run("squad", values).model_copy(
        update={"abstention": {"answers": {"q1": 0.1, "q2": 0.6}, "presented/answerable": {"q1": 0.2}}}
    )
    file = written(tmp_path, run_of(found).model_dump_json())
    sets = {name: outcomes for name, outcomes in outcomes_of(file) if outcomes}
    assert sets == {
        "squad": [
            ScoredQuestion(score=0.1, answerable=True, correct=True),
            ScoredQuestion(score=0.6, answerable=True, correct=False),
        ]
    }, "no group of answerable questions alone is shown as one with near misses"


def test_plain_questions_are_judged_and_scored_by_their_first_quote(tmp_path: Path) -> None:
    one = next(question for question in load() if question.pattern == "82,959")
    other = next(question for question in load() if not question.answerable)
    text = "82,959 [1]"
    citation = {"answer_start": 7, "answer_end": 10, "filename": Path(one.documents[0]).name, "verified": True}
    body = {"answered": True, "reason": None, "answer": text, "citations": [citation]}
    quoted = {**body, "quoted_spans": [{"start": 0, "end": 6, "answers": 0.75}]}
    refused = {**body, "answered": False, "reason": "no_evidence", "answer": "", "citations": [], "quoted_spans": []}
    rows = [{"question": one.text, "body": quoted}, {"question": other.text, "body": refused}]
    file = written(tmp_path, {"half": "all", "ways": {}, "answers": {"extractive": rows}})
    assert list(outcomes_of(file)) == [
        (
            "plain questions",
            [
                ScoredQuestion(score=0.25, answerable=True, correct=True),
                ScoredQuestion(score=1.0, answerable=False, correct=False),
            ],
        )
    ]


def test_tables_are_right_by_their_cell(tmp_path: Path) -> None:
    rows = [{"answers": 0.5, "cell": True}, {"answers": 0.75, "cell": False}, {"answers": None, "cell": False}]
    ((name, outcomes),) = outcomes_of(written(tmp_path, {"ways": {}, "answers": {"extractive": rows}}))
    assert name == "tables"
    assert [(one.score, one.correct) for one in outcomes] == [(0.5, True), (0.25, False), (1.0, False)]


def test_confirmed_are_those_above_its_threshold() -> None:
    scores = (0.01, 0.05, 0.2)
    outcomes = [ScoredQuestion(score=score, answerable=True, correct=score > 0.02) for score in scores]
    assert confirmed(outcomes) == (2, 1)


def test_a_curve_begins_with_five_answers_and_ends_with_all() -> None:
    outcomes = [ScoredQuestion(score=place / 400, answerable=True, correct=place % 2 == 0) for place in range(400)]
    points = drawn(outcomes)
    assert points[0].coverage * 400 >= 5
    assert points[-1].coverage == pytest.approx(1.0)
    assert 40 <= len(points) <= 60


def test_the_picture_is_a_file_of_its_own() -> None:
    outcomes = [ScoredQuestion(score=place / 10, answerable=True, correct=place < 5) for place in range(10)]
    root = ET.fromstring(picture(risk_coverage_chart({"a & b": drawn(outcomes)}, title="Risk & coverage")))
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    assert root.attrib["aria-label"] == "Risk & coverage"
    styles = [one.text or "" for one in root.iter("{http://www.w3.org/2000/svg}style")]
    assert "--c0" in styles[0]
    assert sum(one.tag.endswith("polyline") for one in root.iter()) == 1
