"""retrieval.name_index: which documents a question names, by the words of their names."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrieval.name_index import NameIndex, name_words, without_names

REPORTS = {
    "acme17": "acme_10k_2017",
    "acme18": "acme_10k_2018",
    "globex18": "Globex annual report FY2018",
    "lease": "Lease with Jana Novak",
    "supply": "CybergyHoldingsInc Supply Agreement",
    "affiliate": "Northwind Affiliate Agreement",
}


def index_of(names: dict[str, str]) -> NameIndex:
    index = NameIndex()
    for document_id, name in names.items():
        index.add(document_id, group=document_id[:4], words=name_words(name))
    return index


@pytest.mark.parametrize(
    ("question", "named"),
    [
        ("What did Acme earn in 2018?", ["acme18"]),
        ("What did Acme earn in FY 2017?", ["acme17"]),
        ("What did Globex earn in 2018?", ["globex18"]),
        ("What is the rent in the lease with Novak?", ["lease"]),
        ("Who signed the Cybergy Holdings supply agreement?", ["supply"]),
        ("Who signed the Northwind agreement?", ["affiliate"]),
        ("Which agreement was signed?", []),
        ("When is pay day?", []),
        ("", []),
    ],
)
def test_a_question_names_the_documents_whose_names_have_its_telling_words(question: str, named: list[str]) -> None:
    assert [one.id for one in index_of(REPORTS).named(name_words(question))] == named


def test_a_document_is_named_surely_by_two_words_that_no_other_has() -> None:
    index = index_of(REPORTS)
    (both,) = index.named(name_words("the lease with Novak"))
    (one,) = index.named(name_words("What does Novak pay?"))

    assert (both.share, both.words) == (1.0, frozenset({"lease", "novak"}))
    assert 0.45 < one.share < 0.6


def test_what_may_not_be_found_names_nothing_and_is_in_nobodys_way() -> None:
    index = index_of(REPORTS)
    asked = name_words("The 10k of Acme for 2018")

    assert [one.id for one in index.named(asked, allowed=lambda _, group: group == "leas")] == []
    assert [one.id for one in index.named(asked, allowed=lambda document_id, _: document_id != "acme18")] == ["acme17"]
    assert [one.id for one in index.named(name_words("The 10k of Acme"), most=1)] == ["acme17"]


def test_a_new_name_replaces_the_old_one() -> None:
    index = index_of(REPORTS)
    index.add("lease", group="leas", words=name_words("Tenancy with Ada Byron"))

    assert index.named(name_words("the lease with Novak")) == []
    assert [one.id for one in index.named(name_words("the tenancy with Byron"))] == ["lease"]
    assert len(index) == len(REPORTS)


@pytest.mark.parametrize(
    ("question", "left"),
    [
        ("What is the rent in the lease with Novak?", "What is the rent in the  with "),
        ("the lease with Novak", "the lease with Novak"),
        ("Novak-lease: rent?", " rent?"),
    ],
)
def test_the_words_of_a_name_are_left_out_unless_nothing_else_is_asked(question: str, left: str) -> None:
    assert without_names(question, frozenset({"lease", "novak"})) == left


names = st.text(st.sampled_from("abcXY 12_-é中"), max_size=12)


@given(st.dictionaries(st.text(min_size=1, max_size=3), names, max_size=8), names, st.integers(1, 4))
def test_whatever_is_named_shares_a_word_and_is_sure_to_a_share(
    found: dict[str, str], question: str, most: int
) -> None:
    index = index_of(found)
    asked = name_words(question)
    named = index.named(asked, most=most)

    assert len(named) <= most
    assert [one.share for one in named] == sorted((one.share for one in named), reverse=True)
    for one in named:
        assert 0 < one.share <= 1
        assert one.words == asked & name_words(found[one.id])
        assert one.words
    assert index.named(asked, most=most) == named
