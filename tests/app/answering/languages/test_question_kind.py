"""app.answering.languages.question_kind: what kind of answer a question asks for."""

import pytest

from app.answering.languages.question_kind import (
    Use,
    amount_words,
    asks_for_several,
    asks_for_words,
    compared,
    kind_asked,
    kind_checked,
)
from tests.patterns.growth import limited


@pytest.mark.parametrize(
    ("question", "asks"),
    [
        ("Who closed it?", True),
        ("In which year did it close?", True),
        ("where does the last name hogan come from", True),
        ("How many people were hurt?", True),
        ("And when was that?", True),
        ("What is the plant called?", True),
        ("How can I close an account?", False),
        ("And why?", False),
        ("Is it true that the plant closed?", False),
        ("Can you say who closed it?", False),
        ("Tell me about the plant.", False),
        ("What about Oslo?", False),
        ("What do the documents say about Oslo?", False),
        ("The plant in Oslo", False),
        ("Wann wurde das Werk in Oslo geschlossen?", False),
        ("¿Quién cerró la planta de Oslo?", False),
    ],
)
def test_it_knows_which_questions_a_few_words_answer(question: str, asks: bool) -> None:
    assert asks_for_words(question) == asks


@pytest.mark.parametrize(
    ("question", "kind"),
    [
        ("When did it close?", "time"),
        ("In what year was it built?", "time"),
        ("How many people live there?", "number"),
        ("What percentage passed?", "number"),
        ("Who wrote it?", "name"),
        ("where is the plant", "name"),
        ("Why did it close?", None),
        ("Wann wurde es gebaut?", None),
    ],
)
def test_the_kind_of_answer_is_recognised_from_the_question(question: str, kind: str | None) -> None:
    assert kind_asked(question) == kind


@pytest.mark.parametrize(
    ("question", "kind"),
    [
        ("when did it close ?", "number"),
        ("how many were hurt ?", "number"),
        ("how deep is the lake ?", None),
        ("in which year was that ?", "number"),
        ("who closed the plant ?", "name"),
        ("where is it ?", None),
        ("how", None),
    ],
)
def test_the_verifier_expects_a_number_or_a_name_in_the_answer(question: str, kind: str | None) -> None:
    assert kind_checked(question.split()) == kind


def test_the_rules_differ_in_the_amounts_they_know() -> None:
    assert set(amount_words(Use.ANSWER)) - set(amount_words(Use.CHECK)) == {"fast", "deep", "heavy"}
    assert set(amount_words(Use.FOLLOW_UP)) == {"many", "much", "long", "often", "big", "large"}
    assert set(amount_words(Use.OPENING)) == {"much", "long", "often", "far"}


@pytest.mark.parametrize(
    ("question", "several"),
    [
        ("List the values of the agency.", True),
        ("Please name three causes of the fire", True),
        ("What are GSA's four strategies?", True),
        ("What are the two types of self-locking nuts?", True),
        ("Who are the members of the board?", True),
        ("Which countries joined?", True),
        ("Which European countries did not join?", True),
        ("What drugs were tested?", True),
        ("How many of the passengers were hurt?", True),
        ("Compare the plant in Oslo and the plant in Reno.", True),
        ("What is the difference between a duck and a goose?", True),
        ("How do ducks differ from geese?", True),
        ("Which company makes turbines?", False),
        ("Which process is used?", False),
        ("Which is the largest plant?", False),
        ("What causes rust?", False),
        ("What does the report say about Oslo?", False),
        ("What are ducks?", False),
        ("What were Apple's total net sales?", False),
        ("What are the net sales of the third quarter?", False),
        ("How many people were hurt?", False),
        ("Who was the cashier?", False),
        ("Was ist der Unterschied zwischen Enten und Gänsen?", False),
    ],
)
def test_it_knows_which_questions_have_several_answers(question: str, several: bool) -> None:
    assert asks_for_several(question) == several
    assert not (several and asks_for_words(question))


@pytest.mark.parametrize(
    ("question", "sides"),
    [
        ("Compare the Boots nut with the elastic stop nut.", ("the Boots nut", "the elastic stop nut")),
        ("What is the difference between ducks and geese?", ("ducks", "geese")),
        ("How does Oslo compare to Reno?", ("Oslo", "Reno")),
        ("Oslo vs. Reno", ("Oslo", "Reno")),
        ("List the ducks and the geese", None),
        ("When did Oslo and Reno open?", None),
    ],
)
def test_it_knows_what_is_compared(question: str, sides: tuple[str, str] | None) -> None:
    assert compared(question) == sides


@pytest.mark.parametrize("opening", ["can you please ", "please ", "and so ", "would you ", "can you, "])
def test_a_question_that_repeats_its_opening_is_read_in_linear_time(opening: str) -> None:
    """With two ways to read "can you please" the time doubled each time: 30 of them took minutes."""
    with limited(2):
        assert not asks_for_several(opening * 2_000 + "x?")
        assert asks_for_several(opening * 2_000 + "list them")
