"""app.answering.citing.citation: a citation says exactly where its passage stands."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.answering.citing.citation import CONFIRMED, THRESHOLD, Citation, Layout, Pages, sheet_of
from ingestion.types import Block, BlockKind, PageRange
from retrieval.types import Source, Span
from tests.app.answering.sources import REPORT, source
from tests.retrieval.fakes import chunk

PRESENTED = source(REPORT, number=3, start=50, pages=(4, 6))
TABLE = {("doc_1", 1): Layout((PageRange(4, 0, 60), PageRange(5, 60, 90), PageRange(6, 90, 400)))}


def cite(passage: Span, *, support: float = 1.0, pages: Pages = TABLE) -> Citation:
    return Citation.of(PRESENTED, passage, marker=Span(7, 10), support=support, origin="model", pages=pages)


@given(bounds=st.tuples(st.integers(0, len(REPORT)), st.integers(0, len(REPORT))).map(sorted), support=st.floats(0, 1))
def test_it_quotes_the_characters_it_points_at_and_is_verified_from_the_threshold_on(bounds, support):
    start, end = bounds
    found = cite(Span(50 + start, 50 + end), support=support)

    assert found.cited_text == REPORT[start:end]
    assert (found.start_char, found.end_char) == (50 + start, 50 + end)
    assert (found.index, found.answer_start, found.answer_end) == (3, 7, 10)
    assert found.verified == (support >= THRESHOLD)


@pytest.mark.parametrize(
    ("passage", "pages", "expected"),
    [
        (Span(50, 60), TABLE, (4, 4)),
        (Span(59, 61), TABLE, (4, 5)),
        (Span(60, 90), TABLE, (5, 5)),
        (Span(55, 95), TABLE, (4, 6)),
        (Span(60, 90), {}, (4, 6)),
        (Span(60, 90), {("doc_1", 2): TABLE["doc_1", 1]}, (4, 6)),
        (Span(60, 90), {("doc_1", 1): Layout((PageRange(4, 0, 60),))}, (4, 6)),
    ],
    ids=["first", "across", "a whole page", "all", "no table", "another version's", "beyond the table"],
)
def test_its_pages_are_those_of_the_passage_where_a_table_tells(passage, pages, expected):
    found = cite(passage, pages=pages)

    assert (found.page_start, found.page_end) == expected


probabilities = st.none() | st.floats(0, 1) | st.just(CONFIRMED)


@given(support=st.floats(0, 1) | st.just(THRESHOLD), answers=probabilities, judged=probabilities)
def test_it_is_verified_where_the_passage_supports_it_and_the_question_is_almost_certainly_answered(
    support, answers, judged
):
    found = Citation.of(
        PRESENTED, Span(50, 60), marker=Span(7, 10), support=support, origin="model", pages=TABLE, answers=answers
    )
    again = found.judged(judged)

    assert found.answers == answers
    assert found.verified == (support >= THRESHOLD and (answers is None or answers >= CONFIRMED))
    assert again.answers == judged
    assert again.verified == (support >= THRESHOLD and (judged is None or judged >= CONFIRMED))
    assert again.judged(answers) == found


def block(kind: BlockKind, start: int, end: int, *path: str) -> Block:
    return Block(kind, start, end, None, path)


HANDBOOK = Layout.of(
    (),
    [
        block(BlockKind.PARAGRAPH, 0, 52),
        block(BlockKind.HEADING, 52, 60),
        block(BlockKind.HEADING, 60, 70, "Handbook"),
        block(BlockKind.PARAGRAPH, 70, 90, "Handbook", "3 Leave"),
        block(BlockKind.TABLE_ROW, 90, 95, "Handbook", "3 Leave"),
        block(BlockKind.HEADING, 95, 99, "Handbook"),
        block(BlockKind.PARAGRAPH, 99, 120, "Handbook", "4 Pay"),
    ],
)


@pytest.mark.parametrize(
    ("passage", "section"),
    [
        (Span(50, 52), None),
        (Span(52, 60), "Handbook"),
        (Span(60, 65), "3 Leave"),
        (Span(70, 95), "3 Leave"),
        (Span(99, 101), "4 Pay"),
    ],
)
def test_a_passage_of_a_format_without_pages_is_under_the_heading_above_it(passage, section):
    assert cite(passage, pages={("doc_1", 1): HANDBOOK}).section == section


def test_without_a_layout_the_section_is_the_chunks():
    named = Citation.of(
        source(REPORT, heading="Dividends"),
        Span(0, 5),
        marker=Span(0, 3),
        support=1.0,
        origin="model",
        pages={},
    )

    assert named.section == "Dividends"
    assert cite(Span(50, 60), pages={}).section is None


ROWS = "Zone: NA | Sales: 5 | Costs: 1\nZone: EUR | Costs: 3"
SHEET = {
    ("doc_1", 1): Layout.of(
        (PageRange(1, 0, 400),),
        (
            Block(BlockKind.HEADING, 0, 50, 1, ()),
            Block(BlockKind.TABLE_ROW, 50, 80, 1, (), ("B4", "C4", "AA4")),
            Block(BlockKind.TABLE_ROW, 81, 101, 1, (), ("B5", "AA5")),
        ),
    )
}


@pytest.mark.parametrize(
    ("passage", "words", "cell"),
    [
        (ROWS.split("\n", maxsplit=1)[0], None, "B4:AA4"),
        (ROWS, None, "B4:AA5"),
        (ROWS.split("\n")[1], "3", "AA5"),
        (ROWS, "5", "C4"),
        ("Sales: 5", None, "C4"),
        ("NA | Sales", None, "B4:C4"),
    ],
)
def test_a_passage_of_a_sheet_names_the_cell_of_the_answer_else_its_own(
    passage: str, words: str | None, cell: str
) -> None:
    def place(text: str) -> Span:
        return Span(50 + ROWS.index(text), 50 + ROWS.index(text) + len(text))

    found = Citation.of(
        source(ROWS, start=50, pages=(1, 1)),
        place(passage),
        marker=Span(0, 3),
        support=1.0,
        origin="model",
        pages=SHEET,
        words=None if words is None else place(words),
    )

    assert found.cell == cell


def test_outside_of_rows_and_where_a_cell_has_the_sign_between_cells_a_passage_names_what_is_known() -> None:
    whole = source("Sum | Zone: NA | 5", start=50, pages=(1, 1))
    row = Block(BlockKind.TABLE_ROW, 50, 68, 1, (), ("A1", "B1"))
    cut = source("Zone: NA | 5", start=56, pages=(1, 1))
    pages = {("doc_1", 1): Layout(rows=(row,))}

    def cell(presented: Source, passage: Span, pages: Pages) -> str | None:
        return Citation.of(presented, passage, marker=Span(0, 3), support=1.0, origin="model", pages=pages).cell

    assert cell(whole, Span(67, 68), pages) == "A1:B1"
    assert cell(cut, Span(67, 68), pages) == "A1:B1"
    assert cell(whole, Span(50, 53), TABLE) is None
    assert cell(whole, Span(50, 53), {}) is None


@pytest.mark.parametrize(
    ("filename", "pages", "sheet"),
    [
        ("sales.xlsx", (2, 2), "Sales 2023"),
        ("Sales.ODS", (2, 2), "Sales 2023"),
        ("sales.xlsx", (2, 3), None),
        ("sales.xlsx", (3, 3), None),
        ("sales.pdf", (2, 2), None),
    ],
)
def test_a_passage_of_a_spreadsheet_is_on_a_sheet(filename: str, pages: tuple[int, int], sheet: str | None) -> None:
    """A chunk may cross sheets; its headings are those of its beginning."""
    found = replace(
        chunk(1, "Zone: LATAM | Sales: 5659"),
        filename=filename,
        page_start=2,
        page_end=3,
        heading_path=("Sales 2023", "By zone"),
    )

    assert sheet_of(found, *pages) == sheet
