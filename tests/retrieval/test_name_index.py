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
        index.add(document_id, group=document_id[:4], names=[name_words(name)])
    return index


@pytest.mark.parametrize(
    ("question", "named"),
    [
        ("What did Acme earn in 2018, by its 10-K?", ["acme18"]),
        ("What did Acme earn in FY2017 (10K)?", ["acme17"]),
        ("what does the acme 10k for 2018 say?", ["acme18"]),
        ("How much did Globex earn, by its annual report of 2018?", ["globex18"]),
        ("How much did Globex earn, by its annual report?", ["globex18"]),
        ("What is the rent in the lease with Jana Novak?", ["lease"]),
        ("Who signed the supply agreement of Cybergy Holdings Inc?", ["supply"]),
        ("Who signed the Northwind affiliate agreement?", ["affiliate"]),
        ("What does Novak pay?", []),  # a name of which most is not asked for
        ("Which supply agreement do we have with Northwind?", []),
        ("Which agreement was signed?", []),
        ("When is pay day?", []),
        ("", []),
    ],
)
def test_a_question_names_the_documents_of_whose_names_it_has_most(question: str, named: list[str]) -> None:
    assert [one.id for one in index_of(REPORTS).named(question)] == named


@pytest.mark.parametrize("question", ["How do I plan the travel of a team?", "How does Acme plan its travel?"])
def test_common_words_in_a_sentence_name_nothing_by_chance(question: str) -> None:
    index = index_of({**REPORTS, "plan": "Travel plan"})

    assert index.named(question) == []
    assert [one.id for one in index.named("What does the Travel plan say?")] == ["plan"]
    assert [one.id for one in index.named("what does the travel plan say?")] == ["plan"]


def test_each_of_several_names_counts_by_itself() -> None:
    index = index_of(REPORTS)
    index.add("scan", group="scan", names=[name_words("IMG_4711"), name_words("Deed of Ada Byron"), frozenset()])

    assert [one.id for one in index.named("What does the deed of Ada Byron say?")] == ["scan"]
    assert [one.id for one in index.named("What is on IMG 4711?")] == ["scan"]


def test_what_may_not_be_found_names_nothing_and_is_in_nobodys_way() -> None:
    index = index_of(REPORTS)
    asked = "the 10-K of Acme for 2018"

    assert [one.id for one in index.named(asked, allowed=lambda _, group: group == "leas")] == []
    assert [one.id for one in index.named(asked, allowed=lambda document_id, _: document_id != "acme18")] == ["acme17"]


def test_a_name_that_too_many_documents_have_tells_none_of_them_apart() -> None:
    index = index_of(REPORTS)

    assert [one.id for one in index.named("the 10-K of Acme")] == ["acme17", "acme18"]
    assert index.named("the 10-K of Acme", most=1) == []


def test_a_new_name_replaces_the_old_one() -> None:
    index = index_of(REPORTS)
    index.add("lease", group="leas", names=[name_words("Tenancy with Ada Byron")])

    assert index.named("the lease with Jana Novak") == []
    assert [one.id for one in index.named("the tenancy with Ada Byron")] == ["lease"]
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
    named = index.named(question, most=most)

    assert len(named) <= most
    assert [one.share for one in named] == sorted((one.share for one in named), reverse=True)
    for one in named:
        assert 0 < one.share <= 1
        assert one.words == name_words(question) & name_words(found[one.id])
        assert one.words
    assert index.named(question, most=most) == named
