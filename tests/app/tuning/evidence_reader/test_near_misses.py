"""app.tuning.evidence_reader.near_misses: figures of questions that their own passages answer, or do not."""

import json

import pytest

from app.tuning.evidence_reader import near_misses
from app.tuning.evidence_reader.mixture import source_of
from app.tuning.evidence_reader.near_misses import Answered, Case, answers, cases_of, figures_of, main
from app.tuning.evidence_reader.training import Recipe, start
from app.tuning.span_reader.training import trained_weights
from retrieval.span_reader import save_reader
from tests.app.tuning.evidence_reader.shelves import TOKENIZER, base_of, write_set

CASES = [
    Case("one", "p", ("red",)),
    Case("two", "p", ("green",)),
    Case("three", "q", ("blue",)),
    Case("four", "p", ()),
    Case("five", "q", ()),
    Case("six", "r", ()),
]


def test_figures_of_known_margins():
    found = [
        Answered("red", 3.0),
        Answered("red", 1.0),
        Answered("blue", -2.0),
        Answered("x", 2.0),
        Answered("x", -2.0),
        Answered("x", -9.0),
    ]

    figures = figures_of(CASES, found)

    assert (figures.answerable, figures.unanswerable) == (3, 3)
    assert figures.exact == figures.f1 == pytest.approx(2 / 3)
    assert figures.auc == pytest.approx((1 + 1 + 1 + 0 + 1 + 1 + 0 + 0.5 + 1) / 9)
    assert figures.pairs == pytest.approx((1 + 0 + 0.5) / 3)  # of "r" nothing is answered
    assert figures.refused == pytest.approx(2 / 3)  # the threshold lies between -2 and 1


def test_both_kinds_of_questions_are_needed():
    for cases in (CASES[:3], CASES[3:]):
        with pytest.raises(ValueError, match="answerable"):
            figures_of(cases, [Answered("x", 0.0)] * 3)


def test_every_question_is_asked_of_its_own_passage_below_the_title(tmp_path, monkeypatch):
    source = source_of(write_set(tmp_path / "squad2-dev", written=True), held_back=True)
    model = start(base_of(tmp_path / "base"), Recipe())
    cases = cases_of(source, most=50)
    monkeypatch.setattr(near_misses, "_TOGETHER", 7)

    found = answers(model, TOKENIZER, source, cases)

    assert cases == cases_of(source, most=50)
    assert len(cases_of(source, most=500)) == 120
    assert {bool(case.golds) for case in cases} == {True, False}
    for case, one in zip(cases, found, strict=True):
        assert one.text
        assert one.text in f"{source.question_set.documents[case.passage].title}\n{source.text(case.passage)}"


def test_the_command_prints_the_figures_of_a_reader(tmp_path, monkeypatch, capsys):
    base = base_of(tmp_path / "base")
    save_reader(trained_weights(start(base, Recipe())), tmp_path / "reader")
    write_set(tmp_path / "squad2-dev", written=True)
    monkeypatch.setattr(near_misses, "resolve", lambda *_, **__: str(base))

    main([str(tmp_path / "reader"), str(tmp_path / "squad2-dev"), "--questions", "40"])

    told = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert told["set"] == "squad2-dev"
    assert told["checkpoint"] == "reader"
    assert told["answerable"] + told["unanswerable"] == 40
    assert 0 <= told["auc"] <= 1
