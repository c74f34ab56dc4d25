"""app.tuning.candidate_judge.ballots: which candidates stand beside the right one, and which are right."""

from collections.abc import Iterator
from dataclasses import replace

import pytest

from app.evaluation.squad import contains_any
from app.tuning.candidate_judge.ballots import MOST, Ballot, BallotMaker
from app.tuning.evidence_reader.mixture import Company, Rules, Source, source_of
from tests.app.tuning.evidence_reader.shelves import write_set


def made(folder, name, company=Company.DOCUMENT, **rules) -> Source:
    source = source_of(write_set(folder / name, rooms=3, written=name == "written"), held_back=False)
    source.rules = replace(Rules(weight=1, company=company), **rules)
    return source


@pytest.fixture(scope="module")
def shelf(tmp_path_factory) -> list[Source]:
    folder = tmp_path_factory.mktemp("sets")
    return [made(folder, "shelf"), made(folder, "written", lacking=1.0), made(folder, "foreign", Company.FOREIGN)]


def ballots(shelf, *, place=0, seed=1) -> Iterator[tuple[int, Ballot]]:
    maker = BallotMaker(shelf, seed=seed)
    source = shelf[place]
    for at in range(len(source.questions) + len(source.lacking)):
        ballot = maker.ballot(at, place, at)
        if ballot is not None:
            yield at, ballot


@pytest.mark.parametrize("place", [0, 1, 2])
def test_a_right_candidate_holds_the_answer_and_no_other_does(shelf, place):
    found = [(shelf[place].questions[at], one) for at, one in ballots(shelf, place=place) if at < 57]
    answered = [any(one.right) for _, one in found]

    for question, one in found:
        assert one.question == question.example.question
        assert 2 <= len(one.candidates) == len(one.right) <= MOST
        for candidate, right in zip(one.candidates, one.right, strict=True):
            held = contains_any(candidate.text, question.example.golds)
            assert held or not right
            assert right or not held or place == 2  # a passage of another set may say the words about another thing
    left_out = 1 - sum(answered) / len(answered)  # from these the passage that answers
    assert 0.05 < left_out < 0.4 or place == 2  # there, one candidate remained, which is no comparison


def test_a_question_that_people_wrote_to_have_no_answer_has_no_right_candidate(shelf):
    source = shelf[1]
    written = [(at, one) for at, one in ballots(shelf, place=1) if at >= len(source.questions)]

    assert written
    for at, one in written:
        lacking = source.lacking[at - len(source.questions)]
        assert one.question == lacking.question and not any(one.right)
        assert source.text(lacking.passage) in {candidate.text for candidate in one.candidates}


def test_candidates_say_what_stands_above_and_before_them(shelf):
    (_, first), *_ = ballots(shelf)

    assert all(candidate.above.startswith("room r") or not candidate.above for candidate in first.candidates)
    assert {candidate.before for candidate in first.candidates} == {""}  # their passages have one sentence each


def test_a_ballot_depends_on_seed_and_place_alone(shelf):
    again = dict(ballots(shelf))

    assert BallotMaker(shelf, seed=1).ballot(7, 0, 7) == again[7]
    assert dict(ballots(shelf, seed=2)) != again
