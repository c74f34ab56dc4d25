"""ingestion.furniture: lines of marks, and what repeats on slides, are kept in the text and searched nowhere."""

import pytest

from ingestion.builder import TextBuilder, mark_as_furniture
from ingestion.furniture import with_furniture
from ingestion.types import BlockKind, Extraction, ExtractionLimits, MediaType
from tests.ingestion.readers.reading import blocks

PARAGRAPH, ROW, HEADING, FURNITURE = BlockKind.PARAGRAPH, BlockKind.TABLE_ROW, BlockKind.HEADING, BlockKind.FURNITURE


def document(*parts: tuple[BlockKind, str], media_type: MediaType = MediaType.PDF) -> Extraction:
    builder = TextBuilder(ExtractionLimits())
    for kind, text in parts:
        builder.append(kind, text, level=1 if kind is HEADING else None)
    return builder.build(media_type)


def furniture(extraction: Extraction) -> list[str]:
    marked = with_furniture(extraction)
    assert marked.text == extraction.text
    assert [(one.start_char, one.end_char) for one in marked.blocks] == [
        (one.start_char, one.end_char) for one in extraction.blocks
    ]
    return [text for kind, text in blocks(marked) if kind is FURNITURE]


def test_marks_where_a_section_begins_or_ends_are_no_passage() -> None:
    extraction = document(
        (PARAGRAPH, "====="), (PARAGRAPH, "text"), (PARAGRAPH, "-----"), (PARAGRAPH, "more"), (PARAGRAPH, "* * *"),
        (HEADING, "Next"), (PARAGRAPH, "…"), (PARAGRAPH, "text"), (PARAGRAPH, "_____"),
    )  # fmt: skip

    assert furniture(extraction) == ["=====", "* * *", "…", "_____"]


def test_trademarks_alone_are_no_passage_anywhere_but_inside_a_table() -> None:
    inside = [(ROW, "Name | Mark"), (ROW, "® | ®"), (ROW, "Lamp | ™")]

    assert furniture(document((PARAGRAPH, "text"), (ROW, "® | ®"), (PARAGRAPH, "more"))) == ["® | ®"]
    assert furniture(document((PARAGRAPH, "text"), *inside, (PARAGRAPH, "more"))) == []


@pytest.mark.parametrize("said", ["✓", "☒ | ☐", "5", "§ 5", "€", "🦆", "無", "x = y"])
def test_marks_that_stand_for_words_are_passages(said: str) -> None:
    assert furniture(document((PARAGRAPH, "text"), (PARAGRAPH, said))) == []


def test_files_that_are_text_keep_their_lines_of_marks() -> None:
    assert furniture(document((PARAGRAPH, "text"), (PARAGRAPH, "-----"), media_type=MediaType.TEXT)) == []


def test_a_document_of_furniture_alone_has_none() -> None:
    extraction = with_furniture(document((PARAGRAPH, "-----"), (PARAGRAPH, "® | ®")))

    assert [kind for kind, _ in blocks(extraction)] == [PARAGRAPH, PARAGRAPH]


def slides(count: int, media_type: MediaType = MediaType.PPTX) -> Extraction:
    builder = TextBuilder(ExtractionLimits())
    for number in range(1, count + 1):
        builder.begin_page(number)
        builder.append(HEADING, "Agenda", level=1)
        builder.append(PARAGRAPH, f"Point of {'abcdefgh'[number]} alone.")
        builder.append(ROW, "Name | Total")
        builder.append(PARAGRAPH, f"Example Limited, confidential, {number}")
    return builder.build(media_type)


def test_what_repeats_on_slides_is_furniture_but_no_heading_and_no_row() -> None:
    assert furniture(slides(5)) == [f"Example Limited, confidential, {number}" for number in range(1, 6)]
    assert furniture(slides(3)) == []
    assert furniture(slides(5, MediaType.XLSX)) == []


def test_a_block_of_marked_words_is_furniture_of_the_same_text() -> None:
    builder = TextBuilder(ExtractionLimits())
    builder.append(BlockKind.LIST_ITEM, "plain")
    builder.append(BlockKind.LIST_ITEM, "[ ] " + mark_as_furniture("Main – menu"))
    builder.append(HEADING, mark_as_furniture("Contents"), level=1)
    builder.append(PARAGRAPH, "Three words here " + mark_as_furniture("icon"))

    extraction = builder.build(MediaType.HTML)

    assert extraction.text == "plain\n[ ] Main – menu\n\nContents\n\nThree words here icon"
    assert [kind for kind, _ in blocks(extraction)] == [BlockKind.LIST_ITEM, FURNITURE, FURNITURE, PARAGRAPH]
    assert extraction.blocks[-1].heading_path == ()
