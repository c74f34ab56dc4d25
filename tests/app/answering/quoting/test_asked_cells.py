"""app.answering.quoting.asked_cells and pointing: which cell of a row is marked, and what leads an answer."""

from dataclasses import replace

import pytest

from app.answering.quoting.asked_cells import WEIGHTS, chosen_cell, probabilities, values
from app.answering.quoting.headed_rows import headed_row
from app.answering.quoting.pointing import column_of, unit_of
from app.answering.quoting.rendering import quotation
from app.answering.quoting.selection import leads
from app.answering.states.reading import AskedCell
from retrieval.types import Context
from tests.app.answering.pointing_reader import PointingReader
from tests.app.answering.quoting.selecting import selected
from tests.app.answering.sources import source

YEARS = ["(In thousands) | 2019 | 2018 | % Change"]
MEXICO = "Mexico | 90,795 | 12,186 | 645%"
TABLE = f"{YEARS[0]}\nGermany | 78,062 | 167,251 | (53)%\n{MEXICO}"


def cell(question: str, line: str, above: list[str], margins: list[float] | None = None) -> str:
    """The text of the cell that is chosen."""
    row = headed_row(line, above, "")
    assert row is not None
    return chosen_cell(question, row, margins or [0.0] * len(row.cells)).cell.text


@pytest.mark.parametrize(
    ("question", "found"),
    [
        ("What were the sales in Mexico in 2018?", "12,186"),
        ("What were the sales in Mexico in FY19?", "90,795"),
        ("What was the percentage change of sales in Mexico?", "645%"),
    ],
)
def test_the_column_of_the_asked_period_is_chosen(question: str, found: str) -> None:
    assert cell(question, MEXICO, YEARS) == found


def test_names_and_period_outweigh_the_reader() -> None:
    assert cell("What were the sales in Mexico in 2018?", MEXICO, YEARS, [-9.0, 3.0, 0.0, -2.0]) == "12,186"


def test_the_reader_decides_where_no_name_fits() -> None:
    assert cell("How much was sold in Mexico?", MEXICO, YEARS, [-9.0, 3.0, 0.0, -2.0]) == "90,795"
    assert cell("How much was sold in Mexico?", MEXICO, YEARS, [-9.0, 0.0, 3.0, -2.0]) == "12,186"


def test_quarters_are_read_in_words() -> None:
    assert cell("What were sales in Q3?", "Sales | 1,0 | 2,0", [" | Second quarter | Third quarter"]) == "2,0"


def test_probabilities_sum_to_one_and_every_value_has_a_weight() -> None:
    row = headed_row(MEXICO, YEARS, "")
    assert row is not None
    found = probabilities("What?", row, [1.0, -50.0, 2.0, 0.0])

    assert sum(found) == pytest.approx(1)
    assert all(of_cell.keys() == WEIGHTS.keys() for of_cell in values("What?", row, [0.0] * 4))


@pytest.mark.parametrize(
    ("line", "above", "unit"),
    [
        (MEXICO, YEARS, "thousand"),
        ("Sales | 914 | 918", ["| 2019 | 2018", " |  | (in millions)"], "million"),
        ("Sales | 914 | 918", ["$ MILLION | 2019 | 2018"], "million"),
        ("Sales | 914 | 918", [" | 2019 | 2018", " | $'000 | $'000"], "thousand"),
        ("Earnings per share | 9.14 | 9.18", ["(In millions) | 2019 | 2018"], ""),
        ("Finland | 338,424 | 5.5", ["Country | Area (km2) | Population (millions)"], ""),
        ("Tax | 21% | 22%", ["(In millions) | 2019 | 2018"], ""),
    ],
)
def test_the_unit_is_what_the_table_says_of_the_cell(line: str, above: list[str], unit: str) -> None:
    row = headed_row(line, above, "")

    assert row is not None
    assert unit_of(row, row.cells[1]) == unit


def test_a_year_is_shown_behind_the_period_that_it_ends() -> None:
    row = headed_row("Sales | 914 | 918", ["| Years ended June 30, | ", " | 2019 | 2018", " | $'000 | $'000"], "")

    assert row is not None
    assert column_of(row, row.cells[1]) == "Years ended June 30, 2019"


def test_the_cell_leads_with_its_unit_and_its_period() -> None:
    question = "What were the sales in Mexico in 2018?"
    found = selected(question, Context((source(TABLE, start=50),), (), 10), PointingReader("90,795"))
    first = found.quotes[0]

    assert first.words == "12,186"
    assert first.cell is not None
    assert (first.cell.unit, first.cell.column) == ("thousand", "2018")
    shown = quotation(found.quotes, form="markdown", pages={}, lead=first)
    assert shown.text.startswith("**12,186 thousand** [1], 2018\n\n> ")
    lead = shown.parts[0]
    assert shown.text[lead.start_char : lead.end_char] == "**12,186 thousand** [1], 2018"
    assert first.highlight is not None
    assert TABLE[first.highlight.start_char - 50 : first.highlight.end_char - 50] == "12,186"


@pytest.mark.parametrize(("sure", "led"), [(0.9, True), (0.4, False)])
def test_a_cell_that_its_column_tells_leads_sooner(sure: float, led: bool) -> None:
    question = "What was Mexico's amount in 2018?"
    found = selected(question, Context((source(TABLE),), (), 10), PointingReader("90,795"))
    first = replace(found.quotes[0], cell=AskedCell(sure))

    assert leads(question, replace(found, quotes=(first, *found.quotes[1:]), score=0.55)) is led
