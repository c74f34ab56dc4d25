"""app.answering.quoting.tables: quoted rows are shown below the names of their columns, and cited as they are."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.answering.formats.answer_formats import Format
from app.answering.quoting.rendering import Quotation, quotation
from app.answering.quoting.tables import shown_table
from app.answering.states.reading import Extract
from retrieval.compress import compress
from retrieval.types import Span
from tests.app.answering.part_texts import highlighted_in, quotes_in
from tests.retrieval.fakes import chunk, hit

MARKDOWN = "Prices of May.\n\n| Part | Price |\n|---|---:|\n| Bolt | 3 EUR |\n| Nut | 4 EUR |\n\nAll are net."
SHEET = "Part | Price | Count\nPart: Bolt | Price: 3 EUR | Count: 3\nPart: Nut | Count: 6"
PRINTED = "Bolt | 3.20 €\nNut | 4.10 €"


def quote_of(text: str, quoted: str, *, words: str = "", table_header: str = "") -> Extract:
    """A quote of a part of a source's text; `words` are the last ones in it of their kind."""
    first = 10
    held = replace(chunk(1, text, start_char=first), table_header=table_header)
    (source,) = compress(
        [hit(held, rank=1)], query="", budget=10_000, count_tokens=len, order=lambda found: range(len(found))
    ).sources
    at = first + text.index(quoted)
    highlight = at + quoted.rindex(words) if words else 0
    return Extract(
        source,
        Span(at, at + len(quoted)),
        quoted,
        0.9,
        Span(highlight, highlight + len(words)) if words else None,
    )


def written(quote: Extract, form: Format = "markdown") -> Quotation:
    return quotation([quote], form=form, pages={})


def marked(found: Quotation) -> list[str]:
    return [words for quote in highlighted_in(found.text, found.parts) for words in quote]


@pytest.mark.parametrize(
    ("text", "quoted", "words", "shown"),
    [
        (MARKDOWN, "| Nut | 4 EUR |", "4 EUR", ["| Part | Price |", "| --- | --- |", "| Nut | 4 EUR |"]),
        (
            MARKDOWN,
            "| Part | Price |\n|---|---:|\n| Bolt | 3 EUR |",
            "3 EUR",
            ["| Part | Price |", "| --- | --- |", "| Bolt | 3 EUR |"],
        ),
        (
            MARKDOWN,
            "| Bolt | 3 EUR |\n| Nut | 4 EUR |",
            "EUR",
            ["| Part | Price |", "| --- | --- |", "| Bolt | 3 EUR |", "| Nut | 4 EUR |"],
        ),
        (
            SHEET,
            "Part: Bolt | Price: 3 EUR | Count: 3",
            "3",
            ["| Part | Price | Count |", "| --- | --- | --- |", "| Bolt | 3 EUR | 3 |"],
        ),
        (SHEET, "Part: Nut | Count: 6", "6", ["| Part | Price | Count |", "| --- | --- | --- |", "| Nut |  | 6 |"]),
    ],
    ids=["row", "with its names", "rows", "names repeated", "blank cell"],
)
def test_rows_are_shown_as_a_table_and_cited_as_they_are(text: str, quoted: str, words: str, shown: list[str]) -> None:
    found = written(quote_of(text, quoted, words=words))
    (citation,) = found.citations
    (one,) = quotes_in(found.parts)

    assert found.text == "> " + "\n> ".join(shown) + "\n>\n> [1]"
    assert found.text[one.quoted.start_char : one.quoted.end_char] == "\n> ".join(shown)
    assert marked(found) == [words]
    assert one.highlights[0].start_char == found.text.rindex(words, 0, one.quoted.end_char)
    assert citation.cited_text == quoted == text[citation.start_char - 10 : citation.end_char - 10]
    assert found.text[citation.answer_start : citation.answer_end] == "[1]"


def test_the_names_of_a_table_that_began_before_the_source_are_in_its_header() -> None:
    header = "Prices of May\nPart | Price\nSmall parts"
    found = written(quote_of(PRINTED, "Nut | 4.10 €", words="4.10 €", table_header=header))

    assert found.text == "> | Part | Price |\n> | --- | --- |\n> | Nut | 4.10 € |\n>\n> [1]"
    assert marked(found) == ["4.10 €"]
    below_prose = quote_of(f"It was dear.\n\n{PRINTED}", "Nut | 4.10 €", table_header=header)
    assert shown_table(below_prose) is None, "another table"


