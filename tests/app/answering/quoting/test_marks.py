"""app.answering.quoting.marks: what is marked in a quote is whole words, whole numbers and whole cells."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.answering.quoting.marks import whole
from retrieval.types import Context, Span
from tests.app.answering.pointing_reader import PointingReader
from tests.app.answering.quoting.selecting import selected
from tests.app.answering.sources import source


def marked(text: str, pointed: str, *, row: bool = False) -> str:
    """What is marked where the reader points at `pointed`."""
    at = text.index(pointed)
    found = whole(text, Span(0, len(text)), Span(at, at + len(pointed)), row=row)
    return "" if found is None else text[found.start_char : found.end_char]


@pytest.mark.parametrize(
    ("text", "pointed", "shown"),
    [
        ("Most of them (92% in 2004) were lit.", "(92", "92%"),
        ("Most of them (92%) were lit.", "92%)", "92%"),
        ("Mira Vale (born in 1950) kept it.", "Mira Vale (born in 19", "Mira Vale (born in 1950)"),
        ("Mira Vale (who was the keeper of the lamp until the winter of 1950) left.", "Vale (who was", "Vale"),
        ("It was (in 1950) the first lamp.", "1950) the first lamp", "(in 1950) the first lamp"),
        ("The lamplighter came.", "light", "lamplighter"),
        ("The lamp's keeper came.", "lam", "lamp"),
        ("The first e-mail came.", "mail", "e-mail"),
        ("It cost $1,234.50 then.", "234", "$1,234.50"),
        ("It fell by -12.5 % then.", "12", "-12.5 %"),
        ("It came at 10:30 daily.", "30 daily.", "10:30 daily"),
        ("Date: Fri, 16 Dec 2022 17:04:16 -0500", "17:04:16 -0500", "Fri, 16 Dec 2022 17:04:16 -0500"),
        ("Sent 3 Jan 2023 09:15 GMT by Ada", "Jan 2023", "3 Jan 2023 09:15 GMT"),
        ("From 2004-2008 it burnt.", "2008", "2008"),
        ("O'Hara kept it.", "Hara", "O'Hara"),
        ("Directive 2018–23–51 applies.", "23–51", "2018–23–51"),
        ("It burnt until 1950-10-21 only.", "1950", "1950-10-21"),
        ("It came at 1:01 p.m. daily.", "1:01 p.m", "1:01 p.m."),
        ("The U.S. Navy kept it.", "U.S", "U.S."),
        ("It is run by Lamps, Inc..", "Lamps, Inc", "Lamps, Inc."),
        ("The keepers (e.g. Mira) left.", "Mira", "Mira"),
        ("It sees 400K to 500K ships.", "500K", "400K to 500K"),
        ("It costs $5 to $7 a day.", "$5", "$5 to $7"),
        ("It rose from 5 to 7 metres.", "7", "7"),
        ("It burnt 1820 to 1950.", "1950", "1950"),
        ("It came within 3 to the mile.", "3", "3"),
        ("They call it “the Eye” here.", "“the Eye", "the Eye"),
        ("**Mira Vale** kept it.", "**Mira", "Mira"),
        ("It burnt oil.", "oil.", "oil"),
        ("灯台は1820年に点灯。", "820", "1820"),
        ("It burnt -- oil.", "--", ""),
    ],
)
def test_words_are_whole_and_brackets_have_both_halves(text: str, pointed: str, shown: str) -> None:
    assert marked(text, pointed) == shown


def test_a_cell_is_marked_as_a_whole_unless_it_holds_sentences() -> None:
    long = "The keeper trims the wick every evening, and again at midnight when the wind comes from the north."

    assert marked("3 EUR (net)", "3", row=True) == "3 EUR (net)"
    assert marked(long, "midnigh", row=True) == "midnight"


@pytest.mark.parametrize(
    ("text", "pointed", "shown"),
    [
        ("Most of the lamps (92% in 2004) were lit.", "(92", "92%"),
        ("| Lamp | Price |\n|---|---|\n| Harbour lamp | 3 EUR (net) |", "3", "3 EUR (net)"),
    ],
)
def test_what_the_reader_points_at_is_marked_whole_in_the_quote(text: str, pointed: str, shown: str) -> None:
    found = selected("How many lamps were lit?", Context((source(text, start=50),), (), 10), PointingReader(pointed))

    assert [quote.words for quote in found.quotes] == [shown]


@given(
    text=st.text(alphabet="ab1 .,-()“”%$|é灯'", min_size=1, max_size=30),
    data=st.data(),
)
def test_marks_are_inside_the_piece_and_cut_no_word(text: str, data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(text) - 1))
    end = data.draw(st.integers(start + 1, len(text)))
    row = data.draw(st.booleans())

    found = whole(text, Span(0, len(text)), Span(start, end), row=row)

    if found is None:
        return
    assert 0 <= found.start_char < found.end_char <= len(text)
    shown = text[found.start_char : found.end_char]
    assert any(char.isalnum() for char in shown)
    assert shown == shown.strip()
    for at in (found.start_char, found.end_char):
        beside = text[max(0, at - 1) : at + 1]
        assert not (len(beside) == 2 and beside.isascii() and beside.isalpha())
        assert not (len(beside) == 2 and beside.isascii() and beside.isdigit())
