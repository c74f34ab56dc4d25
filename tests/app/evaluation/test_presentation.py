"""app.evaluation.presentation chooses the documents a question is asked of."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.evaluation.presentation import Case, cases, gold_documents, presented_documents
from app.evaluation.types import QuestionSet, SetDocument, SetQuestion

SHIPS = SetQuestion("ships", "How many ships?", answers=("forty",))
MOON = SetQuestion("moon", "Who owns the moon?", unanswerable=True, metadata={"context_id": "n-1"})
LOST = SetQuestion("lost", "Who?", unanswerable=True, metadata={"context_id": "elsewhere"})


def question_set() -> QuestionSet:
    """Two articles of four documents, n and s, and three documents without a title."""
    names = [f"{article}-{place}" for article in "ns" for place in range(4)] + ["x", "y", "z"]
    titles = {"n": "Normans", "s": "Steam"}
    return QuestionSet(
        name="small",
        documents={name: SetDocument(name, titles.get(name[0], ""), f"Text of {name}.") for name in names},
        questions={question.id: question for question in (SHIPS, MOON, LOST)},
        judgments={"ships": {"n-2": 1, "n-0": 1, "s-0": 0}},
        spans={},
        fingerprint="f",
    )


def presented(case: Case, *, count: int = 3, ranked: tuple[str, ...] = (), without: str = "", seed: int = 0):
    found = question_set()
    readable = found.documents.keys() - {without}
    return presented_documents(case, found, count=count, ranked=ranked, readable=readable, seed=seed)


def test_everything_is_asked_once_of_everything_when_nothing_is_presented() -> None:
    assert cases([SHIPS, MOON], presented=None) == [Case(SHIPS), Case(MOON)]
    assert [case.holds_answer for case in cases([SHIPS, MOON], presented=None)] == [True, False]


def test_an_answerable_question_is_asked_twice_and_an_unanswerable_one_once() -> None:
    found = cases([SHIPS, MOON], presented=3)

    assert found == [Case(SHIPS, "answerable"), Case(SHIPS, "off-topic"), Case(MOON, "near-miss")]
    assert [case.holds_answer for case in found] == [True, False, False]


def test_gold_is_what_is_judged_relevant_or_what_the_question_was_written_about() -> None:
    found = question_set()

    assert gold_documents(found, SHIPS) == ("n-0", "n-2")
    assert gold_documents(found, MOON) == ("n-1",)
    assert gold_documents(found, LOST) == ()


def test_gold_documents_are_joined_by_the_best_ranked_others() -> None:
    ranked = ("s-1", "n-2", "s-3", "x")

    assert presented(Case(SHIPS, "answerable"), count=4, ranked=ranked) == ("n-0", "n-2", "s-1", "s-3")
    assert presented(Case(SHIPS, "answerable"), count=2, ranked=ranked) == ("n-0", "n-2")
    assert presented(Case(MOON, "near-miss"), ranked=ranked) == ("n-1", "s-1", "n-2")
    assert presented(Case(LOST, "near-miss"), ranked=ranked) == ("s-1", "n-2", "s-3")


def test_a_document_that_cannot_be_searched_is_not_presented() -> None:
    assert presented(Case(MOON, "near-miss"), ranked=("s-1", "x", "y"), without="s-1") == ("n-1", "x", "y")
    assert "s-1" not in presented(Case(SHIPS, "off-topic"), count=9, without="s-1")


def test_fewer_documents_than_wanted_are_all_there_are() -> None:
    assert presented(Case(MOON, "near-miss"), count=9, ranked=("x",)) == ("n-1", "x")


def test_off_topic_is_neither_gold_nor_of_its_article_nor_ranked() -> None:
    found = presented(Case(SHIPS, "off-topic"), count=9, ranked=("s-0", "x"))

    assert set(found) == {"s-1", "s-2", "s-3", "y", "z"}


def test_documents_without_a_title_are_of_no_common_article() -> None:
    question = SetQuestion("ships", "?", answers=("forty",))
    found = question_set()
    untitled = QuestionSet(found.name, found.documents, found.questions, {"ships": {"x": 1}}, {}, found.fingerprint)
    far = presented_documents(
        Case(question, "off-topic"), untitled, count=99, ranked=(), readable=found.documents.keys(), seed=0
    )

    assert set(far) == found.documents.keys() - {"x"}


@given(seed=st.integers(0, 9), ranked=st.lists(st.sampled_from(["n-0", "n-3", "s-1", "s-2", "x"]), unique=True))
@pytest.mark.parametrize("case", [Case(SHIPS, "answerable"), Case(SHIPS, "off-topic"), Case(MOON, "near-miss")])
def test_never_more_than_wanted_none_twice_and_the_same_again(case: Case, seed: int, ranked: list[str]) -> None:
    found = presented(case, ranked=tuple(ranked), seed=seed)

    assert found == presented(case, ranked=tuple(ranked), seed=seed)
    assert len(found) == len(set(found)) <= 3
    assert set(found) >= set(gold_documents(question_set(), case.question)) or case.group == "off-topic"


def test_another_seed_chooses_other_off_topic_documents() -> None:
    chosen = {presented(Case(SHIPS, "off-topic"), seed=seed) for seed in range(8)}

    assert len(chosen) > 1
