"""Heads of tables: units and periods are told from titles and names, and groups are spread over their columns."""

import pytest

from ingestion.readers.head_cells import is_period, is_unit
from ingestion.readers.sheet_cells import SheetCell, address_of
from ingestion.readers.table_heads import labels_of


@pytest.mark.parametrize(
    "cell",
    [
        "2022", "FY2023", "Q1 2024", "H1", "January–June\n2023", "30 June 2023", "31.12.2022",
        "Six months ended June 30, 2023", "1. Halbjahr 2023", "As of December 31, 2021",
        "janvier–juin 2023", "2022/23",
    ],
)  # fmt: skip
def test_a_period_is_known(cell: str) -> None:
    assert is_period(cell)


@pytest.mark.parametrize(
    "cell", ["", "Sales", "Sales 2023", "Half-year report 2023", "12553", "3.1", "May Smith", "Total"]
)
def test_other_cells_are_no_period(cell: str) -> None:
    assert not is_period(cell)


@pytest.mark.parametrize(
    "cell",
    [
        "In millions of CHF",
        "in thousands",
        "(in millions, except per share data)",
        "USD'000",
        "EUR million",
        "%",
        "CHF m",
        "$ billion",
    ],
)
def test_a_unit_is_known(cell: str) -> None:
    assert is_unit(cell)


@pytest.mark.parametrize(
    "cell", ["", "Sales in Germany", "Zone NA", "NET", "Total", "All amounts", "2023", "Per share"]
)
def test_other_cells_are_no_unit(cell: str) -> None:
    assert not is_unit(cell)


def test_a_title_is_told_in_no_name() -> None:
    names = ["Zone", "Sales"]

    assert labels_of(names, [["Revenue and results", ""], ["EUR m", "2022"]]) == ("EUR m, 2022, Zone", "Sales")


def test_columns_outside_of_all_groups_keep_their_names() -> None:
    names = ["Zone", "Country", "Sales", "Costs"]

    assert labels_of(names, [["", "", "2021", "2022"]]) == ("Zone", "Country", "2021 Sales", "2022 Costs")


def test_a_name_that_is_too_long_to_repeat_has_no_label() -> None:
    assert labels_of(["Zone", "word " * 40], []) == ("Zone", "")


@pytest.mark.parametrize(
    ("column", "address"), [(0, "A1"), (25, "Z1"), (26, "AA1"), (51, "AZ1"), (701, "ZZ1"), (702, "AAA1")]
)
def test_columns_have_the_letters_of_spreadsheet_programs(column: int, address: str) -> None:
    assert address_of(SheetCell.at(0, column, "x")) == address
