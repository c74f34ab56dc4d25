"""ingestion.readers.office: OpenDocument texts, spreadsheets and presentations."""

from pathlib import Path

import pytest

from ingestion.errors import Encrypted, Malformed
from ingestion.types import BlockKind, MediaType
from tests.ingestion.open_documents import odp_bytes, ods_bytes, odt_bytes
from tests.ingestion.readers.reading import blocks, paths, read
from tests.ingestion.zip_file import zip_bytes


def test_a_text_has_headings_lists_tables_and_its_notes_at_the_end(tmp_path: Path) -> None:
    extraction = read(tmp_path, "a.odt", odt_bytes())

    assert blocks(extraction) == [
        (BlockKind.HEADING, "Report"),
        (BlockKind.PARAGRAPH, "Before the lake 🦆."),
        (BlockKind.HEADING, "Ducks"),
        (BlockKind.LIST_ITEM, "one"),
        (BlockKind.LIST_ITEM, "two"),
        (BlockKind.TABLE_ROW, "city | people"),
        (BlockKind.TABLE_ROW, "city: Oslo | people: 717710"),
        (BlockKind.TABLE_ROW, "city: Bergen | people: 291940"),
        (BlockKind.PARAGRAPH, "A claim."),
        (BlockKind.PARAGRAPH, "What the note says."),
    ]
    assert paths(extraction)[3] == ("Report", "Ducks")
    assert extraction.media_type is MediaType.ODT
    assert extraction.pages == ()


def test_a_sheet_is_a_page_under_its_name(tmp_path: Path) -> None:
    extraction = read(tmp_path, "a.ods", ods_bytes())

    assert [block.page for block in extraction.blocks] == [1, 1, 1, 1, 2, 2, 2, 2]
    assert blocks(extraction)[4] == (BlockKind.HEADING, "Towns")
    assert blocks(extraction)[5:] == [
        (BlockKind.TABLE_ROW, "city | people"),
        (BlockKind.TABLE_ROW, "city: Oslo | people: 717710"),
        (BlockKind.TABLE_ROW, "city: Bergen | people: 291940"),
    ]
    assert paths(extraction)[5] == ("Towns",)
    assert extraction.media_type is MediaType.ODS


def test_a_slide_is_a_page(tmp_path: Path) -> None:
    extraction = read(tmp_path, "a.odp", odp_bytes())

    assert [extraction.text[page.start_char : page.end_char] for page in extraction.pages] == [
        "Slide 1\n\nalpha",
        "Slide 2\n\ngamma",
    ]
    assert extraction.media_type is MediaType.ODP


def test_a_document_behind_a_password_is_said_to_be_so(tmp_path: Path) -> None:
    manifest = '<manifest:manifest xmlns:manifest="m"><manifest:encryption-data/></manifest:manifest>'
    members: dict[str, str | bytes] = {
        "mimetype": "application/vnd.oasis.opendocument.text",
        "content.xml": b"\x8a\x11noise",
        "META-INF/manifest.xml": manifest,
    }

    with pytest.raises(Encrypted, match="OpenDocument"):
        read(tmp_path, "a.odt", zip_bytes(members))


def test_a_container_without_a_document_is_malformed(tmp_path: Path) -> None:
    with pytest.raises(Malformed):
        read(tmp_path, "a.odt", zip_bytes({"mimetype": "application/vnd.oasis.opendocument.text"}))
