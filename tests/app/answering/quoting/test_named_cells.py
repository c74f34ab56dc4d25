"""app.answering.quoting.named_cells: which cell of a row a question asks for."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.answering.quoting.named_cells import cell_asked
from retrieval.types import Context, Span
from tests.app.answering.pointing_reader import PointingReader
from tests.app.answering.quoting.selecting import selected
from tests.app.answering.sources import source

DUCKS = "Year: 2022 | Ducks: 280 | Freshwater Ducks: 170 | Saltwater Ducks: 110"
FAQ = "ID: 7 | Question: Who keeps the old lamp? | Answer: Mira Vale keeps it. | Asked: 12"


def answer(question: str, row: str, pointed: str) -> str:
    """The cell of `row` where the reader points at `pointed`."""
    at = row.index(pointed)
    span = cell_asked(question, row, Span(at, at + len(pointed)))
    return row[span.start_char : span.end_char]


@pytest.mark.parametrize(
    ("question", "pointed", "cell"),
    [
        ("How many saltwater ducks were counted in 2022?", "170", "110"),
        ("How many freshwater ducks were counted in 2022?", "110", "170"),
        ("How many ducks were counted in 2022?", "110", "280"),
        ("How many saltwater ducks were counted in 2022?", "2022", "110"),
    ],
)
def test_the_column_that_the_question_names_is_chosen(question: str, pointed: str, cell: str) -> None:
    assert answer(question, DUCKS, pointed) == cell


@pytest.mark.parametrize(
    ("question", "row", "pointed"),
    [
        ("How many saltwater ducks were counted in 2022?", DUCKS, "110"),
        ("How many geese were counted?", DUCKS, "170"),
        ("How many ducks were counted?", "Grey Ducks: 170 | White Ducks: 110", "170"),
        ("How many lamps are lit?", "Lamp: Harbour | Lit: 30 | Dark: 4", "30"),
        ("How many ducks?", "280 | 170 | 110", "170"),
    ],
    ids=["right already", "no name fits", "two names fit", "of the kind asked for", "without names"],
)
def test_the_reader_is_followed_where_the_names_do_not_say_better(question: str, row: str, pointed: str) -> None:
    assert answer(question, row, pointed) == pointed


def test_a_cell_of_another_kind_than_asked_is_not_chosen() -> None:
    row = "Duck keeper: Mira Vale | Ducks: 280"

    assert answer("How many ducks has the duck keeper?", row, "280") == "280"
    assert answer("Who is the keeper of the ducks?", row, "280") == "Mira Vale"


def test_the_answer_to_a_question_in_a_row_is_the_cell_behind_it() -> None:
    assert answer("Who keeps the old lamp?", FAQ, "old lamp") == "Mira Vale keeps it."


def test_words_that_are_in_no_cell_stay() -> None:
    assert cell_asked("Why?", " | Bolt", Span(0, 1)) == Span(0, 1)


@pytest.mark.parametrize(("asked", "words"), [("saltwater", "110"), ("freshwater", "170")])
def test_the_quote_of_a_row_marks_the_cell_that_the_question_names(asked: str, words: str) -> None:
    found = selected(
        f"How many {asked} ducks in 2022?", Context((source(DUCKS, start=50),), (), 10), PointingReader("280")
    )

    assert [quote.words for quote in found.quotes] == [words]


@given(
    cells=st.lists(st.tuples(st.sampled_from(["", "Ducks", "Year", "Who"]), st.text("ab1 .?", max_size=5)), max_size=4),
    question=st.sampled_from(["How many ducks?", "Who?", "When was the year?", ""]),
    data=st.data(),
)
def test_the_found_cell_lies_in_the_row(cells: list[tuple[str, str]], question: str, data: st.DataObject) -> None:
    row = " | ".join(f"{name}: {value}" if name else value for name, value in cells)
    start = data.draw(st.integers(0, len(row)))
    end = data.draw(st.integers(start, len(row)))

    found = cell_asked(question, row, Span(start, end))

    assert 0 <= found.start_char <= found.end_char <= len(row)
    if found != Span(start, end):
        assert "|" not in row[found.start_char : found.end_char]
        assert row[found.start_char : found.end_char].strip()
