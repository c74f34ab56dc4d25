"""app.api.excerpts: the beginning of a passage in one line, in its own words and short."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.answering.formats.plain_text import PlainText
from app.api.excerpts import MOST_CHARS, excerpt_of, passage_of
from retrieval.types import Source, Span
from tests.app.answering.sources import REPORT, source


def named(found: Source, filename: str) -> Source:
    return replace(found, hit=replace(found.hit, chunk=replace(found.hit.chunk, filename=filename)))


def test_a_short_passage_is_whole_and_in_one_line() -> None:
    assert excerpt_of(source("  Forty ships\n\tleft  the harbour.\n")) == "Forty ships left the harbour."


def test_a_long_passage_is_cut_behind_a_word() -> None:
    excerpt = excerpt_of(source(REPORT))

    assert len(excerpt) <= MOST_CHARS < len(REPORT)
    assert excerpt.endswith("…")
    kept = excerpt.removesuffix("…")
    assert REPORT.startswith(kept)
    assert REPORT[len(kept)] == " "


@given(text=st.text(alphabet="ab. \n\t漢é_*#|<&", min_size=1, max_size=500))
def test_an_excerpt_is_the_beginning_of_its_passage_and_never_too_long(text: str) -> None:
    line = " ".join(text.split())
    excerpt = excerpt_of(source(text))

    assert len(excerpt) <= MOST_CHARS
    assert excerpt == line if len(line) <= MOST_CHARS else line.startswith(excerpt.removesuffix("…"))


@pytest.mark.parametrize("text", ["x" * 300, "漢" * 300])
def test_words_without_spaces_are_cut_where_the_room_ends(text: str) -> None:
    assert excerpt_of(source(text)) == text[: MOST_CHARS - 1] + "…"


def test_only_what_is_presented_is_in_it() -> None:
    found = source("Nobody asked for this. Forty ships left. Nor for that.", start=1000)
    found = replace(found, spans=(Span(1023, 1040),), compressed=True)

    assert passage_of(found) == Span(1023, 1040)
    assert excerpt_of(found) == "Forty ships left."


def test_text_beyond_the_chunk_that_was_summarised_is_not_in_it() -> None:
    found = source("Forty ships left.", start=100)
    found = replace(found, spans=(Span(20, 40), Span(100, 117), Span(130, 150)))

    assert passage_of(found) == Span(100, 117)
    assert excerpt_of(found) == "Forty ships left."


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("Ships\n\nForty left.", "Forty left."),
        ("SHIPS \nForty left.", "Forty left."),
        ("Ships", "Ships"),
        ("Log\n\nShips\n\nForty left.\nShips", "Forty left. Ships"),
        ("Log\nShips\n", "Ships"),
        ("Ships left.\nForty.", "Ships left. Forty."),
    ],
)
def test_headings_above_the_text_are_left_out_unless_they_are_all(text: str, said: str) -> None:
    found = source(text)
    found = replace(found, hit=replace(found.hit, chunk=replace(found.hit.chunk, heading_path=("Log", "Ships"))))

    assert excerpt_of(found) == said


@pytest.mark.parametrize(
    ("filename", "said"),
    [
        ("log.md", "Forty ships left."),
        ("LOG.Markdown", "Forty ships left."),
        ("log.txt", "## Ships **Forty** [ships](http://a/b) `left`."),
    ],
)
def test_marks_are_removed_from_markdown_alone(filename: str, said: str) -> None:
    found = source("## Ships\n\n**Forty** [ships](http://a/b) `left`.", heading="Ships")

    assert excerpt_of(named(found, filename)) == said


@given(text=st.text(alphabet="ab. \n*_#`[]()>|", min_size=1, max_size=700))
def test_markdown_is_converted_only_as_far_as_it_is_shown(text: str) -> None:
    writer = PlainText()
    plain = " ".join((writer.feed(text) + writer.finish()).split())

    excerpt = excerpt_of(named(source(text), "log.md"))

    assert excerpt == plain if len(plain) <= MOST_CHARS else plain.startswith(excerpt.removesuffix("…"))
