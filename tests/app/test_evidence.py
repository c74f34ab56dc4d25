"""app.evidence: what counts as being about the question."""

from dataclasses import replace

import pytest

from app.evidence import is_evidence
from retrieval.types import Hit
from tests.retrieval.fakes import ranked


def alike(text: str, cosine: float | None) -> Hit:
    (hit,) = ranked(text)
    return replace(hit, scores=replace(hit.scores, dense=cosine))


@pytest.mark.parametrize(("cosine", "evident"), [(0.3, True), (0.29, False), (None, False)])
def test_a_passage_close_enough_by_meaning_is_evidence(cosine: float | None, evident: bool) -> None:
    assert is_evidence("How did revenue develop?", [alike("Sales.", cosine)], least_cosine=0.3) == evident


def test_so_is_one_that_holds_most_of_the_words() -> None:
    far = alike("The part XK-42 is sold in Oslo.", -0.5)

    assert is_evidence("Is part XK-42 sold?", [far], least_cosine=0.3)
    assert not is_evidence("Is part XK-43 red, cheap, and available?", [far], least_cosine=0.3)


def test_nothing_found_is_none() -> None:
    assert not is_evidence("How did revenue develop?", [], least_cosine=-1.0)


def test_a_question_without_a_content_word_has_only_its_meaning() -> None:
    assert not is_evidence("What is it?", [alike("What is it?", None)], least_cosine=0.3)
