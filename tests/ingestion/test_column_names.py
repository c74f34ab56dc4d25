"""ingestion.column_names: a row names columns when its content differs from the rows below."""

import pytest

from ingestion.column_names import CellKind, is_data_column, kind_of, names_columns

Rows = list[list[str]]


@pytest.mark.parametrize(
    ("first", "below"),
    [
        (["city", "people"], [["Oslo", "717710"], ["Bergen", ""]]),
        (["Team", "Location", "Stanley Cups"], [["Blues", "STL", "1.0"], ["Flyers", "PHI", "2.0"]]),
        (["Product", "Last Audit"], [["SKU-1", "2024-10-15"]]),
        (["#", "Title"], [["1", "The Hound of the Baskervilles"]]),
        (["", "2023", "2022"], [["Sales", "1,200", "1,100"], ["Costs", "$ 900", "(30)"]]),
        (["Package no.:", "Doc. no.:", "Rev."], [["13156456", "144564", "A"]]),
        (["name", "note"], [["Doe, Jane", 'said "hi" and left']]),
        (["Employee", "Approver"], [["Ann", "Bo"], ["Cy", "Di"]]),
        (["название", "страна"], [["Москва", "Россия"], ["Казань", "Россия"], ["Самара", "Россия"]]),
        (["Term", "Meaning"], [["Hit", "A chunk and how well it matches"], ["Job", "An ingestion that waits or runs"]]),
    ],
)
def test_words_above_other_content_name_the_columns(first: list[str], below: Rows) -> None:
    assert names_columns(first, below)


@pytest.mark.parametrize(
    ("first", "below"),
    [
        (["1", "2"], [["3", "4"]]),
        (["Zone NA", "12553"], [["Zone EUR", "9467"]]),
        (["2019", "120"], [["2020", "135"]]),
        (["2024-01-01", "paid"], [["2024-01-02", "open"]]),
        (["x", "x"], [["x", "x"]]),
        (["Alice", "Oslo"], [["Bob", "Paris"], ["Carol", "Rome"]]),
        (["Alice", "Norway"], [["Bob", "Norway"], ["Carol", "Norway"]]),
        (["Insured name", "Bruce Wayne"], [["Claim #", "999"], ["Policy #", "IM-BATMAN"]]),
        (["Name:", "Bruce Wayne"], [["Age:", "40"]]),
        (["Power system"], [["1"], ["2"], ["Construction"], ["3"]]),
        (["city", "", "", "people"], [["Oslo", "1", "2", "3"]]),
        (["city", "people"], []),
    ],
)
def test_a_first_row_like_the_others_names_nothing(first: list[str], below: Rows) -> None:
    assert not names_columns(first, below)


@pytest.mark.parametrize(
    ("cell", "kind"),
    [
        (" ", CellKind.BLANK),
        ("$ 1,200.50", CellKind.NUMBER),
        ("(12)%", CellKind.NUMBER),
        ("12/08/2007", CellKind.DATE),
        ("7:00 PM", CellKind.DATE),
        ("SKU-8847", CellKind.CODE),
        ("a@b.org", CellKind.CODE),
        ("—", CellKind.MARK),
        ("2024 total", CellKind.WORDS),
        ("Zone NA", CellKind.WORDS),
    ],
)
def test_cells_have_a_kind(cell: str, kind: CellKind) -> None:
    assert kind_of(cell) is kind


@pytest.mark.parametrize(
    ("values", "data"),
    [(["3", "4 %", "Bolt"], True), (["3", "Bolt"], False), (["", "2024-10-15"], True), (["", " "], False), ([], False)],
)
def test_a_column_of_data_has_mostly_no_words(values: list[str], data: bool) -> None:
    assert is_data_column(values) == data
