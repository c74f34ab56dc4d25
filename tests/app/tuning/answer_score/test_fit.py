"""app.tuning.answer_score fits weights that find the right candidate, and reports what they reach."""

import random
from dataclasses import replace
from pathlib import Path

import pytest

from app.answering.quoting.features import Features
from app.answering.quoting.score import values
from app.evaluation.types import QuestionSet, SetDocument, SetQuestion
from app.tuning.answer_score.cases import Case, Use, part_of, read_cases, written
from app.tuning.answer_score.fit import JUDGE, READER, counts, cross_validated, fitted, fitted_certainty, judged, report
from app.tuning.evidence_reader.mixture import is_held_back


def made_cases(count: int, *, dataset: str = "made") -> list[Case]:
    """Questions whose right candidate has the largest margin and most of the words, with noise; a third have none.

    Of these every second was written to have none.
    """
    drawn = random.Random(count)
    found = []
    for number in range(count):
        answerable = number % 3 > 0
        right = drawn.randrange(6) if answerable else -1
        of_candidates = [
            values(
                Features(
                    rank=place,
                    closeness=drawn.random(),
                    share=min(1.0, drawn.random() + (0.3 if place == right else 0)),
                    covered=drawn.random(),
                    lead=0.0,
                    fits=0.0,
                    margin=drawn.gauss(2.5 if place == right else -2.5, 2.0),
                ),
                cosine=drawn.random(),
                best_cosine=1.0,
            )
            for place in range(6)
        ]
        marks = tuple(place == right for place in range(6))
        lacking = number % 6 == 0
        found.append(Case(dataset, f"q{number}", answerable, lacking, tuple(of_candidates), marks, (False,) * 6, marks))
    return found


def test_the_weights_find_what_the_right_candidates_have() -> None:
    weights = fitted(made_cases(300))

    certain = fitted_certainty(made_cases(300), weights)

    assert weights["margin"] > 0.3
    assert weights["share"] > 0.5
    assert sum(one.first for one in judged(made_cases(301), weights, certain) if one.case.answerable) > 0.8 * 200


def test_without_the_reader_its_values_weigh_nothing() -> None:
    weights = fitted(made_cases(90), without=READER | JUDGE)

    assert weights["margin"] == 0.0
    assert weights["margin_lead"] == 0.0
    assert weights["share"] > 0.5


def test_a_probability_is_near_the_share_that_is_right() -> None:
    found = cross_validated(made_cases(900))

    for low, high in ((0.0, 0.5), (0.5, 0.9), (0.9, 1.0)):
        mine = [one for one in found if low <= one.best < high]
        expected = sum(one.best for one in mine) / len(mine)
        right = sum(one.case.answerable and one.first for one in mine) / len(mine)
        assert right == pytest.approx(expected, abs=0.15)


def test_a_candidate_that_says_the_answer_elsewhere_teaches_nothing() -> None:
    cases = made_cases(60)
    changed = [
        replace(one, said=said)
        for one in cases
        for said in [tuple(not right and place == 5 for place, right in enumerate(one.right))]
    ]
    without_last = [
        replace(
            one,
            values=tuple(value for value, left_out in zip(one.values, one.said, strict=True) if not left_out),
            right=tuple(right for right, left_out in zip(one.right, one.said, strict=True) if not left_out),
            said=tuple(False for left_out in one.said if not left_out),
            pointed=tuple(right for right, left_out in zip(one.right, one.said, strict=True) if not left_out),
        )
        for one in changed
    ]

    assert fitted(changed) == fitted(without_last)


def test_kinds_count_by_their_share_and_sets_by_the_root_of_their_size() -> None:
    cases = [*made_cases(36, dataset="small"), *made_cases(324, dataset="large")]

    counted = list(zip(cases, counts(cases), strict=True))

    def together(*, written: bool, answerable: bool, dataset: str = "") -> float:
        return sum(
            count
            for one, count in counted
            if (one.written, one.answerable) == (written, answerable) and dataset in ("", one.dataset)
        )

    assert sum(count for _, count in counted) == pytest.approx(1)
    assert together(written=True, answerable=False) == pytest.approx(0.1)
    assert together(written=False, answerable=False) == pytest.approx(0.15)
    assert together(written=False, answerable=True, dataset="large") == pytest.approx(
        3 * together(written=False, answerable=True, dataset="small")
    )


def test_the_report_names_every_set_and_every_case_is_read_back(tmp_path: Path) -> None:
    cases = made_cases(30, dataset="a") + made_cases(30, dataset="b")
    file = tmp_path / "cases.jsonl"
    file.write_text("\n".join(map(written, cases)) + "\n", encoding="utf-8")

    assert read_cases(file) == cases
    text = report(cross_validated(cases))
    assert "| a | 20, 10 |" in text
    assert "| all | 40, 20 |" in text


def test_a_part_of_a_set_asks_only_about_documents_that_never_train() -> None:
    count = 200
    documents = {f"d{number}": SetDocument(f"d{number}", "", "text") for number in range(count)}
    questions = {
        f"q{number}": SetQuestion(id=f"q{number}", text="?", answers=("a",), unanswerable=False, metadata={})
        for number in range(count)
    }
    questions |= {
        f"l{number}": SetQuestion(id=f"l{number}", text="?", unanswerable=True, metadata={"context_id": f"d{number}"})
        for number in range(0, count, 2)
    }
    about = {f"b{number}": f"d{number}" for number in range(1, count, 2)}
    others = {
        key: SetQuestion(id=key, text="?", unanswerable=True, metadata={"context_id": passage})
        for key, passage in about.items()
    }
    judgments = {f"q{number}": {f"d{number}": 1} for number in range(count)}
    whole = QuestionSet(
        name="made", documents=documents, questions=questions, judgments=judgments, spans={}, fingerprint="0"
    )
    held = {key for key in documents if is_held_back("made", key)}

    beside = replace(whole, name="beside", questions=others, judgments={})
    part = part_of(
        whole,
        Use(questions=3, lacking=count, documents=50),
        document_of={key: key for key in documents},
        beside=[beside],
    )

    assert 3 < len(held) < 50, "else nothing is shown"
    assert part.documents.keys() >= held
    assert len(part.documents) == 50
    assert len(part.judgments) == 3
    assert all(part.judgments[key].keys() <= held for key in part.judgments)
    lacking = {one.metadata["context_id"] for one in part.questions.values() if one.unanswerable}
    assert lacking == held
    assert len(part.questions) == 3 + len(held)
