"""app.answering.quoting.alike_rows: of rows alike, those of the asked year or section are candidates."""

from dataclasses import replace

import pytest

from app.answering.quoting.alike_rows import of_asked_sections, of_asked_years
from app.answering.quoting.candidates import candidates_of
from retrieval.types import Source
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


SEGMENTS = """Europe:

Net sales | 19,287 | 18,943
Operating income | 7,124 | 7,085

Greater China:

Net sales | 14,604 | 14,762
Operating income | 5,760 | 6,303

Japan:

Net sales | 5,446 | 6,464"""


def told(text: str, **fields: str) -> Source:
    """A source whose chunk has these fields."""
    found = source(text)
    return replace(found, hit=replace(found.hit, chunk=replace(found.hit.chunk, **fields)))


def kept(question: str, *sources: Source) -> list[str]:
    """The rows that are left."""
    left = of_asked_sections(question, candidates_of(sources))
    return [one.core_text for one in left if " | " in one.core_text and "\n" not in one.core_text]


def test_rows_alike_below_other_labels_are_left_out() -> None:
    left = kept("What operating income did Greater China have?", told(SEGMENTS))
    assert left == ["Net sales | 14,604 | 14,762", "Operating income | 5,760 | 6,303"]


def test_the_label_may_be_a_row_or_stand_above_the_passage() -> None:
    rows = "Tax | 1 | 2\nCosts of services: |  | \nTax | 3 | 4"
    question = "What was the tax on services?"
    assert "Tax | 1 | 2" not in kept(question, told(rows, table_header="2022 | 2021\nCosts of goods:"))
    assert "Tax | 1 | 2" in kept(question, told(rows)), "it is below no label"


@pytest.mark.parametrize("question", ["What was the operating income?", "What did Italy sell?"])
def test_all_rows_are_left_where_no_label_is_asked_for_more_than_another(question: str) -> None:
    found = candidates_of([source(SEGMENTS)])
    assert of_asked_sections(question, found) == list(found)


def test_rows_of_other_documents_are_not_compared() -> None:
    other = told("Japan:\n\nSales | 8 | 9\nOperating income | 1 | 2", document_id="another")
    left = kept("What operating income did Greater China have?", told(SEGMENTS), other)
    assert "Operating income | 1 | 2" in left
