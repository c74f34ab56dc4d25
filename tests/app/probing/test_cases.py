"""app.probing.cases: each case can be answered, and no reply counts that should not."""

from collections import Counter

import pytest

from app.answering.languages.recognition import language_of
from app.answering.languages.refusals import refusal
from app.probing.cases import Needs, ProbeCase, cases

ANSWERED = [case for case in cases() if case.kind is not Needs.NONE]
MISREAD = [case for case in ANSWERED if case.wrong]


def reply_to(case: ProbeCase) -> str:
    """A reply with the first spelling of each part of the answer, each on a line of a list, with footnotes."""
    return "\n".join(f"- It is {group[0]} [1]." for group in case.answer)


def test_there_are_forty_in_six_languages() -> None:
    kinds = Counter(case.kind for case in cases())
    assert kinds == {Needs.FACT: 20, Needs.JOINS: 8, Needs.FORM: 4, Needs.NONE: 8}
    spoken = {language_of(" ".join(text for _, text in case.sources)) for case in cases()}
    assert spoken == {"en", "de", "fr", "es", "it", "pt"}
    assert len({case.question for case in cases()}) == 40


@pytest.mark.parametrize("case", ANSWERED, ids=lambda case: case.question)
def test_an_answer_is_in_the_sources_and_counts(case: ProbeCase) -> None:
    read = " ".join(text for _, text in case.sources).casefold()

    assert all(any(one.casefold() in read for one in group) for group in case.answer if "not" not in group)
    assert all(one.casefold() in read or "never" in case.answer[0] for one in case.wrong)
    assert case.answered_by(reply_to(case))


@pytest.mark.parametrize("case", ANSWERED, ids=lambda case: case.question)
def test_a_part_of_an_answer_or_a_refusal_does_not_count(case: ProbeCase) -> None:
    said = refusal(case.question)

    assert not case.answered_by(said)
    assert case.declined_by(said)
    assert not case.declined_by(reply_to(case))
    for missing in range(len(case.answer)):
        rest = [group[0] for place, group in enumerate(case.answer) if place != missing]
        alone = "\n".join(f"- {one}" for one in rest if not set(case.answer[missing]) & set(one.split()))
        assert not case.answered_by(alone)


@pytest.mark.parametrize("case", MISREAD, ids=lambda case: case.question)
def test_the_wrong_place_does_not_count_though_the_answer_follows(case: ProbeCase) -> None:
    for wrong in case.wrong:
        assert not case.answered_by(f"{wrong} [1]. Or else:\n{reply_to(case)}")


@pytest.mark.parametrize("case", [one for one in cases() if one.kind is Needs.NONE], ids=lambda case: case.question)
def test_a_question_without_an_answer_is_answered_by_nothing(case: ProbeCase) -> None:
    assert not case.answered_by("It is 5 euros [1].")
    assert case.declined_by(refusal(case.question))


def form_of(question: str) -> ProbeCase:
    [found] = [case for case in cases() if case.kind is Needs.FORM and question in case.question]
    return found


@pytest.mark.parametrize(
    ("reply", "counts"),
    [
        ("- Adults: 3 euros [3]\n- Motorcycles: 2.40 euros [1]\n- Bicycles: free [1]", True),
        ("1. Adults 3 euros\n2. Motorcycles 2.40 euros\n3. Bicycles free", True),
        ("| who | fare |\n|---|---|\n| adults | 3 |\n| motorcycles | 2.40 |\n| bicycles | free |", True),
        ("| who | fare |\n|:--|--:|\n| adults | 3 |\n| motorcycles | 2.40, bicycles free |", False),
        ("Adults pay 3 euros, motorcycles 2.40 euros, and bicycles travel free.", False),
    ],
)
def test_a_list_counts_where_it_is_one(reply: str, counts: bool) -> None:
    assert form_of("pay on the ferry").answered_by(reply) == counts


@pytest.mark.parametrize(
    ("reply", "counts"),
    [("8:15", True), ("at 8:15.", True), ("at 18:15", False), ("at 8:150", False), ("at 8:15:30", False)],
)
def test_a_number_counts_alone_and_not_within_another(reply: str, counts: bool) -> None:
    [case] = [one for one in cases() if "Sunday" in one.question]
    assert case.answered_by(reply) == counts


def test_its_sources_stand_as_in_a_prompt() -> None:
    context = cases()[0].context(len)

    assert [source.number for source in context.sources] == [1, 2, 3]
    assert context.sources[0].header == "[1] Hallam ferry, timetable.pdf\n"
    assert context.tokens == sum(len(source.header) + len(source.body) for source in context.sources)
    assert all(source.hit.chunk.text_at(source.spans[0]) == source.body for source in context.sources)
