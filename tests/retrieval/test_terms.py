"""retrieval.terms: search terms are few, distinct and free of operators, for any text."""

import re

from hypothesis import given
from hypothesis import strategies as st

from retrieval.terms import MAX_TERMS, inner_parts, is_unspaced, pieces, windows, words
from retrieval.words import STOP_WORDS


@given(st.text())
def test_terms_are_distinct_and_hold_letters_digits_and_marks_alone(text: str) -> None:
    terms = words(text)

    assert len(terms) == len(set(terms)) <= MAX_TERMS
    assert all(any(character.isalnum() for character in term) for term in terms)
    assert not any(character in term for term in terms for character in "\"'\\:*^()-+|&!<> \0")


def test_filler_goes_when_there_is_something_else() -> None:
    assert words("What is the revenue of the company?") == ["revenue", "company"]
    assert words("What is the") == ["what", "is", "the"]


def test_a_long_question_keeps_its_first_terms() -> None:
    assert words(" ".join(f"the w{number}" for number in range(999))) == [f"w{number}" for number in range(MAX_TERMS)]


def test_a_run_without_spaces_is_looked_up_in_windows_and_a_word_whole() -> None:
    assert pieces(["人工知能", "gpu", "ai"], size=3) == ["人工知", "工知能", "gpu"]
    assert pieces(["学習"], size=3) == []


def test_scripts_without_spaces_are_known() -> None:
    unspaced = [word for word in ("人", "カナ", "한국", "ไทย", "zürich", "हिन्दी", "слово") if is_unspaced(word)]

    assert unspaced == ["人", "カナ", "한국", "ไทย"]


def test_no_stop_word_is_looked_up_beside_another_word() -> None:
    assert words(f"{' '.join(sorted(STOP_WORDS))} revenue") == ["revenue"]
    assert words("Where did she file it?") == ["she", "file"]


@given(st.text(st.sampled_from("aAbZéß19_- \n"), max_size=80))
def test_inner_parts_are_those_of_long_words_and_of_identifiers(text: str) -> None:
    found: list[str] = []
    for word in re.findall(r"[^\W_]{4,}", text):
        mixed = any(c.isdigit() for c in word) and any(c.isalpha() for c in word)
        humped = not any(c.isdigit() for c in word) and not (word.islower() or word.isupper() or word[1:].islower())
        if len(word) >= 12 or mixed or humped:
            found += windows(word.lower(), size=3)

    assert inner_parts(text) == found
