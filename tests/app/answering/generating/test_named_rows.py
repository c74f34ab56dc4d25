"""app.answering.generating.named_rows: each row says what its cells are, and everything else stays as it is."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.answering.generating.named_rows import with_named_rows
from retrieval.compress import compress
from retrieval.types import Source, Span
from tests.retrieval.fakes import chunk, hit

PRINTED = "Profit | 2022 | 2021\nRevenue | 84 | 79\nCosts | 60 | 58"
HEADER = "Results of the year\nProfit | 2022 | 2021"


def source_of(text: str, *, table_header: str = "", parts: tuple[str, ...] = ()) -> Source:
    """A source of a whole text, or of parts of it; the text begins at the tenth character of its document."""
    held = replace(chunk(1, text, start_char=10), table_header=table_header)
    (source,) = compress([hit(held, rank=1)], query="", budget=10_000, count_tokens=len).sources
    if not parts:
        return source
    spans = tuple(Span(10 + text.index(part), 10 + text.index(part) + len(part)) for part in parts)
    return replace(source, spans=spans, body=" … ".join(parts) + "\n", compressed=True)


ROWS = "Revenue | 84 | 79\nCosts | 60 | 58"


@pytest.mark.parametrize(
    ("text", "table_header", "body"),
    [
        ("Revenue | 84 | 79", HEADER, "Profit: Revenue | 2022: 84 | 2021: 79\n"),
        (
            f"{ROWS}\n\nAll in millions.",
            HEADER,
            "Profit: Revenue | 2022: 84 | 2021: 79\nProfit: Costs | 2022: 60 | 2021: 58\n\nAll in millions.\n",
        ),
        ("| Bolt | 3 EUR |", "| Part | Price |", "Part: Bolt | Price: 3 EUR\n"),
        ("| Bolt | 3 EUR |\n| Nut | |", "| | Price |", "Bolt | Price: 3 EUR\nNut\n"),
    ],
)
def test_rows_of_a_table_that_began_before_have_the_names_of_their_columns(
    text: str, table_header: str, body: str
) -> None:
    assert with_named_rows(source_of(text, table_header=table_header)).body == body


@pytest.mark.parametrize(
    ("text", "table_header"),
    [
        (PRINTED, ""),
        (f"Before it.\n\n{PRINTED}", HEADER),
        ("| Part | Price |\n|---|---:|\n| Bolt | 3 EUR |", ""),
        ("Part: Bolt | Price: 3 EUR\nPart: Nut | Price: 4 EUR", "Part | Price"),
    ],
)
def test_a_table_that_says_them_itself_stays_as_it_is(text: str, table_header: str) -> None:
    assert with_named_rows(source_of(text, table_header=table_header)).body == f"{text}\n"


def test_parts_of_a_table_are_named_by_the_whole_of_it() -> None:
    source = source_of(f"{ROWS}\n\nAll of it.", table_header=HEADER, parts=("Costs | 60 | 58", "All of it."))

    assert with_named_rows(source).body == "Profit: Costs | 2022: 60 | 2021: 58 … All of it.\n"


def test_what_cuts_a_row_stays_as_it_is() -> None:
    source = source_of(ROWS, table_header=HEADER, parts=("84 | 79\nCosts | 60 | 58",))

    assert with_named_rows(source).body == "84 | 79\nProfit: Costs | 2022: 60 | 2021: 58\n"


def test_without_certain_names_a_body_within_a_table_begins_with_the_tables_header() -> None:
    header = "Table 3. Staff\nName | Works at"
    rows = "Ada | the harbour\nBert | the mill"

    assert with_named_rows(source_of(rows, table_header=header)).body == f"{header}\n{rows}\n"
    later = source_of(f"{rows}\n\nAll of them.", table_header=header, parts=("All of them.",))
    assert with_named_rows(later).body == "All of them.\n"


def test_where_a_row_is_none_of_the_columns_the_names_are_not_certain() -> None:
    text = f"{ROWS}\nSee | note"
    assert with_named_rows(source_of(text, table_header=HEADER)).body == f"{HEADER}\n{text}\n"


def test_a_summary_stays_as_it_is() -> None:
    source = replace(source_of(ROWS, table_header=HEADER), body="Revenue rose.\n")
    assert with_named_rows(source) is source


@given(
    st.lists(st.text(st.characters(exclude_characters="\r\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029|"), max_size=12)),
    st.data(),
)
def test_text_without_a_table_is_shown_as_it_is(lines: list[str], data: st.DataObject) -> None:
    text = "\n".join(["First.", *(line for line in lines if "-" not in line and "\t" not in line and "  " not in line)])
    start = data.draw(st.integers(0, len(text) - 1))
    end = data.draw(st.integers(start + 1, len(text)))
    source = source_of(text)
    part = replace(source, spans=(Span(10 + start, 10 + end),), body=text[start:end] + "\n")

    assert with_named_rows(part).body == part.body
