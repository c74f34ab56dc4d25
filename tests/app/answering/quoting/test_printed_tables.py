"""app.answering.quoting.printed_tables: the lines of a table above one of its rows, and what they name."""

import pytest

from app.answering.quoting.headed_rows import headed_row
from app.answering.quoting.printed_tables import lines_above

INCOME = """(In millions)

Three Months Ended | Nine Months Ended
July 3, | July 4, | July 3, | July 4,
2022 | 2021 | 2022 | 2021
Sales | $ | 59 | $ | 71 | $ | 209 | $ | 192

Operating expenses

"""
STACKED = """Three Months Ended | Nine Months Ended

July 3,

2022

July 4, 2021

July 3, 2022

July 4,
2021

Sales:

"""


def names(before: str, line: str, table_header: str = "") -> list[tuple[str, ...]]:
    """The names of the columns of a row's cells behind its label; none where no row is known."""
    row = headed_row(line, lines_above(before, line, table_header))
    return [] if row is None else [cell.names for cell in row.cells if cell.column]


def test_a_label_between_rows_does_not_part_them_from_their_names() -> None:
    three, nine = "Three Months Ended", "Nine Months Ended"
    assert names(INCOME, "Research | 19 | 14 | 53 | 38") == [
        (three, "July 3,", "2022"),
        (three, "July 4,", "2021"),
        (nine, "July 3,", "2022"),
        (nine, "July 4,", "2021"),
    ]
    row = headed_row("Research | 19 | 14 | 53 | 38", lines_above(INCOME, "Research | 19 | 14 | 53 | 38", ""))
    assert row is not None
    assert (row.section, row.heads[0]) == ("Operating expenses", "(In millions)")


@pytest.mark.parametrize("line", ["Rent | 7 | 6 | 21 | 18", "Rent | $ | 7 | $ | 6 | $ | 21 | $ | 18"])
def test_names_that_are_lines_of_their_own_are_placed(line: str) -> None:
    three, nine = "Three Months Ended", "Nine Months Ended"
    expected = [(three, "July 3, 2022"), (three, "July 4, 2021"), (nine, "July 3, 2022"), (nine, "July 4, 2021")]
    assert names(STACKED, line) == expected


def test_a_passage_that_begins_below_the_names_has_those_of_its_header() -> None:
    header = "Three Months Ended | Nine Months Ended\nJuly 3, | 2022 | July 4, 2021 | July 3, 2022 | July 4, 2021"
    found = names("Costs:\n\nFuel | 9 | 8 | 27 | 24\n", "Rent | 7 | 6 | 21 | 18", header)
    assert found[2] == ("Nine Months Ended", "July 3, 2022")


def test_a_line_that_ends_within_a_phrase_and_a_unit_name_no_column() -> None:
    before = "Carrying Value at\n\nTerm (years)\n\nRate\n\nJuly 3, 2022\n\nJuly 4, 2021\n\n(In millions)\n\n"
    assert names(before, "Notes | 7.4 | 2.93% | 1,500 | 1,400") == [
        ("Term (years)",),
        ("Rate",),
        ("July 3, 2022",),
        ("July 4, 2021",),
    ]


def test_as_many_names_as_columns_are_needed() -> None:
    before = "Number\n\nPrice\n\nValue\n\n"
    assert names(before, "Granted | 84 | $ | 150.02") == []
    assert names(before, "Granted | 84 | 150.02 | 3") == [("Number",), ("Price",), ("Value",)]


def test_one_of_several_units_is_of_the_name_above_it() -> None:
    before = "Number\n\n(in thousands)\n\nPrice\n\nValue\n\n(in millions)\n\n"
    assert names(before, "Granted | 84 | 150.02 | 3") == [
        ("Number (in thousands)",),
        ("Price",),
        ("Value (in millions)",),
    ]


def test_a_single_amount_is_told_by_its_unit() -> None:
    assert names("(In millions)\n\nFiscal Year:\n\n2023 | $ | 4,234\n", "2024 | 3,362") == [()]
    assert names("Fiscal Year:\n\n2023 | $ | 4,234\n", "2024 | 3,362") == []


@pytest.mark.parametrize(
    "between",
    [
        "2022 | 2021\nOther | 5 | 6\n\nAssets\n\n",
        "Sales rose because many more customers than in the year before bought more of what the company sells.\n\n",
        "2022 | 2021\nOther | 5 | 6 | 7\n\n",
    ],
    ids=["names above rows of another table", "prose", "rows with another number of values"],
)
def test_another_table_names_nothing(between: str) -> None:
    text = f"In euros | 1990 | 1989\nOld | 1 | 2\n\n{between}"
    found = lines_above(f"{text}New | 3 | 4\n", "Newer | 5 | 6", "Header")
    assert "In euros | 1990 | 1989" not in found
    assert "Header" not in found


def test_rows_of_words_have_only_the_lines_that_touch_them() -> None:
    before = "Name | Place\n\nNotes\n\nMallard | Pond\n"
    assert lines_above(before, "Teal | Lake", "Header") == ["Mallard | Pond"]


def test_the_sign_of_the_next_amount_is_no_part_of_a_cell() -> None:
    line = "Total | (1,091) $ | 601"
    row = headed_row(line, ["| 2022 | 2021"])
    assert row is not None
    assert [(cell.text, line[cell.span.start_char : cell.span.end_char]) for cell in row.cells[1:]] == [
        ("(1,091)", "(1,091)"),
        ("601", "601"),
    ]
    assert [cell.names for cell in row.cells[1:]] == [("2022",), ("2021",)]


def test_the_first_and_last_names_are_kept_where_a_row_has_fewer_cells() -> None:
    above = ["Code | Kind | Cost | Value | Audit | Notes"]
    assert headed_row("SKU-2 | Parts | $125.00 | $35,000.00", above) is None
