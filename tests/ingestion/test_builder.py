"""ingestion.builder: every offset points at the text it was counted from."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ingestion.builder import PlacedBlock, TextBuilder
from ingestion.errors import LimitExceeded, NoText
from ingestion.normalise import normalise
from ingestion.types import Block, BlockKind, Extraction, ExtractionLimits, MediaType
from tests.ingestion.texts import hostile_text

blocks = st.lists(st.tuples(st.sampled_from(list(BlockKind)), hostile_text, st.integers(1, 4)), min_size=1, max_size=12)


def built(builder: TextBuilder) -> Extraction:
    return builder.build(MediaType.TEXT)


def shown(extraction: Extraction, block: Block) -> str:
    return extraction.text[block.start_char : block.end_char]


@settings(deadline=None)
@given(pages=st.lists(blocks, min_size=1, max_size=4))
def test_blocks_and_pages_point_at_exactly_what_was_appended(
    pages: list[list[tuple[BlockKind, str, int]]],
) -> None:
    builder = TextBuilder(ExtractionLimits())
    expected: list[tuple[int, BlockKind, str]] = []
    for number, appended in enumerate(pages, start=1):
        builder.begin_page(number)
        for kind, text, level in appended:
            builder.append(kind, text, level=level if kind is BlockKind.HEADING else None)
            if normalise(text).strip():
                expected.append((number, kind, normalise(text).strip()))
    if not expected:
        with pytest.raises(NoText):
            built(builder)
        return

    extraction = built(builder)

    assert [(block.page, block.kind, shown(extraction, block)) for block in extraction.blocks] == expected
    assert [page.number for page in extraction.pages] == list(range(1, len(pages) + 1))
    ends = [0, *(page.end_char for page in extraction.pages)]
    assert all(end <= page.start_char <= page.end_char for end, page in zip(ends, extraction.pages, strict=False))
    by_number = {page.number: page for page in extraction.pages}
    for block in extraction.blocks:
        assert block.page is not None
        page = by_number[block.page]
        assert page.start_char <= block.start_char < block.end_char <= page.end_char


def test_a_heading_path_holds_the_headings_above_and_a_heading_closes_those_of_its_level() -> None:
    builder = TextBuilder(ExtractionLimits())
    for kind, text, level in [
        (BlockKind.HEADING, "Book", 1),
        (BlockKind.HEADING, "Chapter", 3),  # a level may be skipped
        (BlockKind.PARAGRAPH, "in chapter", None),
        (BlockKind.HEADING, "Other", 2),
        (BlockKind.PARAGRAPH, "in other", None),
    ]:
        builder.append(kind, text, level=level)

    extraction = built(builder)

    assert [block.heading_path for block in extraction.blocks] == [
        (), ("Book",), ("Book", "Chapter"), ("Book",), ("Book", "Other"),
    ]  # fmt: skip
    assert extraction.title == "Book"


def test_rows_of_a_table_stand_together_and_paragraphs_apart() -> None:
    builder = TextBuilder(ExtractionLimits())
    for kind, text in [(BlockKind.PARAGRAPH, "p"), (BlockKind.TABLE_ROW, "1"), (BlockKind.TABLE_ROW, "2")]:
        builder.append(kind, text)

    assert built(builder).text == "p\n\n1\n2"


def test_verbatim_text_keeps_its_spans() -> None:
    builder = TextBuilder(ExtractionLimits())
    builder.append(BlockKind.PARAGRAPH, "before")
    builder.append_verbatim(
        "# 標題\ntext ", [PlacedBlock(BlockKind.HEADING, 0, 4, 1, "標題"), PlacedBlock(BlockKind.PARAGRAPH, 5, 9)]
    )

    extraction = built(builder)

    assert [shown(extraction, block) for block in extraction.blocks] == ["before", "# 標題", "text"]
    assert extraction.blocks[-1].heading_path == ("標題",)


def test_more_text_than_the_cap_is_refused() -> None:
    builder = TextBuilder(ExtractionLimits(text_chars=10))
    builder.append(BlockKind.PARAGRAPH, "12345")

    with pytest.raises(LimitExceeded, match="10 characters"):
        builder.append(BlockKind.PARAGRAPH, "6789")


def test_more_pages_than_the_cap_are_refused() -> None:
    builder = TextBuilder(ExtractionLimits(pages=2))
    builder.begin_page(1)
    builder.begin_page(2)

    with pytest.raises(LimitExceeded, match="2 pages"):
        builder.begin_page(3)
