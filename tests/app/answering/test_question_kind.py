"""app.answering.question_kind: what kind of answer a question asks for."""

import pytest

from app.answering.question_kind import Use, amount_words, asks_for_words, kind_asked, kind_checked


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
