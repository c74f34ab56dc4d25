"""app.answering.quoting.values: which numbers, dates and names cannot both be meant."""

import pytest

from app.answering.languages.question_kind import Kind
from app.answering.quoting.values import contradict, value_in, years_in


def contradicts(one: str, other: str, asked: Kind | None = None, sentence: str = "It is {}.") -> bool:
    """Whether the words in brackets of two sentences contradict each other, either way round."""
    values = []
    for said in (one, other):
        text = said if "[" in said else sentence.format(f"[{said}]")
        words = text[text.index("[") + 1 : text.index("]")]
        values.append(value_in(text.replace("[", "").replace("]", ""), words, asked))
    if None in values:
        return False
    found = contradict(values[0], values[1])  # type: ignore[arg-type]
    assert contradict(values[1], values[0]) == found  # type: ignore[arg-type]
    return found


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("[4.80] euros", "[5.20] euros"),
        ("[4.80 euros]", "EUR [5.20]"),
        ("[$4 million]", "[$5 million]"),
        ("[12 percent]", "[14] %"),
        ("[four] wheels", "[6] wheels"),
        ("[100] people", "more than [150] people"),
        ("[10 to 12] weeks", "[14 weeks]"),
    ],
)
def test_numbers_of_one_unit_contradict(one: str, other: str) -> None:
    assert contradicts(one, other, "number")


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("4.8", "4.80"),
        ("[1,200] people", "[1200] people"),
        ("[3.7] percent", "[3.68] percent"),
        ("[1.2 million]", "[1,203,000]"),
        ("[five] days", "[5 days]"),
        ("more than [100] people", "[110] people"),
        ("about [50] people", "[48] people"),
        ("[10 to 12] weeks", "[11 weeks]"),
        ("[4.80] euros", "[5.20] dollars"),
        ("[12] percent", "[14] points"),
        ("[3] kilometres", "[2] miles"),
        ("[3] weeks", "[21 days]"),
    ],
)
def test_numbers_that_may_both_be_right_do_not(one: str, other: str) -> None:
    assert not contradicts(one, other, "number")


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("2019", "2020"),
        ("January 2020", "2021"),
        ("January 2020", "February 2020"),
        ("4 May 2020", "May 5, 2020"),
        ("2020-01-31", "3 January 2020"),
        ("4 May", "5 May"),
        ("1917–1919", "1921"),
    ],
)
def test_different_dates_contradict(one: str, other: str) -> None:
    assert contradicts(one, other, "time")
    assert contradicts(one, other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("January 2020", "2020"),
        ("4 May 2020", "May 2020"),
        ("4 May 2020", "2020-05-04"),
        ("Jan 2020", "January 2020"),
        ("1917–1919", "1918"),
        ("1917", "the 20th century"),
        ("44 BC", "1944"),
        ("4 May", "2020"),
        ("from May to June 2020", "July 2020"),
    ],
)
def test_dates_of_which_one_may_be_part_of_the_other_do_not(one: str, other: str) -> None:
    assert not contradicts(one, other, "time")


def test_different_names_contradict_but_short_forms_do_not() -> None:
    assert contradicts("Ada Lovelace", "Grace Hopper", "name")
    assert not contradicts("John Smith", "J. Smith", "name")
    assert not contradicts("WHO", "World Health Organization", "name")
    assert not contradicts("Zoë", "Zoe Müller", "name")
    assert not contradicts("Norman", "Normans", "name")


def test_a_list_of_names_is_no_single_value() -> None:
    for listed in (
        "Americas, Europe, China, Japan and Rest of Asia",
        "Lovelace, Hopper and Curie",
        "Ada, Grace, and Marie",
        "Ada or Grace or Marie",
    ):
        assert value_in(f"These are {listed}.", listed, "name") is None, listed
    for one in ("Bosnia and Herzegovina", "Washington, D.C.", "Marks & Spencer"):
        assert value_in(f"This is {one}.", one, "name") is not None, one


def test_words_that_are_not_in_their_sentence_have_no_value() -> None:
    assert value_in("The fee is 4 euros.", "5", "number") is None


def test_periods_have_both_of_their_years() -> None:
    assert years_in("From 1939–45, and 1950, 2.1950 and 1,920; the 1960s.") == {1939, 1945, 1950}
