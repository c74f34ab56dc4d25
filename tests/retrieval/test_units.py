"""retrieval.units: what is quoted as a whole, and where in it one answer may lie."""

import re

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from retrieval.sentences import unit_spans
from retrieval.types import Span
from retrieval.units import MOST_CHARS, MOST_ITEMS, Unit, units_of

PRICES = "| Part | Price |\n|---|---|\n| Bolt | 3 EUR |\n| Nut | 4 EUR |"
FORM = "Name: | Anna Berg\nDate of birth: | 4 May 1990"
STEPS = "Clean the filter:\n1. Open the lid.\n2. Rinse it.\n\nThe warranty lasts two years."


def texts_of(text: str) -> list[str]:
    return [_slice(text, unit.span) for unit in units_of(text)]


def unit_with(text: str, words: str) -> Unit:
    """The unit whose core has these words, the shortest of several."""
    found = [unit for unit in units_of(text) if words in _slice(text, unit.core)]
    return min(found, key=lambda unit: unit.core.end_char - unit.core.start_char)


def pieces_of(text: str, unit: Unit) -> list[str]:
    return [_slice(text, piece) for piece in unit.pieces]


def _slice(text: str, span: Span) -> str:
    return text[span.start_char : span.end_char]


def test_sentences_are_units_of_their_own() -> None:
    text = "The plant closed on 4 May. Nobody was hurt."

    assert texts_of(text) == ["The plant closed on 4 May.", "Nobody was hurt."]
    assert [unit.core for unit in units_of(text)] == [unit.span for unit in units_of(text)]
    assert [pieces_of(text, unit) for unit in units_of(text)] == [["The plant closed on 4 May."], ["Nobody was hurt."]]


@pytest.mark.parametrize("heading", ["# Opening hours", "Opening hours", "## Opening hours in 2025"])
def test_a_heading_takes_the_next_sentence_and_no_more(heading: str) -> None:
    text = f"{heading}\n\nWe open at nine. On Sundays we are closed."

    assert texts_of(text) == [f"{heading}\n\nWe open at nine.", "On Sundays we are closed."]


def test_no_answer_lies_in_a_heading_above_a_blank_line() -> None:
    apart, close = "Price list\n\nA bolt costs 3 EUR.", "Price list\nA bolt costs 3 EUR."

    assert pieces_of(apart, units_of(apart)[0]) == ["A bolt costs 3 EUR."]
    assert pieces_of(close, units_of(close)[0]) == ["Price list", "A bolt costs 3 EUR."]


def test_a_heading_without_text_below_it_is_marked_as_one() -> None:
    text = "Warranty\nPrice list\nA bolt costs 3 EUR."
    first, second = units_of(text)

    assert (_slice(text, first.span), first.heading) == ("Warranty", True)
    assert (_slice(text, second.span), second.heading) == ("Price list\nA bolt costs 3 EUR.", False)


@pytest.mark.parametrize("line", ["It opened in 1990", "Is it open?", "- bolts", "a " * 13 + "a"])
def test_digits_stops_items_and_many_words_make_no_heading(line: str) -> None:
    assert texts_of(f"{line}\n\nWe open at nine.") == [line, "We open at nine."]


def test_a_heading_takes_no_row_and_no_list() -> None:
    assert texts_of(f"Prices\n\n{PRICES}")[0] == "Prices"
    assert texts_of(f"Care\n\n{STEPS}")[:2] == ["Care", "Clean the filter:\n1. Open the lid.\n2. Rinse it."]


def test_a_colon_takes_its_list_and_every_item_is_a_unit_too() -> None:
    assert texts_of(STEPS) == [
        "Clean the filter:\n1. Open the lid.\n2. Rinse it.",
        "1. Open the lid.",
        "2. Rinse it.",
        "The warranty lasts two years.",
    ]
    assert pieces_of(STEPS, units_of(STEPS)[0]) == ["Clean the filter:", "1. Open the lid.", "2. Rinse it."]


def test_a_colon_without_a_list_takes_one_sentence() -> None:
    text = "One rule holds for everybody who enters the hall: Nobody smokes. Dogs are welcome."

    assert texts_of(text)[-1] == "Dogs are welcome."
    assert any("rule" in found and "smokes" in found and "Dogs" not in found for found in texts_of(text))


def test_a_lone_number_takes_its_item() -> None:
    assert texts_of("3.\nClose the lid.\n\nThe warranty lasts two years.")[0] == "3.\nClose the lid."


def test_an_endless_list_is_cut() -> None:
    items = [f"- item {'x' * 20} {number}" for number in range(3 * MOST_ITEMS)]
    first = units_of("All items:\n" + "\n".join(items))[0]

    assert len(first.pieces) == 1 + MOST_ITEMS


def test_a_list_of_long_items_is_cut() -> None:
    items = ["- " + "word " * 60 + str(number) for number in range(MOST_ITEMS)]
    text = "All items:\n" + "\n".join(items)
    first = units_of(text)[0]

    longest = max(end - start for start, end in unit_spans(text))
    assert first.span.end_char - first.span.start_char <= MOST_CHARS + longest + 1


def test_a_row_takes_the_header_and_is_scored_by_itself() -> None:
    bolt = unit_with(PRICES, "Bolt")

    assert _slice(PRICES, bolt.span) == "| Part | Price |\n|---|---|\n| Bolt | 3 EUR |"
    assert _slice(PRICES, bolt.core) == "| Bolt | 3 EUR |"
    assert pieces_of(PRICES, bolt) == ["Bolt", "3 EUR"]


