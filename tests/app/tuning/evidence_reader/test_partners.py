"""app.tuning.evidence_reader.partners: unanswerable questions stand beside answerable ones of the same passage."""

import json
import random
from collections import Counter
from dataclasses import replace

import pytest

from app.tuning.evidence_reader.groups import Grouper
from app.tuning.evidence_reader.mixture import (
    NEVER_ALONE,
    NEVER_TRAINED,
    RULES,
    Asked,
    Company,
    Lacking,
    Rules,
    Source,
    order,
    shares,
    source_of,
    sources,
)
from app.tuning.evidence_reader.partners import Partners
from tests.app.tuning.evidence_reader.shelves import TOKENIZER, words_of, write_set

FEW = 12
RULE = Rules(weight=1, company=Company.DOCUMENT, lacking=3)
SETS = ("squad2-train-unans", "doqa-forums", "tedq-talks", "molweni-chat", "condaqa")


def rewritten(folder, *, answered):
    """Leaves a set only the answerable questions of the passages whose numbers are in `answered`."""
    file = folder / "queries.jsonl"
    rows = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    kept = [row for row in rows if row.get("unanswerable") or int(row["_id"][1:]) in answered]
    file.write_text("".join(json.dumps(row) + "\n" for row in kept), encoding="utf-8")
    ids = {row["_id"] for row in kept}
    spans = [line for line in (folder / "spans.jsonl").read_text().splitlines() if json.loads(line)["query_id"] in ids]
    (folder / "spans.jsonl").write_text("".join(line + "\n" for line in spans))
    first, *judged = (folder / "qrels.tsv").read_text().splitlines()
    (folder / "qrels.tsv").write_text("\n".join([first, *(one for one in judged if one.split("\t")[0] in ids)]) + "\n")
    return folder


def source_with(folder, answered, rules=RULE) -> Source:
    """A set of `FEW` passages in three rooms, each with a question that it does not answer."""
    written = write_set(folder, count=FEW, rooms=3, written=True)
    source = source_of(rewritten(written, answered=answered), held_back=False)
    source.rules = rules
    return source


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    """p0 and p3 (room r0) and p1 (room r1) answer a question, and no other passage."""
    return source_with(tmp_path_factory.mktemp("sets") / "shelf", {0, 3, 1})


def led(source, *, near=2, seed=1):
    grouper = Grouper([source], TOKENIZER, seed=seed, near=near)
    first = len(source.questions)
    return {one: grouper.group(at, 0, first + at) for at, one in enumerate(source.lacking)}


def read(view):
    return [words_of(reading.window.ids) for reading in view.readings]


def test_an_unanswerable_question_stands_beside_one_that_its_passage_answers(source):
    for one, group in led(source).items():
        assert group is not None
        assert group.paired == (one.passage in {"p0", "p1", "p3"})
        (said,) = read(group.unanswered)
        assert said.startswith(one.question)
        assert f"the thing t{one.passage[1:]} on" in said
        assert not group.unanswered.answered
        assert set(group.unanswered.readings[0].tags) == {0}
        assert group.asked.answered
        if group.paired:
            passage = said.removeprefix(one.question)
            assert read(group.asked)[0].endswith(passage)


def stood_beside(source, lacking, *, times=5) -> list[Asked]:
    draws = random.Random(1)
    found = [Partners(source).beside(lacking, draws) for _ in range(times)]
    return [one for one in found if one is not None]


def test_the_nearest_of_the_document_and_then_of_the_set_stands_in(source):
    found = {one.passage: {other.passage for other in stood_beside(source, one)} for one in source.lacking}

    assert found.keys() == {f"p{n}" for n in range(FEW)}
    for key, passages in found.items():
        room = source.document_of[key]
        if key in {"p0", "p1", "p3"}:
            assert passages == {key}
        elif room == "room r2":  # nobody answers there
            assert passages <= {"p0", "p1", "p3"}
        else:
            assert {source.document_of[other] for other in passages} == {room}
        assert passages


