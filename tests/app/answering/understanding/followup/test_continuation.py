"""Which questions go on with the last answer's subject, and which change it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.answering.understanding.followup.antecedents import Exchange
from app.answering.understanding.followup.continuation import goes_on
from app.answering.understanding.followup.rules import stand_alone

LAST = Exchange(
    "What certificate did the pilot hold?",
    "The pilot held a private certificate [1].",
    "The pilot, John Doe, held a private certificate. The airplane crashed near Reno in 2019 (see wpr19.pdf).",
)

GOES_ON = [
    "And what injuries did he have?",
    "How old was he?",
    "What was his total flight time?",
    "When did it happen?",
    "Was the airplane insured?",
    "Where did John Doe learn to fly?",
    "Why?",
    "And the passenger?",
    "What else happened there in 2019?",
    "What else does wpr19.pdf say about it?",
    "Et le passager ?",
]
CHANGES = [
    "What is the notice period?",
    "Who is the chief executive of Northwind?",
    "And in Denver?",
    "And in 2021?",
    "What injuries did Jane Roe have?",
    "What does cen20.pdf say about him?",
    "What do the other reports say about it?",
    "Which documents mention him?",
    "How many employees are there in total?",
]


def understood(asked: str) -> bool:
    return goes_on(asked, stand_alone(asked, [LAST]), LAST)


@pytest.mark.parametrize("asked", GOES_ON)
def test_a_question_that_refers_back_goes_on(asked: str) -> None:
    assert understood(asked)


@pytest.mark.parametrize("asked", CHANGES)
def test_a_question_about_something_else_does_not(asked: str) -> None:
    assert not understood(asked)


@given(asked=st.sampled_from(GOES_ON), name=st.sampled_from(["Northwind", "Zoë Müller", "report-7.pdf", "in 1987"]))
def test_with_a_new_name_file_or_year_no_question_goes_on(asked: str, name: str) -> None:
    assert not understood(f"{asked.rstrip(' ?')} and {name}?")
