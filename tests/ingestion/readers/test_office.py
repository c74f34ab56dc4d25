"""ingestion.readers.office: Word, PowerPoint and Excel through docling."""

import io
from pathlib import Path

import pytest
from docx import Document

from ingestion.errors import LimitExceeded, Malformed, NoText
from ingestion.types import BlockKind, ExtractionLimits, MediaType
from tests.ingestion.office_files import docx_bytes, pptx_bytes, xlsx_bytes
from tests.ingestion.readers.reading import blocks, paths, read
from tests.ingestion.zip_file import ooxml_bytes


def test_a_word_document_has_headings_lists_and_rows(tmp_path: Path) -> None:
    extraction = read(tmp_path, "a.docx", docx_bytes())

    assert blocks(extraction) == [
        (BlockKind.HEADING, "Report"),
        (BlockKind.PARAGRAPH, "Before the lake 🦆."),
        (BlockKind.HEADING, "Ducks"),
        (BlockKind.LIST_ITEM, "one"),
        (BlockKind.LIST_ITEM, "two"),
        (BlockKind.TABLE_ROW, "Name | Weight"),
        (BlockKind.TABLE_ROW, "Name: Mallard | Weight: 1.1 kg"),
        (BlockKind.TABLE_ROW, "Name: Teal"),
    ]
    assert paths(extraction)[1] == ("Report",)
    assert paths(extraction)[-1] == ("Report", "Ducks")
    assert (extraction.title, extraction.pages) == ("Report", ())
    assert extraction.media_type is MediaType.DOCX


def test_a_slide_is_a_page_even_when_it_is_empty(tmp_path: Path) -> None:
    extraction = read(tmp_path, "a.pptx", pptx_bytes())

    shown = {page.number: extraction.text[page.start_char : page.end_char] for page in extraction.pages}
    assert shown == {1: "First\n\nalpha", 2: "", 3: "Third\n\ngamma\n\nwhat the speaker says"}
    assert [block.page for block in extraction.blocks] == [1, 1, 3, 3, 3]
    assert paths(extraction) == [(), ("First",), (), ("Third",), ("Third",)]


def test_a_sheet_is_a_page_under_its_name(tmp_path: Path) -> None:
    extraction = read(tmp_path, "a.xlsx", xlsx_bytes())

    assert blocks(extraction) == [
        (BlockKind.HEADING, "Cities"),
        (BlockKind.TABLE_ROW, "city | people"),
        (BlockKind.TABLE_ROW, "city: Oslo | people: 717710"),
        (BlockKind.TABLE_ROW, "city: Bergen | people: 291940"),
        (BlockKind.HEADING, "Notes"),
        (BlockKind.PARAGRAPH, "a single remark"),
    ]
    assert [block.page for block in extraction.blocks] == [1, 1, 1, 1, 2, 2]
    assert paths(extraction)[-1] == ("Notes",)


@pytest.mark.parametrize(("folder", "name"), [("word", "a.docx"), ("ppt", "a.pptx"), ("xl", "a.xlsx")])
def test_a_container_without_a_document_is_malformed(tmp_path: Path, folder: str, name: str) -> None:
    with pytest.raises(Malformed, match="damaged"):
        read(tmp_path, name, ooxml_bytes(folder))


def test_a_document_without_text_is_no_text(tmp_path: Path) -> None:
    out = io.BytesIO()
    Document().save(out)

    with pytest.raises(NoText):
        read(tmp_path, "a.docx", out.getvalue())


def test_a_bomb_is_refused_before_it_is_parsed(tmp_path: Path) -> None:
    bomb = ooxml_bytes("word", {"word/media/image.bin": bytes(4 << 20)})

    with pytest.raises(LimitExceeded, match="expands to more than 1 MiB"):
        read(tmp_path, "a.docx", bomb, limits=ExtractionLimits(expanded_bytes=1 << 20))


def test_a_document_that_declares_entities_is_refused_before_it_is_parsed(tmp_path: Path) -> None:
    bomb = ooxml_bytes("word", {"word/styles.xml": '<!DOCTYPE x [<!ENTITY a "aaaa">]><x>&a;</x>'})

    with pytest.raises(Malformed, match="entities"):
        read(tmp_path, "a.docx", bomb)


def test_more_text_than_the_cap_is_refused(tmp_path: Path) -> None:
    with pytest.raises(LimitExceeded, match="20 characters"):
        read(tmp_path, "a.docx", docx_bytes(), limits=ExtractionLimits(text_chars=20))
