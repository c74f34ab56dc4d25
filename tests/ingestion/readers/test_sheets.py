"""Spreadsheets: the content of a table tells its names, titles and rows apart, and its parts are read together."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path

from openpyxl import Workbook  # type: ignore[import-untyped]

from ingestion.types import BlockKind, Extraction
from tests.ingestion.readers.reading import blocks, read

Lines = Sequence[Sequence[object]]

ROW, CAPTION, PARAGRAPH, HEADING = BlockKind.TABLE_ROW, BlockKind.CAPTION, BlockKind.PARAGRAPH, BlockKind.HEADING


def workbook(folder: Path, cells: Mapping[str, object], *, name: str = "Sales") -> Extraction:
    """A workbook of one sheet with these cells."""
    book = Workbook()
    sheet = book.worksheets[0]
    sheet.title = name
    for place, value in cells.items():
        sheet[place] = value
    book.save(folder / "book.xlsx")
    return read(folder, "a.xlsx", (folder / "book.xlsx").read_bytes())


def rows(top: int, left: str, lines: Lines) -> dict[str, object]:
    """Cells of `lines` from row `top` and column `left` on."""
    return {
        f"{chr(ord(left) + column)}{top + row}": value
        for row, line in enumerate(lines)
        for column, value in enumerate(line)
        if value is not None
    }


def test_a_sheet_has_its_name_as_heading_and_rows_with_the_names_of_their_columns(tmp_path: Path) -> None:
    extraction = workbook(tmp_path, rows(1, "A", [["Team", "Cups"], ["Blues", 1], ["Flyers", 2]]))

    expected = [
        (HEADING, "Sales"),
        (ROW, "Team | Cups"),
        (ROW, "Team: Blues | Cups: 1"),
        (ROW, "Team: Flyers | Cups: 2"),
    ]
    assert blocks(extraction) == expected


def test_a_first_row_of_data_is_no_header(tmp_path: Path) -> None:
    extraction = workbook(tmp_path, rows(1, "A", [["Zone NA", 12553], ["Zone EUR", 9467], ["Zone AOA", 9060]]))

    assert [text for _, text in blocks(extraction)][1:] == ["Zone NA | 12553", "Zone EUR | 9467", "Zone AOA | 9060"]


def test_titles_above_the_names_are_captions(tmp_path: Path) -> None:
    lines: Lines = [
        ["Ducks by year", None, None],
        ["in thousands", None, None],
        ["Year", "Fresh", "Salt"],
        [2019, 120, 80],
    ]

    extraction = workbook(tmp_path, rows(1, "A", lines))

    texts = blocks(extraction)[1:]
    assert [text for kind, text in texts if kind in {CAPTION, PARAGRAPH}] == ["Ducks by year", "in thousands"]
    assert [text for kind, text in texts if kind is ROW] == [
        "in thousands, Year | Fresh | Salt",
        "in thousands, Year: 2019 | Fresh: 120 | Salt: 80",
    ]


def test_the_label_of_a_section_has_no_column_name(tmp_path: Path) -> None:
    lines: Lines = [["Title", "Author", "Added"], ["Fiction", None, None], ["Emma", "Jane Austen", 1815]]

    extraction = workbook(tmp_path, rows(1, "A", lines))

    assert [text for _, text in blocks(extraction)][2:] == [
        "Fiction",
        "Title: Emma | Author: Jane Austen | Added: 1815",
    ]


def test_columns_after_a_blank_one_keep_the_names_of_their_rows_and_columns(tmp_path: Path) -> None:
    names: Lines = [
        ["In millions of CHF", None, None, None, "Costs"],
        [None, "Sales", "Profit", None, "of which wages"],
    ]
    data: Lines = [
        ["Zone NA", 12553, 2713, None, -81],
        ["Zone EUR", 9467, 1570, None, -197],
        ["Total", 22020, 4283, None, -278],
    ]

    extraction = workbook(tmp_path, rows(1, "A", names) | rows(4, "A", data))

    assert blocks(extraction)[1:] == [
        (CAPTION, "In millions of CHF | Costs"),
        (ROW, "In millions of CHF | Sales | Profit | of which wages"),
        (ROW, "In millions of CHF: Zone NA | Sales: 12553 | Profit: 2713 | of which wages: -81"),
        (ROW, "In millions of CHF: Zone EUR | Sales: 9467 | Profit: 1570 | of which wages: -197"),
        (ROW, "In millions of CHF: Total | Sales: 22020 | Profit: 4283 | of which wages: -278"),
    ]


def test_columns_of_one_name_are_told_apart_by_their_group(tmp_path: Path) -> None:
    lines: Lines = [
        [None, "2023", None, "2022", None],
        ["Zone", "Sales", "Profit", "Sales", "Profit"],
        ["NA", 5, 1, 4, 2],
    ]

    extraction = workbook(tmp_path, rows(1, "A", [*lines, ["EUR", 7, 3, 6, 4]]))

    last = blocks(extraction)[-1][1]
    assert last == "Zone: EUR | 2023 Sales: 7 | 2023 Profit: 3 | 2022 Sales: 6 | 2022 Profit: 4"


def test_a_row_repeats_the_unit_and_the_period_of_its_table(tmp_path: Path) -> None:
    head: Lines = [["In millions of CHF", None, "January–June\n2022"], [None, "Sales (a)", "Costs"]]
    data: Lines = [["Zone NA", 12138, -348], ["Zone LATAM", 5659, -178]]

    extraction = workbook(tmp_path, rows(1, "A", head) | rows(4, "A", data))

    last = blocks(extraction)[-1][1]
    assert last == "In millions of CHF, January–June 2022: Zone LATAM | Sales (a): 5659 | Costs: -178"


def test_each_column_has_the_period_that_is_above_its_group(tmp_path: Path) -> None:
    data: Lines = [["Zone NA", 1, -9, 2, -285], ["Zone EUR", 3, -23, 4, -7]]
    names = [None, "Goodwill", "Plants", "Goodwill", "Plants"]
    left: Lines = [["In millions of CHF", 2023, None, 2022, None], names]
    right: Lines = [["In millions of CHF", None, "January–June 2023", None, "January–June 2022"], names]

    (tmp_path / "left").mkdir()
    (tmp_path / "right").mkdir()
    over_the_first = workbook(tmp_path / "left", rows(1, "A", [*left, *data]))
    over_the_last = workbook(tmp_path / "right", rows(1, "A", right) | rows(4, "A", data))

    assert blocks(over_the_first)[-1][1] == (
        "In millions of CHF: Zone EUR | 2023 Goodwill: 3 | 2023 Plants: -23 | 2022 Goodwill: 4 | 2022 Plants: -7"
    )
    assert blocks(over_the_last)[-1][1] == (
        "In millions of CHF: Zone EUR | January–June 2023 Goodwill: 3 | January–June 2023 Plants: -23"
        " | January–June 2022 Goodwill: 4 | January–June 2022 Plants: -7"
    )


def test_a_row_knows_the_cells_it_is_from(tmp_path: Path) -> None:
    lines: Lines = [["Zone", "Sales", None, "Costs"], ["NA", 5, None, 1], ["EUR", None, None, 3]]

    extraction = workbook(tmp_path, rows(2, "B", [["Sales by zone", None, None, None], *lines]))

    cells = {extraction.text[block.start_char : block.end_char]: block.cells for block in extraction.blocks}
    assert cells["Zone: NA | Sales: 5 | Costs: 1"] == ("B4", "C4", "E4")
    assert cells["Zone: EUR | Costs: 3"] == ("B5", "E5")
    assert cells["Sales by zone"] == ("B2",)


def test_notes_above_a_table_in_cells_of_their_own_are_not_its_names(tmp_path: Path) -> None:
    notes: Lines = [["Lots of people", None, None], ["write", None, "notes"], ["or", None, "merge cells"]]
    keepers: Lines = [
        ["Name", "Left", "Born"],
        ["Mira Vale", True, datetime.fromisoformat("1950-10-21")],
        ["Ada Hope", False, datetime.fromisoformat("1947-01-08")],
    ]

    extraction = workbook(tmp_path, rows(1, "A", [*notes, *keepers]))

    assert "Name: Mira Vale | Left: True | Born: 1950-10-21" in [text for _, text in blocks(extraction)]


def test_a_time_of_the_day_stays_with_its_date(tmp_path: Path) -> None:
    extraction = workbook(
        tmp_path, rows(1, "A", [["Lamp", "Lit"], ["Bala", datetime.fromisoformat("2020-01-08T17:30")], ["Eye", 3]])
    )

    assert "Lamp: Bala | Lit: 2020-01-08 17:30:00" in [text for _, text in blocks(extraction)]


def test_notes_below_a_table_are_paragraphs(tmp_path: Path) -> None:
    notes = {
        "A5": "(a) Composed of businesses not under the direct control of the zones, and of group activities.",
        "A6": "(b) Mainly corporate expenses as well as the costs of research and development.",
    }

    extraction = workbook(tmp_path, rows(1, "A", [["Zone", "Sales"], ["NA", 5], ["EUR", 7]]) | notes)

    assert [kind for kind, _ in blocks(extraction)[-2:]] == [PARAGRAPH, PARAGRAPH]


def test_rows_after_a_blank_one_have_the_names_of_the_table_above(tmp_path: Path) -> None:
    above: Lines = [["Zone", "Sales", "Profit"], ["NA", 5, 1], ["EUR", 7, 3]]

    extraction = workbook(tmp_path, rows(1, "A", above) | rows(5, "A", [["Total", 12, 4], ["of which new", 2, 1]]))

    assert blocks(extraction)[-2][1] == "Zone: Total | Sales: 12 | Profit: 4"


def test_labels_and_values_with_blank_columns_between_are_read_row_by_row(tmp_path: Path) -> None:
    labels: Lines = [["Rated voltage"], ["System earthing"], ["Location"]]
    values: Lines = [["kV", "130 or more"], ["type", "Solidly earthed"], ["hall", "Indoor, dry"]]

    extraction = workbook(tmp_path, rows(1, "A", labels) | rows(1, "E", values))

    assert [text for _, text in blocks(extraction)][1:] == [
        "Rated voltage | kV | 130 or more",
        "System earthing | type | Solidly earthed",
        "Location | hall | Indoor, dry",
    ]


def test_two_tables_side_by_side_stay_two(tmp_path: Path) -> None:
    lakes = rows(1, "A", [["Lake", "Area"], ["Bala", 4.8], ["Vyrnwy", 4.5]])
    hills = rows(1, "E", [["Hill", "Height"], ["Snowdon", 1085], ["Cadair", 893]])

    extraction = workbook(tmp_path, lakes | hills)

    texts = [text for _, text in blocks(extraction)]
    assert "Lake: Bala | Area: 4.8" in texts
    assert "Hill: Cadair | Height: 893" in texts


def test_every_cell_of_a_sheet_is_read_once(tmp_path: Path) -> None:
    cells = {f"{column}{row}": f"w{column}{row}" for column in "ACDG" for row in (1, 2, 4, 7, 8)}

    extraction = workbook(tmp_path, cells)

    for word in cells.values():
        assert extraction.text.split().count(word) + extraction.text.count(f"{word}:") >= 1
