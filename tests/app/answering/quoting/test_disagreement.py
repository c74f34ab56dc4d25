"""app.answering.quoting.disagreement: two sentences that give different values for one thing, and ones that do not."""

from dataclasses import replace

import pytest

from app.answering.quoting.disagreement import Disagreement, PassageClaim, counterpart, disagreement

FEE = "What is the fee for a day in the car park?"


def claim(text: str, *, above: str = "", probability: float = 0.9) -> PassageClaim:
    """A claim whose words are in brackets."""
    words = text[text.index("[") + 1 : text.index("]")]
    return PassageClaim(words, text.replace("[", "").replace("]", ""), above, probability)


def told(question: str, one: str, other: str, *, above: tuple[str, str] = ("", "")) -> str | None:
    found = disagreement(question, claim(one, above=above[0]), [claim(other, above=above[1])])
    return None if found is None else found.what


def test_the_likeliest_other_value_is_told() -> None:
    first = claim("The fee for a day in the car park is [4.80] euros.")
    others = [
        claim("The fee for a day in the car park is [9.90] euros.", probability=0.5),
        claim("The fee for a day in the car park is [4.8] euros.", probability=0.8),
        claim("The car park takes a fee of [5.20] euros for a day.", probability=0.7),
    ]

    assert disagreement(FEE, first, others) == Disagreement(2, "number", "5.20")


@pytest.mark.parametrize(
    ("question", "one", "other", "what"),
    [
        (
            "When was the mill built?",
            "The mill was built in [1871].",
            "Records show the mill was built in [1878].",
            "date",
        ),
        ("Who built the mill?", "The mill was built by [Ada Moss].", "[Ben Reed] built the mill.", "name"),
        (FEE, "A day in the car park costs [$4].", "A day in the car park costs [5 dollars].", "number"),
    ],
)
def test_each_kind_of_value_is_told(question: str, one: str, other: str, what: str) -> None:
    assert told(question, one, other) == what


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("In 2019 the fee for a day was [4.80] euros.", "In 2020 the fee for a day was [5.20] euros."),
        ("The fee for a day is [4.80] euros.", "The fee for a day rose from 4.80 to [5.20] euros."),
        ("The fee for a day in the car park is [4.80] euros.", "A bus ticket to the airport is [5.20] euros."),
        ("Car park | Day | [4.80]", "Car park | Week | [5.20]"),
        ("The fee for a day is [4.80] euros.", "The fee for a day is [4.80] dollars."),
    ],
)
def test_other_years_things_and_rows_are_no_conflict(one: str, other: str) -> None:
    assert told(FEE, one, other) is None


def test_years_above_the_sentences_tell_them_apart_unless_the_question_names_one() -> None:
    said, otherwise = "The fee for a day is [4.80] euros.", "The fee for a day is [5.20] euros."

    assert told(FEE, said, otherwise, above=("Fees of 2019", "Fees of 2020")) is None
    assert told(FEE, said, otherwise, above=("Fees of 2019", "Fees of 2019")) == "number"
    assert told(FEE, said, otherwise, above=("Fees of 2019", "Fees")) == "number"


def test_an_unlikely_passage_does_not_disagree() -> None:
    first = claim("The fee for a day is [4.80] euros.", probability=0.9)

    assert disagreement(FEE, first, [claim("The fee for a day is [5.20] euros.", probability=0.01)]) is None


def test_words_in_the_place_of_the_answer_are_told_where_the_reader_found_others() -> None:
    first = claim("The colonies had roughly [60,000] settlers, compared with 2 million in the south.")
    other = PassageClaim("2 million", first.sentence.replace("60,000", "80,000"), probability=0.1)
    apart = replace(other, sentence=other.sentence.replace("south", "North").replace("The colonies", "Its Towns"))

    assert disagreement("How many people did the colonies have?", first, [other]) == Disagreement(0, "number", "80,000")
    assert counterpart(first, apart.sentence.replace("2 million", "7 million")) == ""
