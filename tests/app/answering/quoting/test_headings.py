"""app.answering.quoting.headings: what is a heading, and where the text below one begins."""

import pytest

from app.answering.quoting.headings import bare, behind_heading

BELOW = "It was founded in 1912."


@pytest.mark.parametrize("heading", ["The line", "## The line", "2.1 The line:", "**The line**"])
def test_a_heading_of_the_document_is_known_whatever_its_marks(heading: str) -> None:
    assert bare(heading) == "the line"
    assert behind_heading(f"{heading}\n{BELOW}", frozenset({"the line"})) == len(heading) + 1


def test_a_heading_inside_a_passage_is_known_by_the_blank_line_below_it() -> None:
    assert behind_heading(f"Satya Nadella\n\n{BELOW}", frozenset()) == len("Satya Nadella\n\n")


@pytest.mark.parametrize(
    "text",
    [
        f"The line\n{BELOW}",
        "Board of\n\ndirectors since 1912.",
        "It opened in 1912\n\nIt closed in 1950.",
        "Is it open?\n\nNo.",
        "Name | Year\n\nBolt | 1912",
        "The line\n\n",
        BELOW,
        "",
    ],
    ids=["no blank line", "goes on", "digits", "a sentence", "a row", "nothing below", "one line", "empty"],
)
def test_other_lines_stay(text: str) -> None:
    assert behind_heading(text, frozenset()) == 0
