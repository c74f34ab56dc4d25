"""app.answering.verification.verifier: which passages support a claim, which must not, and when a model is called."""

from collections.abc import Sequence

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from app.answering.citing.citation import THRESHOLD
from app.answering.verification.verifier import Verifier
from retrieval.types import Judgement
from tests.app.answering.sources import REPORT, source
from tests.app.answering.verification.fakes import OneDirection


def support(claim: str, text: str = REPORT, *, question: str = "", heading: str = "") -> float:
    evidence = Verifier([source(text, heading=heading)], question=question).best(claim)
    assert evidence is not None
    return evidence.support


@pytest.mark.parametrize(
    "claim",
    [
        "Northwind's revenue rose 12% to $48 million in 2025.",
        "The board proposed a dividend of 30 cents.",
        "Zoë Müller became chief financial officer in March 2024.",
        "The drug did not lower blood pressure in adults.",
    ],
)
def test_what_is_said_in_other_spelling_is_verified(claim):
    assert support(claim) >= THRESHOLD


@pytest.mark.parametrize(
    "claim",
    [
        "Northwind's revenue rose 19 percent to 48 million dollars in 2025.",
        "Northwind's revenue rose 12 percent to 48 billion dollars in 2025.",
        "Northwind's revenue rose 12 percent to 48 million dollars in 2024.",
        "Northwind's revenue fell 12 percent to 48 million dollars in 2025.",
        "The board of Contoso proposed a dividend of 30 cents.",
        "The board did not propose a dividend of 30 cents.",
        "Zoë Müller became chief financial officer in April 2024.",
        "The drug lowered blood pressure in adults.",
        "Profits in Brazil doubled because of coffee exports.",
    ],
)
@pytest.mark.parametrize("embedder", [None, OneDirection()], ids=["words", "embedder"])
def test_a_claim_with_a_wrong_detail_or_negation_is_not_verified(claim, embedder):
    evidence = Verifier([source(REPORT)], embedder=embedder).best(claim)

    assert evidence is not None
    assert evidence.support < THRESHOLD


@pytest.mark.parametrize(
    ("claim", "text"),
    [
        ("Revenue is measured in bananas.", "Revenue. Costs fell in spring."),
        ("Revenue is measured in bananas.", "Revenue rose. Costs fell in spring."),
        ("The ship was eaten by whales.", "See the ship. It left the harbour in May."),
    ],
)
def test_a_passage_does_not_support_what_it_does_not_say_by_being_short(claim, text):
    assert support(claim, text) < THRESHOLD


def test_a_short_sentence_supports_what_it_says():
    assert support("The board spoke of revenue.", "The board spoke. It spoke of revenue.") >= THRESHOLD
    assert support("Revenue rose.", "Revenue rose. Costs fell in spring.") >= THRESHOLD


def test_a_short_answer_is_verified_with_its_question():
    text = "Paris is the capital of France. Lyon is known for its silk and its cooking."

    assert support("Paris.", text, question="What is the capital of France?") >= THRESHOLD
    assert support("Lyon.", text, question="What is the capital of France?") < THRESHOLD
    assert support("Berlin.", text, question="What is the capital of France?") < THRESHOLD


def test_one_word_is_a_claim_only_where_a_question_is_answered():
    assert not Verifier([source(REPORT)]).is_claim("Paris.")
    assert Verifier([source(REPORT)], question="What is the capital?").is_claim("Paris.")
    assert not Verifier([source(REPORT)], question="What is the capital?").is_claim("1.")


def test_a_name_may_stand_in_the_heading():
    text = "The board proposed a dividend of 30 cents."

    assert support("The board of Contoso proposed a dividend of 30 cents.", text, heading="Contoso 2025") >= THRESHOLD


def test_an_acronym_may_be_spelt_out_in_the_evidence():
    text = "The Intergovernmental Panel on Climate Change published its report."

    assert support("The report was published by the IPCC.", text) > 0.3


def test_of_equal_support_the_shorter_passage_is_cited():
    sentence = "The board proposed a dividend of 30 cents."
    evidence = Verifier([source(REPORT, start=100)]).best(sentence)

    assert evidence is not None
    start = 100 + REPORT.index(sentence)
    assert (evidence.span.start_char, evidence.span.end_char) == (start, start + len(sentence))


