"""app.answering.languages.statement recognises numbers, months and names in every spelling."""

from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.answering.languages.statement import parse_statement, stem


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("1,234.5 tons", "1234.5 tons"),
        ("48 million dollars", "48,000,000 dollars"),
        ("1.234.567 Einwohner", "1234567 Einwohner"),
        ("two hundred people", "200 people"),
        ("twenty one days", "21 days"),
        ("0.50 cents", "0.5 cents"),
        ("3.2 billion", "3,200 million"),
    ],
)
def test_the_same_number_is_the_same_value(one, other):
    assert [n.value for n in parse_statement(one).numbers] == [n.value for n in parse_statement(other).numbers]


@pytest.mark.parametrize("text", ["12%", "12 %", "12 percent", "12 per cent"])
def test_a_percentage_is_one_however_it_is_written(text):
    (number,) = parse_statement(f"It rose {text} in all.").numbers

    assert (number.value, number.percent) == (Decimal(12), True)


@pytest.mark.parametrize(
    ("text", "months"),
    [
        ("It opened on 4 May 2020.", {5}),
        ("It opened on Sept. 4.", {9}),
        ("It opened on 2020-05-04.", {5}),
        ("It may open and march on.", set()),
        ("The december report", {12}),
    ],
)
def test_months_are_told_from_words_that_look_like_them(text, months):
    assert parse_statement(text).months == months


def test_names_are_large_words_that_do_not_begin_a_sentence_and_acronyms():
    statement = parse_statement("Yesterday Zoë Müller joined. NASA and the board of Dr. Chen's lab agreed.")

    assert statement.names == {"zoë", "müller", "nasa", "chen"}


def test_the_first_word_of_a_fragment_may_be_a_name():
    assert parse_statement("France", fragment=True).names == {"france"}
    assert parse_statement("Yes", fragment=True).names == set()


@pytest.mark.parametrize(
    "words", ["warm warmed warming warms", "stop stopped stopping", "increase increased increasing"]
)
def test_forms_of_a_word_have_one_stem(words):
    assert len({stem(word) for word in words.split()}) == 1


@settings(deadline=None)
@given(text=st.text(max_size=80))
def test_any_text_can_be_read(text):
    statement = parse_statement(text)

    assert all(statement.stems)
    assert statement.terms == set(statement.stems)


@settings(deadline=None)
@given(value=st.integers(0, 10**12))
def test_grouping_changes_no_number(value):
    assert parse_statement(f"about {value:,} of them").numbers == parse_statement(f"about {value} of them").numbers