def test_of_several_questions_of_a_passage_the_likest_are_taken(source):
    one = source.questions[0]
    alike = [replace(one, example=replace(one.example, question=said)) for said in ("a b c", "who put it", "who put")]
    other = Source(source.question_set, RULE, alike, {}, source.document_of, source.keys)

    found = stood_beside(other, Lacking("who put", one.passage), times=20)

    assert len(found) == 20
    assert {one.example.question for one in found} == {"who put it", "who put"}


def test_without_an_answerable_question_there_is_no_group(source):
    alone = Source(source.question_set, RULE, (), source.written, source.document_of, source.keys)

    assert alone.lacking
    assert set(led(alone).values()) == {None}
    assert order([alone], passes=2, seed=1) == []


def test_what_rules_made_is_no_pair(tmp_path):
    made = source_with(tmp_path / "made", set(range(FEW)), replace(RULE, ruled=True, lacking=0))
    people = source_with(tmp_path / "people", set(range(FEW)), replace(RULE, lacking=0))
    for one, expected in ((made, {False}), (people, {True, False})):
        grouper = Grouper([one], TOKENIZER, seed=1)
        groups = [grouper.group(at, 0, at % FEW) for at in range(3 * FEW)]
        assert {group.paired for group in groups if group is not None and group.unanswered} == expected


def test_a_pass_has_every_question_by_its_own_weight(source):
    asked = order([source], passes=4, seed=3)

    first = len(source.questions)
    led_by = Counter(question >= first for _, question in asked)
    assert led_by[True] / led_by[False] == pytest.approx(3 * len(source.lacking) / first, rel=0.1)
    times = Counter(question for _, question in asked if question >= first)
    assert set(times) == set(range(first, first + len(source.lacking)))
    assert max(times.values()) - min(times.values()) <= 1


def test_pairs_alone_are_those_of_one_passage(source):
    asked = order([source], passes=5, seed=3, pairs=True)

    first = len(source.questions)
    assert {source.lacking[question - first].passage for _, question in asked} == {"p0", "p1", "p3"}
    assert shares([source], pairs=True) == [1]
    assert shares([source_of_nothing(source)], pairs=True) == [0]


def source_of_nothing(source) -> Source:
    rules = replace(source.rules, lacking=0)
    return Source(source.question_set, rules, source.questions, source.written, source.document_of, source.keys)


def test_questions_of_another_set_are_read_with_the_passages_they_are_about(tmp_path):
    plain = write_set(tmp_path / "train" / "squad-train-44", rooms=40)
    unans = write_set(tmp_path / "other" / "squad-train-44-unans", rooms=40, written=True)
    rewritten(unans, answered=set()).rename(tmp_path / "train" / "squad-train-44-unans")

    (train,), (held,) = (sources(tmp_path, held_back=back, names=["squad-train-44"]) for back in (False, True))

    assert source_of(plain, held_back=False).lacking == []
    assert len(train.lacking) + len(held.lacking) == 60
    assert {one.passage for one in train.lacking} == set(train.keys)
    assert {one.passage for one in held.lacking} == set(held.keys)
    assert train.questions
    assert all(isinstance(one, Asked) for one in train.questions)


def test_sets_that_lack_answers_weigh_by_kind_and_one_never_trains_alone(tmp_path):
    squad = [RULES[name].lacking for name in ("squad-train-44", "squad2-train-unans")]
    low = [RULES[name].lacking for name in ("tedq-talks", "molweni-chat", "condaqa")]
    assert min(squad) > RULES["doqa-forums"].lacking > max(low)
    assert min(low) > 0
    assert not NEVER_TRAINED & set(SETS)
    assert {"condaqa"} == NEVER_ALONE
    with pytest.raises(ValueError, match="condaqa"):
        sources(tmp_path, names=["condaqa"])
