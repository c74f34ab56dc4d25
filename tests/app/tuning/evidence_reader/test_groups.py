"""app.tuning.evidence_reader.groups: what stands beside the right passage, and where in it the answer is."""

import random
from collections import Counter
from dataclasses import replace

import pytest

from app.evaluation.squad import contains_any
from app.tuning.evidence_reader.groups import (
    IGNORED,
    NEAR,
    Grouper,
    Neighbours,
    Shown,
    heading,
    reading_of,
    readings_of,
)
from app.tuning.evidence_reader.mixture import Company, Rules, Source, source_of
from retrieval.span_model import MOST_ANSWER_TOKENS, WINDOW_TOKENS
from tests.app.tuning.evidence_reader.shelves import COLOURS, TOKENIZER, words_of, write_set


def made(folder, name, company=Company.DOCUMENT, **rules) -> Source:
    source = source_of(write_set(folder / name, rooms=3, written=name == "written"), held_back=False)
    source.rules = replace(Rules(weight=1, company=company), **rules)
    return source


@pytest.fixture(scope="module")
def shelf(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sets")
    return [made(folder, "shelf"), made(folder, "written"), made(folder, "foreign", Company.FOREIGN)]


def groups(found, *, place=0, seed=1):
    grouper = Grouper(found, TOKENIZER, seed=seed)
    for at in range(3 * len(found[place].questions)):
        question = at % len(found[place].questions)
        group = grouper.group(at, place, question)
        assert group is not None
        yield found[place].questions[question], group


@pytest.mark.parametrize("place", [0, 1, 2])
def test_no_other_passage_holds_the_answer(shelf, place):
    seen: Counter[int] = Counter()
    for one, group in groups(shelf, place=place):
        right, *others = group.asked.readings
        assert contains_any(words_of(right.window.ids), one.example.golds)
        for reading in others:
            assert not contains_any(words_of(reading.window.ids), one.example.golds)
            assert reading.golds == ()
            assert set(reading.tags) == {0}
        seen[len(others)] += 1
    assert set(seen) <= ({0, 1} if place == 2 else {1, 2, 3})


def test_neighbour_passages_share_the_document_and_exclude_the_questions_own(shelf):
    near = Neighbours(shelf[0])
    for one in shelf[0].questions:
        found = near.near(one)
        assert found and one.passage not in found
        assert {shelf[0].document_of[key] for key in found} == {shelf[0].document_of[one.passage]}


def test_the_answer_is_pointed_at_and_tagged(shelf):
    joined = 0
    for one, group in groups(shelf):
        right = group.asked.readings[0]
        ((start, end),) = right.golds
        assert words_of(right.window.ids[start : end + 1]) == one.example.golds[0]
        assert [at + right.window.first for at, tag in enumerate(right.tags) if tag == 1] == list(range(start, end + 1))
        joined += words_of(right.window.ids).count("shelf") > 1
    assert joined


def test_a_question_that_nothing_answers_is_asked_of_the_right_passage(shelf):
    written = 0
    for one, group in groups(shelf, place=1):
        if group.unanswered is None:
            assert len(group.asked.readings) <= NEAR + 1
            continue
        assert len(group.asked.readings) <= NEAR
        (reading,) = group.unanswered.readings
        assert not group.unanswered.answered
        assert set(reading.tags) == {0}
        said = words_of(reading.window.ids)
        assert not said.startswith(one.example.question)
        assert said.split(one.example.question.split()[-1])[-1]
        written += said.startswith("who put thing")
    assert written


def test_a_group_follows_from_seed_and_place_alone(shelf):
    first, again, other = (list(groups(shelf, seed=seed)) for seed in (5, 5, 6))

    assert first == again
    assert [group for _, group in first] != [group for _, group in other]


def test_evidence_that_is_no_answer_is_tagged_alone(tmp_path):
    source = made(tmp_path, "cells", pointed=False)
    for _, group in groups([source]):
        assert not group.asked.pointed
        assert group.unanswered is None
        assert 1 in group.asked.readings[0].tags


def test_an_answer_too_long_to_point_at_is_tagged():
    text = "thing " * (MOST_ANSWER_TOKENS + 5)
    span = (0, len(text) - 1)
    reading = reading_of(TOKENIZER, "what", Shown(text, (span,), (span,)), random.Random(1))
    assert reading is not None
    assert reading.golds == ()
    assert set(reading.tags) == {1}


def test_words_only_others_would_have_answered_are_not_judged():
    shown = Shown("it is red and green", ((6, 19), (6, 9)), ((6, 9),))
    (reading,) = readings_of(TOKENIZER, "what", shown)
    assert reading.tags == (0, 0, 1, IGNORED, IGNORED)


def test_a_long_passage_is_read_where_the_evidence_is():
    before = "nobody knows " * WINDOW_TOKENS
    shown = Shown("red", ((0, 3),), ((0, 3),)).below(before).above(" " + before)
    reading = reading_of(TOKENIZER, "what", shown, random.Random(1))
    assert reading is not None
    assert len(readings_of(TOKENIZER, "what", shown)) > 2
    ((start, end),) = reading.golds
    assert words_of(reading.window.ids[start : end + 1]) == "red"


def test_title_and_heading_stand_above(shelf):
    source = shelf[0]
    document = source.question_set.documents["p0"]
    named = replace(source.question_set, documents={"p0": replace(document, title="Hall — Room")})
    other = Source(named, source.rules, (), {}, {})

    assert [heading(other, "p0", lines) for lines in (0, 1, 2)] == ["", "Room\n", "Hall\nRoom\n"]
    assert heading(source, "p0", 2) == "room r0\n"


def test_a_title_that_holds_the_answer_is_not_shown(shelf):
    source = shelf[0]
    documents = {key: replace(one, title=COLOURS[0]) for key, one in source.question_set.documents.items()}
    documents["p1"] = replace(documents["p1"], title="room r1")
    source = replace_set(source, documents)
    one = next(one for one in source.questions if one.example.golds == (COLOURS[0],) and one.passage != "p1")
    grouper = Grouper([source], TOKENIZER, seed=1)
    for at in range(20):
        group = grouper.group(at, 0, list(source.questions).index(one))
        assert group is not None
        assert not any(COLOURS[0] in words_of(reading.window.ids) for reading in group.asked.readings[1:])


def replace_set(source: Source, documents) -> Source:
    return Source(
        replace(source.question_set, documents=documents),
        source.rules,
        source.questions,
        source.written,
        source.document_of,
        source.keys,
    )
