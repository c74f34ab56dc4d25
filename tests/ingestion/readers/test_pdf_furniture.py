"""ingestion.readers.pdf_furniture: what runs along the pages is marked once and dropped where it repeats."""

from ingestion.readers.pdf_furniture import without_furniture
from ingestion.readers.pdf_lines import PrintedLine


def line(text: str, bottom: float, *, size: float = 10, row: bool = False) -> PrintedLine:
    return PrintedLine(text, 72, bottom, 72 + 5 * len(text), bottom + size, size, row=row)


def body(number: int) -> list[PrintedLine]:
    """Twelve lines that no other page has."""
    return [line(f"{'abcdefghi'[number]} {'mnopqrstuvwx'[at]} prose", 700 - 12 * at) for at in range(12)]


def shown(pages: list[list[PrintedLine]]) -> tuple[list[str], int]:
    """The texts that are marked, and the number of lines that are left out."""
    found = without_furniture(pages)
    marked = [one.text for lines in found for one in lines if one.furniture]
    return marked, sum(map(len, pages)) - sum(map(len, found))


def test_a_running_header_is_marked_once_and_page_numbers_are_left_out() -> None:
    pages = [[line("Annual report", 780), *body(number), line(str(number), 30)] for number in range(1, 5)]

    assert shown(pages) == (["Annual report"], 3 + 4)


def test_a_footer_runs_at_any_height_where_it_is_the_outermost_line() -> None:
    pages = [[*body(number), line(f"Form 10-Q | {number}", 30 + 50 * number, row=True)] for number in range(1, 9)]

    assert shown(pages) == (["Form 10-Q | 1"], 7)


def test_the_header_of_a_table_on_every_page_is_no_running_line() -> None:
    pages = [[line("Name | Total", 780 - 20 * number, row=True), *body(number)] for number in range(1, 9)]

    assert shown(pages) == ([], 0)


def test_a_line_that_something_else_keeps_from_the_edge_does_not_run() -> None:
    pages = [
        [line(f"Part {'abcdef'[number]}", 780), line("Three months ended", 760), *body(number)] for number in range(5)
    ]

    assert shown(pages) == ([], 0)


def test_a_line_that_is_mostly_elsewhere_does_not_run() -> None:
    pages = [[line("Definition", 780), *body(number), line("Definition", 640 - number)] for number in range(5)]

    assert shown(pages) == ([], 0)


def test_a_watermark_is_found_by_its_size_and_place() -> None:
    pages = [[*body(number)[:4], line("PROOF", 640, size=30), *body(number)[4:]] for number in range(6)]
    labels = [[*body(number)[:4], line("Name", 640), *body(number)[4:]] for number in range(6)]

    assert shown(pages) == (["PROOF"], 5)
    assert shown(labels) == ([], 0)


def test_what_is_on_two_pages_stays() -> None:
    assert shown([[line("Annual report", 780), *body(number)] for number in range(2)]) == ([], 0)
