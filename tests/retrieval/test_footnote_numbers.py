"""retrieval.footnote_numbers: the header of a source, and its place alone."""

import pytest

from retrieval.footnote_numbers import header_of, place_of
from tests.retrieval.fakes import chunk


@pytest.mark.parametrize(
    ("pages", "headings", "place", "header"),
    [
        ((None, None), (), "", "[2] a.txt\n"),
        ((3, 3), (), "page 3", "[2] a.txt, page 3\n"),
        ((3, None), (), "page 3", "[2] a.txt, page 3\n"),
        ((3, 4), ("Year", "Revenue"), "pages 3-4 — Revenue", "[2] a.txt, pages 3-4 — Revenue\n"),
        ((None, None), ("Sheet\n 1",), "Sheet 1", "[2] a.txt — Sheet 1\n"),
    ],
)
def test_a_place_is_what_the_header_says_behind_the_name(
    pages: tuple[int | None, int | None], headings: tuple[str, ...], place: str, header: str
) -> None:
    found = chunk(page_start=pages[0], page_end=pages[1], heading_path=headings)

    assert place_of(found) == place
    assert header_of(2, found) == header


def test_a_long_heading_is_cut() -> None:
    assert place_of(chunk(heading_path=("x" * 4000,))) == "x" * 99 + "…"
