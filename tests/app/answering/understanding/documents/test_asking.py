"""Which questions are about a document as a whole, and never one for a fact."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.answering.understanding.documents.asking import wanted_overview
from tests.patterns.growth import assert_linear

AT_HAND = [
    "What is this document about?",
    "What's this about?",
    "What is it about?",
    "Could you tell me what this file is about, please?",
    "Summarise this.",
    "Please summarize the document in three sentences",
    "tl;dr",
    "TL;DR of this",
    "Give me a short summary.",
    "I'd like an overview of the document",
    "What is in this file?",
    "What is this document?",
    "What kind of document is this?",
    "What does it say?",
    "Worum geht es in diesem Dokument?",
    "De quoi parle ce document ?",
    "¿De qué trata este documento?",
]


@pytest.mark.parametrize("question", AT_HAND)
def test_the_document_at_hand_has_no_name(question: str) -> None:
    wanted = wanted_overview(question)

    assert wanted is not None
    assert (wanted.words, wanted.kinds, wanted.explicit) == (frozenset(), frozenset(), True)


@pytest.mark.parametrize(
    ("question", "words", "kinds", "explicit"),
    [
        ("What is the report on the typewriter about?", {"typewriter"}, {"report"}, True),
        ("What does the memo cover?", set(), {"memo"}, True),
        ("What is the memo from Mallori about?", {"mallori"}, {"memo"}, True),
        ("What are the main points of the Oslo handbook?", {"oslo"}, {"handbook"}, True),
        ("tl;dr of wiki_duck.html", {"wiki", "duck"}, set(), True),
        ("Summarise the GSA strategic plan", {"gsa", "strategic"}, {"plan"}, False),
        ("Give me an overview of GSA's strategic plan.", {"gsa", "strategic"}, {"plan"}, False),
        ("What is Moby Dick about?", {"moby", "dick"}, set(), False),
        ("What is the hearing about?", {"hearing"}, set(), False),
    ],
)
def test_a_document_is_named_by_its_words(question: str, words: set[str], kinds: set[str], explicit: bool) -> None:
    wanted = wanted_overview(question)

    assert wanted is not None
    assert (set(wanted.words), set(wanted.kinds)) == (words, kinds)
    assert (wanted.explicit, wanted.pointed) == (explicit, False)


@pytest.mark.parametrize(
    ("question", "explicit"),
    [
        ("What is the title of this document?", True),
        ("What is this agreement called?", True),
        ("What kind of agreement is this?", True),
        ("What's this paper's title?", True),
        ("What is the name of the contract?", False),
        ("What is the report called?", False),
    ],
)
def test_no_more_than_the_name_of_the_document_at_hand_is_wanted(question: str, explicit: bool) -> None:
    wanted = wanted_overview(question)

    assert wanted is not None
    assert (wanted.name, wanted.at_hand, wanted.explicit) == (True, True, explicit)


FACTS = [
    "What is it called?",
    "What is this called?",
    "What is the name of the ship?",
    "What is the title of the book?",
    "What is the name of the company's contract?",
    "What kind of bird is this?",
    "What is the hearing about on 4 May?",
    "What does the memo say about water?",
    "What is the budget of the plan?",
    "What is the purpose of the memo?",
    "What is the aim of the study?",
    "What is section 3 of the report about?",
    "What is page 4 about?",
    "What is the article 5 about?",
    "Who wrote this document?",
    "When was the report written?",
    "How many pages does this document have?",
    "What is this aircraft about?",
    "What is this?",
    "Describe the pilot.",
    "Tell me about ducks.",
    "What does the pilot say?",
    "What is in the box?",
    "Summarise these documents",
    "What is the report about, and who wrote it?",
    "What does it say about him?",
    "Why is this document confidential?",
    "",
]


@pytest.mark.parametrize("question", FACTS)
def test_a_question_for_a_fact_is_none(question: str) -> None:
    assert wanted_overview(question) is None


asking = st.sampled_from(["who", "when", "where", "why", "how many", "how much", "which", "whose", "in which year"])
rest = st.text(st.sampled_from("abc what is the document about summary of it 4?"), max_size=80)


@given(asking=asking, rest=rest)
def test_no_question_that_begins_with_another_question_word_is_one(asking: str, rest: str) -> None:
    assert wanted_overview(f"{asking} {rest}") is None


@given(question=st.sampled_from(AT_HAND), fact=st.sampled_from(["about Oslo", "on 4 May", "by Mallori", "and why"]))
def test_with_a_fact_behind_it_nothing_is_at_hand(question: str, fact: str) -> None:
    wanted = wanted_overview(f"{question.rstrip('?. ')} {fact}?")

    assert wanted is None or wanted.words or not wanted.explicit


@given(st.text(max_size=300))
def test_any_text_is_read(question: str) -> None:
    wanted_overview(question)


@pytest.mark.parametrize("asking", ["what is a ", "give me a ", "show ", "what's the "])
@pytest.mark.parametrize("length", ["one-word ", "short one-line ", "two-word "])
def test_a_question_that_repeats_a_length_is_read_in_linear_time(asking: str, length: str) -> None:
    """With two ways to read "one-word" the time doubled each time: a question of 200 characters took a second."""
    assert_linear(lambda size: wanted_overview(asking + length * (size // len(length)) + "x"), (90, 180))
    assert wanted_overview(f"{asking}{length * 2}summary of the report") is not None
