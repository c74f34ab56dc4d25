"""PDF forms and tables: labels stay with their values, and cells of one line stay apart."""

from pathlib import Path

import pytest

from ingestion.readers.pdf_cells import Box, row_of
from ingestion.types import BlockKind
from tests.ingestion.pdf_file import Shown, set_pdf
from tests.ingestion.readers.reading import blocks, read

ROW, PARAGRAPH = BlockKind.TABLE_ROW, BlockKind.PARAGRAPH
SIZE = 10.0


def row(*words: tuple[float, str], sparse: bool = False) -> str | None:
    """The row of words that begin so many points from the left, in a font whose characters are 5 points wide."""
    text, lefts = "", list[float]()
    for left, word in words:
        if text:
            text += " "
            lefts.append(lefts[-1] + 5)
        text += word
        lefts += [left + 5 * at for at in range(len(word))]

    def box(index: int) -> Box:
        return lefts[index], 0.0, lefts[index] + 5, SIZE

    found = row_of(text, box, size=SIZE, sparse=sparse)
    return found.text if found else None


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ([(0, "Age:"), (80, "85,"), (98, "Male"), (200, "Seat:"), (260, "Left")], "Age: 85, Male | Seat: Left"),
        ([(0, "Event:"), (100, "Injuries:"), (200, "1"), (208, "Minor")], "Event: | Injuries: 1 Minor"),
        ([(0, "Assets:"), (100, "1,200"), (200, "1,100")], "Assets: | 1,200 | 1,100"),
        ([(0, "Pilot:"), (100, "Last"), (123, "exam:"), (151, "2007")], "Pilot: | Last exam: 2007"),
        ([(0, "Order"), (28, "Type:"), (100, "Premium")], "Order Type: Premium"),
        ([(0, "SKU-1"), (60, "Hardware"), (130, "$5"), (170, "open")], "SKU-1 | Hardware | $5 | open"),
        ([(0, "Odometer"), (55, "9,800")], "Odometer | 9,800"),
        (
            [(0, "Item"), (23, "2."), (60, "Financial"), (108, "Statements"), (300, "14")],
            "Item 2. | Financial Statements | 14",
        ),
    ],
)
def test_wide_gaps_part_cells_and_labels_keep_their_values(words: list[tuple[float, str]], expected: str) -> None:
    assert row(*words) == expected


@pytest.mark.parametrize(
    "words",
    [
        [(0, "prose"), (28, "without"), (66, "gaps")],
        [(0, "a"), (14, "justified"), (72, "line"), (105, "of"), (128, "prose.")],  # each blank 9 to 13 points
        [(0, "ends."), (35, "Begins"), (68, "here")],  # a wide blank after a sentence
        [(0, "1.1"), (40, "Security"), (83, "fundamentals")],
        [(0, "•"), (20, "an"), (33, "item")],
        [(0, "(i)"), (18, "Symmetry:"), (85, "equal")],
        [(0, "SELECT"), (55, "name")],
        [(0, "word")],
    ],
)
def test_prose_headings_and_items_are_no_rows(words: list[tuple[float, str]]) -> None:
    assert row(*words) is None


def form(*lines: tuple[tuple[float, str], ...]) -> bytes:
    return set_pdf([[Shown(left, 700 - 14 * at, text) for at, line in enumerate(lines) for left, text in line]])


def test_a_form_is_read_by_label_and_value(tmp_path: Path) -> None:
    data = form(
        ((72, "Rating of the airplane:"), (200, "Single-engine Land"), (320, "Seat Occupied by pilot:"), (470, "Left")),
        ((72, "Restraint that was used:"), (200, "Seatbelt and harness"), (320, "Second Pilot:"), (470, "No")),
    )

    assert blocks(read(tmp_path, "a.pdf", data)) == [
        (ROW, "Rating of the airplane: Single-engine Land | Seat Occupied by pilot: Left"),
        (ROW, "Restraint that was used: Seatbelt and harness | Second Pilot: No"),
    ]


def test_a_value_of_several_lines_stays_in_its_cell(tmp_path: Path) -> None:
    data = form(
        ((72, "Restraint used:"), (200, "Seatbelt and")),
        ((200, "shoulder harness"),),
        ((72, "Second Pilot:"), (200, "No")),
    )

    assert [text for _, text in blocks(read(tmp_path, "a.pdf", data))] == [
        "Restraint used: Seatbelt and shoulder harness",
        "Second Pilot: No",
    ]


@pytest.mark.parametrize(
    "lines",
    [
        ["Report ID: A-12", "Warehouse: Distribution Center East", "Date: 2024-11-15"],
        ["Sales Tax (8.5%) $66.23", "Member Discount (15%)-$84.00", "Rewards -$25.00"],
    ],
)
def test_lines_of_labels_and_prices_are_not_run_together(tmp_path: Path, lines: list[str]) -> None:
    data = form(*(((72.0, line),) for line in lines))

    assert [text for _, text in blocks(read(tmp_path, "a.pdf", data))] == lines