def test_rows_that_repeat_the_names_are_shown_below_them_though_the_row_of_names_is_elsewhere() -> None:
    text = "EUR m, 2022: North | Sales (a): 5 | Costs: 1\nEUR m, 2022: South | Sales (a): 7 | Costs: 2"
    found = written(quote_of(text, text.split("\n")[1], words="7"))

    assert found.text.startswith("> | EUR m, 2022 | Sales (a) | Costs |\n> | --- | --- | --- |\n> | South | 7 | 2 |\n")
    assert marked(found) == ["7"]
    aside = "North | Sales: 5 | Costs: 1\nSouth | Sales: 7 | Costs: 2"
    assert written(quote_of(aside, aside.split("\n")[1])).text.startswith("> |  | Sales | Costs |\n")


@pytest.mark.parametrize(
    ("text", "quoted"),
    [
        (PRINTED, "Nut | 4.10 €"),
        ("Seats: 4 | Engines: 1\nAge: 85 | Sex: Male", "Age: 85 | Sex: Male"),
        (MARKDOWN, "| Part | Price |"),
        (MARKDOWN, "All are net."),
        (MARKDOWN, "3 EUR"),
        (MARKDOWN, "Prices of May.\n\n| Part | Price |\n|---|---:|\n| Bolt | 3 EUR |"),
        ("Part | Price\nBolt | 3\nNut | black | 4", "Nut | black | 4"),
        ("LRM | Linear Reference Method\nNID | National Identifier", "NID | National Identifier"),
    ],
    ids=[
        "no names",
        "labels",
        "names alone",
        "sentence",
        "part of a row",
        "with a sentence",
        "another number of cells",
        "glossary",
    ],
)
def test_other_quotes_are_shown_as_before(text: str, quoted: str) -> None:
    quote = quote_of(text, quoted)

    assert shown_table(quote) is None
    assert "---" not in written(quote).text.replace("|---|---:|", "")
    assert written(quote).text.endswith(" [1]")


@pytest.mark.parametrize("header", ["June 25, | 2022", "Losses | Losses", "May 2004 | Draft"])
def test_printed_names_that_may_be_of_other_columns_are_not_shown(header: str) -> None:
    assert shown_table(quote_of(PRINTED, "Nut | 4.10 €", table_header=header)) is None


def test_the_first_row_of_a_source_has_the_names_of_a_printed_table() -> None:
    found = shown_table(quote_of(f"Part | Price\n{PRINTED}", "Nut | 4.10 €"))

    assert found is not None
    assert found.text == "| Part | Price |\n| --- | --- |\n| Nut | 4.10 € |"


@pytest.mark.parametrize("form", ["text", "json"])
def test_plain_text_and_json_have_no_table(form: Format) -> None:
    found = written(quote_of(MARKDOWN, "| Nut | 4 EUR |", words="4 EUR"), form)

    assert "---" not in found.text
    assert "Part" not in found.text


def test_markers_of_the_document_are_left_out_of_cells() -> None:
    text = "| Part | Price |\n|---|---|\n| Bolt [3] | 3 EUR [12] |"

    assert "| Bolt | 3 EUR |\n>\n> [1]" in written(quote_of(text, "| Bolt [3] | 3 EUR [12] |", words="3 EUR")).text


cells = st.text(alphabet="ab1 *.:-\\", min_size=1, max_size=6).filter(lambda cell: bool(cell.strip(" -:\\")))


@given(rows=st.lists(st.tuples(cells, cells), min_size=2, max_size=4), data=st.data())
def test_the_words_that_answer_are_marked_in_their_own_cell(rows: list[tuple[str, str]], data: st.DataObject) -> None:
    lines = [f"| {one} | {other} |" for one, other in rows]
    text = "\n".join([lines[0], "|---|---|", *lines[1:]])
    number = data.draw(st.integers(1, len(rows) - 1))
    quote = quote_of(text, lines[number])
    start = data.draw(st.integers(0, len(lines[number]) - 1))
    end = data.draw(st.integers(start + 1, len(lines[number])))
    at = quote.span.start_char
    quote = replace(quote, highlight=Span(at + start, at + end))

    found = shown_table(quote)

    if found is not None and found.highlight is not None:
        shown = found.text[found.highlight.start_char : found.highlight.end_char]
        assert shown == " ".join(quote.words.split())
        assert found.highlight.start_char > found.text.rindex("\n")
