"""app.answering.quoting.headed_rows: the names of the columns above a row's cells."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.answering.quoting.candidates import candidates_of
from app.answering.quoting.headed_rows import headed_row, is_amount, years_in
from app.answering.quoting.pointing import row_of
from tests.app.answering.sources import source

STEPS = ["|  | Years Ended September 30, | ", " | 2019 | 2018 | 2017", " |  | (in millions) | "]


def names(line: str, above: list[str], table_header: str = "") -> list[tuple[str, ...]]:
    """The names of the columns of a row's cells behind its label."""
    row = headed_row(line, above, table_header)
    assert row is not None
    return [cell.names for cell in row.cells if cell.column]


@pytest.mark.parametrize(
    ("above", "line", "expected"),
    [
        (["(In thousands) | 2019 | 2018"], "Mexico | 90,795 | 12,186", [("2019",), ("2018",)]),
        (STEPS, "Sensors | 914 | 918 | 814", [("2019",), ("2018",), ("2017",)]),
        (
            ["| 2019 |  | 2018 | ", "Region | Sales | Share | Sales | Share"],
            "APAC | $479 | 40% | $288 | 38%",
            [("2019", "Sales"), ("2019", "Share"), ("2018", "Sales"), ("2018", "Share")],
        ),
        (["Items | 2019 | 2018"], "Tax | $ | 21 | $ | 70", [("2019",), ("2018",)]),
        (["| Name | Sum |", "| --- | --- |"], "| Bolt | 3 |", [("Sum",)]),
        (
            [" | First | Second", " | Quarter | Quarter", "2019 | | ", "Costs | 1,0 | 2,0"],
            "Sales | 117 | 120",
            [("First", "Quarter"), ("Second", "Quarter")],
        ),
    ],
    ids=["one line", "lines about all columns", "a name for two columns", "signs apart", "Markdown", "two lines"],
)
def test_the_names_of_columns_are_found(above: list[str], line: str, expected: list[tuple[str, ...]]) -> None:
    assert names(line, above) == expected


def test_a_table_that_began_before_the_text_has_the_names_of_its_header() -> None:
    assert names("Mexico | 90,795 | 12,186", ["Germany | 1,0 | 2,0"], "Sales\nIn euros | 2019 | 2018") == [
        ("2019",),
        ("2018",),
    ]


def test_words_below_words_are_no_further_names() -> None:
    assert names("Mallard | Pond", ["Name | Habitat", "Teal | Lake"]) == [("Habitat",)]


def test_the_label_of_a_section_is_told_apart() -> None:
    row = headed_row("Inventory | 7 | 6", ["| 2019 | 2018", "Deferred tax assets: |  | "], "")

    assert row is not None
    assert (row.section, row.heads) == ("Deferred tax assets:", ("| 2019 | 2018",))


def test_labels_of_cells_are_names() -> None:
    row = headed_row("Year: 2022 | Ducks: 280", [], "")

    assert row is not None
    assert row.labelled
    assert [(cell.text, cell.names) for cell in row.cells] == [("2022", ("Year",)), ("280", ("Ducks",))]


@pytest.mark.parametrize("line", ["Mexico | 90,795 | 12,186", "Mexico | ", "Mexico"])
def test_without_names_there_is_no_row(line: str) -> None:
    assert headed_row(line, [], "") is None


def test_a_candidate_that_is_a_whole_line_has_its_row() -> None:
    text = "Sales rose.\n\nIn euros | 2019 | 2018\nMexico | 90,795 | 12,186\nMalta | 1,000 | 2,000"
    found = [row_of(one) for one in candidates_of([source(text, start=7)]) if "Malta" in one.core_text]

    assert found[0] is not None
    row, start = found[0]
    cell = row.cells[2]
    assert text[start - 7 + cell.span.start_char : start - 7 + cell.span.end_char] == cell.text == "2,000"


PARTS = (
    "Part | Kind | Unit cost | Total | Last audit | Notes",
    "A-1 | Hardware | $45.00 | $13,005.00 | 2024-10-15",
    "A-2 | Hardware | $32.50 | $25,285.00 | 2024-10-22 | Verified",
    "A-3 | Software | $200.00 | $42,000.00 | 2024-10-25 | Of value",
)


@pytest.mark.parametrize(
    ("line", "names"),
    [
        ("A-4 | Hardware | $125.00 | $35,000.00", ["Part", "Kind", "Unit cost", "Total"]),
        ("A-5 | Software | $120.00 | $18,720.00 | Critical", ["Part", "Kind", "Unit cost", "Total", "Notes"]),
        ("A-6 | Software | $120.00 | 2024-11-05", ["Part", "Kind", "", "Last audit"]),
    ],
)
def test_a_row_that_lacks_blank_cells_is_read_by_the_kinds_of_cells_above_it(line: str, names: list[str]) -> None:
    row = headed_row(line, PARTS, "")

    assert row is not None
    assert ["; ".join(cell.names) for cell in row.cells] == names


@pytest.mark.parametrize("line", ["A-7 | 2024-10-15 | Hardware | $5.00", "A-7 | 12 | 13"])
def test_a_row_that_lacks_cells_and_is_of_other_kinds_has_no_names(line: str) -> None:
    assert headed_row(line, PARTS, "") is None


def test_fewer_cells_than_names_are_not_placed_without_full_rows_above() -> None:
    assert headed_row("A-4 | Hardware | $125.00 | $35,000.00", PARTS[:2], "") is None


def test_a_sentence_has_no_row() -> None:
    (only,) = candidates_of([source("Sales rose by 5 million.")])

    assert row_of(only) is None


@pytest.mark.parametrize(
    ("text", "years"), [("FY19 and 2018", {"2019", "2018"}), ("1,2019 or 2019.5", set()), ("FY2017", {"2017"})]
)
def test_years_are_found(text: str, years: set[str]) -> None:
    assert years_in(text) == years


@pytest.mark.parametrize(("text", "amount"), [("(1,212)", True), ("2019", False), ("$’000", False), ("ten", False)])
def test_amounts_are_no_years_and_no_words(text: str, amount: bool) -> None:
    assert is_amount(text) is amount


@given(st.lists(st.text("ab1 |:$(", max_size=12), min_size=1, max_size=5))
def test_every_cell_is_where_it_says(lines: list[str]) -> None:
    *above, line = lines
    row = headed_row(line, above, "")

    for cell in row.cells if row is not None else ():
        assert line[cell.span.start_char : cell.span.end_char] == cell.text
