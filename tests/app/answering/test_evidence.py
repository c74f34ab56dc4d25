"""app.answering.evidence: what counts as being about the question."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.answering.evidence import evidence_score
from retrieval.types import Hit
from tests.retrieval.fakes import ranked

REVENUE = "How did revenue develop?"


def alike(text: str, cosine: float | None) -> Hit:
    (hit,) = ranked(text)
    return replace(hit, scores=replace(hit.scores, dense=cosine))


@pytest.mark.parametrize(
    ("text", "cosine", "evident"),
    [
        ("Sales.", 0.4, True),
        ("Sales.", 0.38, False),
        ("Revenue.", 0.25, True),
        ("Revenue.", 0.2, False),
        ("Sales.", None, False),
    ],
)
def test_meaning_counts_and_shared_words_make_up_for_some_of_it(text: str, cosine: float | None, evident: bool) -> None:
    assert (evidence_score(REVENUE, [alike(text, cosine)]) >= 0.3) == evident


@pytest.mark.parametrize("cosine", [-0.5, None])
def test_most_of_the_words_are_evidence_whatever_the_embedder_says(cosine: float | None) -> None:
    far = alike("The part XK-42 is sold in Oslo.", cosine)

    assert evidence_score("Is part XK-42 sold?", [far]) >= 0.3
    assert evidence_score("Is part XK-43 red, cheap, and available?", [far]) < 0.3


def test_nothing_found_is_no_evidence() -> None:
    assert evidence_score(REVENUE, []) == 0


def test_a_question_without_a_content_word_has_only_its_meaning() -> None:
    assert evidence_score("What is it?", [alike("What is it?", None)]) == 0
    assert evidence_score("What is it?", [alike("It is.", 0.5)]) >= 0.3


hits = st.lists(
    st.builds(
        alike,
        st.lists(st.sampled_from(["revenue", "develop", "rain", "oslo"]), min_size=1, max_size=4).map(" ".join),
        st.none() | st.floats(-1, 1),
    ),
    max_size=5,
)


@given(found=hits, more=hits)
def test_a_score_is_a_share_and_finding_more_never_lowers_it(found: list[Hit], more: list[Hit]) -> None:
    assert 0 <= evidence_score(REVENUE, found) <= evidence_score(REVENUE, [*found, *more]) <= 1


@given(cosines=st.tuples(st.floats(-1, 1), st.floats(-1, 1)).map(sorted), text=st.sampled_from(["Revenue.", "Rain."]))
def test_of_two_passages_with_the_same_words_the_nearer_one_scores_at_least_as_much(
    cosines: list[float], text: str
) -> None:
    low, high = (evidence_score(REVENUE, [alike(text, cosine)]) for cosine in cosines)

    assert low <= high