def test_an_opposite_is_not_mended_by_the_sentence_beside_it():
    text = "Revenue rose 12 percent in the north. Costs fell 12 percent in the north."

    assert support("Revenue fell 12 percent in the north.", text) < THRESHOLD


def test_only_the_source_asked_for_is_looked_at():
    verifier = Verifier([source("Cats sleep all day long.", number=1), source(REPORT, number=2)])
    evidence = verifier.best("The board proposed a dividend of 30 cents.", number=1)

    assert evidence is not None
    assert evidence.source.number == 1
    assert evidence.support < THRESHOLD


def test_without_sources_there_is_no_evidence():
    assert Verifier(()).best("The board proposed a dividend.") is None


@pytest.mark.parametrize(
    ("claim", "covered"),
    [
        ("A dividend of 30 cents was proposed by the board.", True),
        ("The board proposed a dividend of 31 cents.", False),
        ("The board of Contoso proposed a dividend of 30 cents.", False),
        ("The board did not propose a dividend of 30 cents.", False),
        ("The board proposed bananas, bread and butter for lunch.", False),
    ],
)
def test_a_claim_is_covered_by_a_passage_that_has_its_words_and_that_the_rules_allow(claim, covered):
    verifier = Verifier([source(REPORT)])

    assert (verifier.coverage(claim) == 1) == covered
    assert (verifier.coverage(claim) >= 0.6) == covered


def test_no_passage_covers_a_claim_by_being_short():
    assert Verifier([source("Revenue. Costs fell in spring.")]).coverage("Revenue is measured in bananas.") < 0.6
    assert Verifier(()).coverage("Revenue is measured in bananas.") == 0


def test_a_text_is_embedded_once_and_only_where_words_do_not_decide():
    embedder = OneDirection()
    verifier = Verifier([source(REPORT)], embedder=embedder)

    verifier.best("The board of Contoso proposed 31 cents.")
    assert embedder.embedded == []
    verifier.best("A dividend was suggested by the board.")
    verifier.best("A dividend was suggested by the board.")

    asked = [text for texts in embedder.embedded for text in texts]
    assert asked
    assert len(set(asked)) == len(asked)


class Says:
    def __init__(self, entailment: float, contradiction: float = 0.0) -> None:
        self.judgement = Judgement(entailment, contradiction)

    def judge(self, claim: str, passages: Sequence[str]) -> list[Judgement]:
        return [self.judgement for _ in passages]


@pytest.mark.parametrize(
    ("judge", "claim", "verified"),
    [
        (Says(0.9), "Shareholders will be paid by the board.", True),
        (Says(0.1), "The board proposed a dividend of 30 cents.", False),
        (Says(0.9), "The board proposed a dividend of 31 cents.", False),
        (Says(0.9, 0.6), "Shareholders will be paid by the board.", False),
    ],
)
def test_a_judge_decides_within_the_rules(judge, claim, verified):
    evidence = Verifier([source(REPORT)], judge=judge).best(claim)

    assert evidence is not None
    assert (evidence.support >= THRESHOLD) is verified


@settings(deadline=None)
@given(
    words=st.lists(st.sampled_from(REPORT.replace(".", "").split()), min_size=1, max_size=12),
    number=st.integers(0, 10**6),
    at=st.integers(0, 12),
    question=st.sampled_from(["", "How large was the dividend?"]),
)
def test_a_claim_whose_number_is_absent_is_never_verified(words, number, at, question):
    assume(number not in {12, 48, 2025, 30, 2024, 48_000_000})
    claim = " ".join([*words[:at], str(number), *words[at:]]) + "."
    assume(not any(scale in claim for scale in ("million",)))
    for judge in (None, Says(1.0)):
        verifier = Verifier([source(REPORT)], question=question, embedder=OneDirection(), judge=judge)
        evidence = verifier.best(claim)
        assert evidence is not None
        assert evidence.support < THRESHOLD


@settings(deadline=None)
@given(claim=st.text(max_size=60), text=st.text(min_size=1, max_size=120))
def test_support_is_a_share_and_evidence_a_slice(claim, text):
    assume(text.strip())
    presented = source(text, start=7)
    evidence = Verifier([presented], question=claim).best(claim)

    assert evidence is not None
    assert 0 <= evidence.support <= 1
    assert 7 <= evidence.span.start_char < evidence.span.end_char <= 7 + len(text)
