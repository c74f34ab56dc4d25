"""CSV output is read back unchanged by RFC 4180 readers, and contains no spreadsheet formulas."""

import csv
import io

from hypothesis import given
from hypothesis import strategies as st

from app.usage.reports.csv_text import csv_text

TEXTS = st.text(st.characters(codec="utf-8"), max_size=12) | st.sampled_from(["=1+1", "a,b", 'say "x"', "a\r\nb", ""])


def whole(columns, *batches, numbers=()):
    return b"".join(csv_text(columns, batches, numbers=numbers))


def test_lines_end_in_crlf_and_the_header_is_there_without_a_row():
    assert whole(("a", "b")) == b"a,b\r\n"
    assert whole(("a", "b"), [("x", 1)], [(None, -2)]) == b"a,b\r\nx,1\r\n,-2\r\n"


@given(st.lists(st.lists(st.tuples(TEXTS, TEXTS, st.none() | st.integers()), max_size=3), max_size=3))
def test_a_reader_of_rfc_4180_finds_every_cell_again(batches):
    read = csv.reader(io.StringIO(whole(("a", "b", "c"), *batches).decode(), newline=""), strict=True)

    assert next(read) == ["a", "b", "c"]
    for row, expected in zip(read, [row for batch in batches for row in batch], strict=True):
        disarmed = [
            f"'{text}" if text.startswith(("=", "+", "-", "@", "\t", "\r", "\n")) else text for text in expected[:2]
        ]
        assert row == [*disarmed, "" if expected[2] is None else str(expected[2])]


def test_amounts_keep_their_minus_where_their_column_says_so():
    assert whole(("name", "cost"), [("-1", "-0.50")], numbers={"cost"}) == b"name,cost\r\n'-1,-0.50\r\n"
