"""app.watches.evidence: numbers, dates, names, negations and passages differ; wording, order and place do not."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.watches.evidence import AnswerEvidence, EvidenceDifference, differences

FEE = "The fee for a parking space is 30 euros a month."
TERM = "The lease with Harbour Estates ends on 3 May 2027."
PETS = "Pets are allowed in the back building."


def cited(text: str, *, document: str = "doc_1", version: int = 1, start: int = 0) -> dict[str, Any]:
    return {
        "document_id": document,
        "version": version,
        "start_char": start,
        "end_char": start + len(text),
        "cited_text": text,
    }


def answer(*texts: str, answered: bool = True, document: str = "doc_1") -> AnswerEvidence:
    return AnswerEvidence(answered, tuple(cited(text, document=document) for text in texts))


def kinds(found: tuple[EvidenceDifference, ...]) -> list[tuple[str, ...]]:
    return [one.kinds for one in found]


@pytest.mark.parametrize(
    ("before", "after", "kind"),
    [
        (FEE, FEE.replace("30", "35"), "number"),
        (FEE, FEE.replace("30", "thirty-two"), "number"),
        ("| Total fees | 2024 | 12.5 | 90 | 7 |", "| Total fees | 2024 | 13.5 | 91 | 8 |", "number"),
        (TERM, TERM.replace("May", "June"), "date"),
        (TERM, TERM.replace("Harbour Estates", "Mole Estates"), "name"),
        (PETS, "Pets are not allowed in the back building.", "negation"),
        ("The rent will rise with the index.", "The rent will fall with the index.", "negation"),
    ],
)
def test_what_changed_in_a_passage_is_named(before: str, after: str, kind: str) -> None:
    (found,) = differences(answer(before), answer(after))

    assert found.kinds == (kind,)
    assert (found.before, found.after) == (cited(before), cited(after))


@pytest.mark.parametrize(
    "after",
    [
        FEE.upper(),
        "The  fee for a parking\nspace is 30 euros a month",
        "The fee for one parking space is thirty euros a month.",
        "A parking space has a fee of 30 euros a month.",
    ],
)
def test_another_wording_is_no_difference(after: str) -> None:
    assert differences(answer(FEE), answer(after)) == ()


def test_a_passage_that_moved_into_another_version_place_or_document_is_the_same() -> None:
    before = AnswerEvidence(answered=True, citations=(cited(FEE),))

    assert differences(before, AnswerEvidence(True, (cited(FEE, version=2, start=90),))) == ()
    assert differences(before, AnswerEvidence(True, (cited(FEE, document="doc_2"),))) == ()


def test_a_passage_cited_by_one_of_them_alone_is_told() -> None:
    assert differences(answer(FEE), answer(FEE, PETS)) == (EvidenceDifference(("passage",), None, cited(PETS)),)
    assert differences(answer(FEE, PETS), answer(FEE)) == (EvidenceDifference(("passage",), cited(PETS), None),)
    assert kinds(differences(answer(FEE), answer(TERM))) == [("passage",), ("passage",)]


def test_a_number_of_another_document_is_another_passage() -> None:
    found = differences(answer(FEE), answer(FEE.replace("30", "35"), document="doc_2"))

    assert kinds(found) == [("passage",), ("passage",)]


def test_an_answer_where_there_was_none_is_a_difference_and_the_other_way() -> None:
    none = AnswerEvidence(answered=False)

    assert differences(none, answer(FEE)) == (
        EvidenceDifference(("answered",)),
        EvidenceDifference(("passage",), None, cited(FEE)),
    )
    assert differences(answer(FEE), none) == (
        EvidenceDifference(("answered",)),
        EvidenceDifference(("passage",), cited(FEE), None),
    )
    assert differences(answer(FEE, answered=False), answer(FEE)) == (EvidenceDifference(("answered",)),)


def test_of_two_that_do_not_answer_only_a_changed_wording_counts() -> None:
    nearest = answer(FEE, answered=False)

    assert differences(nearest, answer(PETS, answered=False)) == ()
    assert kinds(differences(nearest, answer(FEE.replace("30", "35"), PETS, answered=False))) == [("number",)]


words = st.sampled_from(
    [
        "the",
        "fee",
        "rent",
        "is",
        "not",
        "rises",
        "falls",
        "30",
        "35",
        "May",
        "June",
        "Harbour",
        "Mole",
        "pets",
        "cellar",
    ]
)
sentences = st.lists(words, min_size=1, max_size=9).map(lambda found: " ".join(found).capitalize() + ".")
passages = st.builds(
    cited, sentences, document=st.sampled_from(["doc_1", "doc_2"]), version=st.integers(1, 3), start=st.integers(0, 99)
)
answers = st.builds(AnswerEvidence, st.booleans(), st.lists(passages, max_size=5).map(tuple))


@given(answers)
def test_nothing_differs_from_itself(evidence: AnswerEvidence) -> None:
    assert differences(evidence, evidence) == ()


@given(answers, answers)
def test_it_differs_the_other_way_round_too(one: AnswerEvidence, other: AnswerEvidence) -> None:
    forth, back = differences(one, other), differences(other, one)

    assert bool(forth) == bool(back)
    assert sorted(kinds(forth)) == sorted(kinds(back))


@given(answers, answers, st.randoms(use_true_random=False))
def test_order_and_repetition_do_not_matter(one: AnswerEvidence, other: AnswerEvidence, random: Any) -> None:
    shuffled = [*other.citations, *other.citations[:2]]
    random.shuffle(shuffled)

    assert bool(differences(one, other)) == bool(differences(one, replace(other, citations=tuple(shuffled))))


def test_equal_words_of_two_documents_are_two_passages_in_either_order() -> None:
    fee, same = (
        cited("The fee is 30 euros a month.", document="doc_1"),
        cited("The fee is 30 euros a month.", document="doc_2"),
    )
    raised = cited("The fee is 35 euros a month.", document="doc_1")
    for order in ((fee, same), (same, fee)):
        found = differences(AnswerEvidence(False, order), AnswerEvidence(False, (raised,)))
        assert kinds(found) == kinds(differences(AnswerEvidence(False, (fee,)), AnswerEvidence(False, (raised,)))) != []


@given(answers, st.integers(1, 9), st.integers(0, 10_000))
def test_places_and_versions_do_not_matter(evidence: AnswerEvidence, version: int, start: int) -> None:
    moved = tuple({**one, "version": version, "start_char": start} for one in evidence.citations)

    assert differences(evidence, replace(evidence, citations=moved)) == ()


@given(answers, st.integers(1000, 9999))
def test_a_number_that_no_passage_had_is_always_a_difference(evidence: AnswerEvidence, number: int) -> None:
    passage = cited(f"The fee for a space in the yard is {number} euros.", document="doc_9")
    added = replace(evidence, answered=True, citations=(*evidence.citations, passage))

    assert differences(replace(evidence, answered=True), added)


@given(answers, answers)
def test_every_difference_names_a_passage_of_its_side(one: AnswerEvidence, other: AnswerEvidence) -> None:
    for found in differences(one, other):
        assert found.kinds
        assert found.before is None or found.before in one.citations
        assert found.after is None or found.after in other.citations
        assert (found.kinds == ("answered",)) == (found.before is None and found.after is None)
