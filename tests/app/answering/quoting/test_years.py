"""app.answering.quoting.years: of the rows of a table, those of the year that is asked for are candidates."""

import pytest

from app.answering.quoting.candidates import candidates_of
from app.answering.quoting.years import of_asked_years
from tests.app.answering.sources import source

SALES = (
    "January–June 2022: North | Sales: 5659\nJanuary–June 2023: North | Sales: 6082\nSales of the north rose in 2023."
)
DUCKS = "Year: 2019 | Ducks: 120\nYear: 2020 | Ducks: 150"


def left(question: str, text: str) -> list[str]:
    """The numbers with which the candidates that are left end."""
    found = of_asked_years(question, candidates_of([source(text)]))
    return [one.core_text.rstrip(".").split()[-1] for one in found]


@pytest.mark.parametrize(
    ("question", "text", "ends"),
    [
        ("What were the sales of the north in 2022?", SALES, ["5659", "2023"]),
        ("What were the sales of the north in 2023?", SALES, ["6082", "2023"]),
        ("How many ducks were there in 2020?", DUCKS, ["150"]),
    ],
)
def test_rows_of_other_years_are_left_out(question: str, text: str, ends: list[str]) -> None:
    assert left(question, text) == ends


@pytest.mark.parametrize(
    ("question", "text"),
    [
        ("What were the sales of the north?", SALES),
        ("What were the sales of the north in 2021?", SALES),
        ("How did sales develop from 2022 to 2023?", SALES),
        ("Which sales were higher than those of 2022?", SALES),
        ("How many ducks were there before 2020?", DUCKS),
        ("What were the sales in 2022?", "Region: North | Sales: 2022\nRegion: South | Sales: 1985"),
        ("What was said in 2022?", "The year 2021 | was good\nThe year 2022 | was bad"),
    ],
)
def test_all_are_left_where_no_row_is_of_the_asked_year_or_a_span_of_time_is_asked_for(
    question: str, text: str
) -> None:
    found = candidates_of([source(text)])

    assert of_asked_years(question, found) == list(found)