def test_a_row_far_below_its_header_is_quoted_alone() -> None:
    rows = [f"| Part {number} | {number} EUR |" for number in range(60)]
    text = "\n".join(["| Part | Price |", "|---|---|", *rows])

    assert _slice(text, unit_with(text, "Part 59 ").span) == rows[-1]


def test_a_row_takes_no_row_of_another_table() -> None:
    text = f"{PRICES}\n\n| Town | Ships |\n|---|---|\n| Oslo | 40 |"

    assert _slice(text, unit_with(text, "Oslo").span) == "| Town | Ships |\n|---|---|\n| Oslo | 40 |"


def test_a_forms_line_has_its_own_label_and_takes_nothing() -> None:
    born = unit_with(FORM, "Date of birth")

    assert _slice(FORM, born.span) == "Date of birth: | 4 May 1990"
    assert pieces_of(FORM, born) == ["4 May 1990"]


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("Tel: 12 34   Fax", ["12 34", "Fax"]),
        ("Opening hours: nine to five", ["nine to five"]),
        ("a\tb\tc", ["a", "b", "c"]),
        ("Ratio 3:1 for cement", ["Ratio 3:1 for cement"]),
        ("Phone:", ["Phone:"]),
    ],
)
def test_a_value_is_a_piece_without_its_label(text: str, values: list[str]) -> None:
    (unit,) = units_of(text)

    assert pieces_of(text, unit) == values


def test_a_line_of_names_in_brackets_belongs_to_the_values_above_it() -> None:
    values, phone = "Cupertino | 95014\n(Address of offices) | (Zip Code)", "(408) 996-1010\n(Telephone number)"
    text = f"One Park Way\n{values}\n\n{phone}\n\nOn it."

    assert texts_of(text) == ["One Park Way", values, phone, "On it."]
    assert pieces_of(text, units_of(text)[1]) == ["Cupertino", "95014"]


@pytest.mark.parametrize("text", ["Call us.\n\n(Only by day)", "Call us. (Only by day)"])
def test_brackets_that_stand_below_no_line_are_apart(text: str) -> None:
    assert len(units_of(text)) == 2


def test_a_form_without_a_value_has_no_piece() -> None:
    (unit,) = units_of("Fax: | -")

    assert unit.pieces == ()


def test_the_row_that_names_the_columns_of_a_table_is_like_a_heading() -> None:
    assert [unit.heading for unit in units_of(PRICES)] == [True, False, False]
    assert [unit.heading for unit in units_of(FORM)] == [False, False]
    assert [unit.heading for unit in units_of("| Bolt | cheap |")] == [False]


def test_a_list_that_begins_in_the_sentence_is_taken_too() -> None:
    text = "Clean it in steps: 1.\nOpen the lid.\n2.\nRinse it."

    assert texts_of(text)[0] == text


@pytest.mark.parametrize("text", ["", " \n\t ", "---", "|---|---|", "* * *\n\n====", "_____"])
def test_marks_alone_are_no_units(text: str) -> None:
    assert units_of(text) == []


def test_rules_between_rows_are_no_rows() -> None:
    assert [pieces_of(PRICES, unit) for unit in units_of(PRICES)] == [
        ["Part", "Price"],
        ["Bolt", "3 EUR"],
        ["Nut", "4 EUR"],
    ]


lines = st.one_of(
    st.sampled_from(
        [
            "# Prices",
            "Opening hours",
            "We open at nine.",
            "Our values are:",
            "- trust",
            "2. speed",
            "3.",
            "| Part | Price |",
            "|---|---|",
            "| Bolt | 3 EUR |",
            "Name: | Anna",
            "Tel: 12   Fax: 34",
            "a\tb\tc",
            "",
            "売上高は増加した。次の文。",
            "👩‍👩‍👧 laughed",
            "word " * 130,
        ]
    ),
    st.text(alphabet="ab1 .:|-\t#é", max_size=20),
)
documents = st.lists(lines, max_size=10).map("\n".join)


@settings(deadline=None)  # the first call loads the sentence model
@given(text=documents)
def test_units_are_in_reading_order_and_hold_every_character_that_is_a_word(text: str) -> None:
    units = units_of(text)
    covered = set[int]()

    starts = [unit.core.start_char for unit in units]
    assert starts == sorted(starts)
    for unit in units:
        assert 0 <= unit.span.start_char < unit.span.end_char <= len(text)
        covered.update(range(unit.span.start_char, unit.span.end_char))
    assert {match.start() for match in re.finditer(r"[^\W_]", text)} <= covered


@settings(deadline=None)
@given(text=documents)
def test_a_unit_holds_its_core_and_its_pieces_which_are_in_order_and_apart(text: str) -> None:
    for unit in units_of(text):
        assert unit.span.start_char <= unit.core.start_char < unit.core.end_char <= unit.span.end_char
        assert unit.pieces or "|" in _slice(text, unit.span), "only a row may have no value"
        last = unit.span.start_char
        for piece in unit.pieces:
            assert last <= piece.start_char < piece.end_char <= unit.span.end_char
            last = piece.end_char
            assert _slice(text, piece).strip()


@settings(deadline=None)
@given(text=documents)
@example(text="a: -|")
@example(text="| |1")
def test_no_piece_crosses_from_one_cell_to_the_next(text: str) -> None:
    for unit in units_of(text):
        for piece in unit.pieces:
            assert "|" not in _slice(text, piece)
