r"""ingestion.readers.rtf: paragraphs, headings, lists and rows out of control words."""

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ingestion.errors import IngestionError
from ingestion.types import BlockKind, MediaType
from tests.ingestion.readers.reading import blocks, paths, read

HEAD = r"{\rtf1\ansi\ansicpg1252\deff0{\fonttbl{\f0\fswiss\fcharset0 Arial;}}{\info{\title Uses of water}}"


def test_paragraphs_headings_and_items(tmp_path: Path) -> None:
    source = (
        HEAD + r"{\header not this}\pard\outlinelevel0 Water\par"
        r"\pard It is \b bold\b0  and \'e4lter \u8212? yes \u55358?\u56710?.\par"
        r"\pard\outlinelevel1 Uses\par\pard{\listtext \'b7\tab}drinking\par{\listtext 2.\tab}swimming\par"
        r"{\field{\*\fldinst{HYPERLINK \"https://example.com\"}}{\fldrslt a link}}\par}"
    )

    extraction = read(tmp_path, "a.rtf", source)

    assert blocks(extraction) == [
        (BlockKind.HEADING, "Water"),
        (BlockKind.PARAGRAPH, "It is bold and älter — yes 🦆."),
        (BlockKind.HEADING, "Uses"),
        (BlockKind.LIST_ITEM, "drinking"),
        (BlockKind.LIST_ITEM, "2. swimming"),
        (BlockKind.PARAGRAPH, "a link"),
    ]
    assert paths(extraction)[3] == ("Water", "Uses")
    assert extraction.title == "Uses of water"
    assert extraction.media_type is MediaType.RTF


@pytest.mark.parametrize("begin", [r"\trowd\cellx100\cellx200 ", ""])
def test_a_table_is_read_by_row(tmp_path: Path, begin: str) -> None:
    cells = (("city", "people"), ("Oslo", "717710"), ("Bergen", "291940"))
    first, *others = [r"\pard\intbl " + "".join(rf"{cell}\cell " for cell in row) + r"\row " for row in cells]
    table = r"\trowd\cellx100\cellx200 " + first + "".join(begin + row for row in others)

    extraction = read(tmp_path, "a.rtf", HEAD + r"\pard Before.\par " + table + r"\pard After.\par}")

    assert blocks(extraction) == [
        (BlockKind.PARAGRAPH, "Before."),
        (BlockKind.TABLE_ROW, "city | people"),
        (BlockKind.TABLE_ROW, "city: Oslo | people: 717710"),
        (BlockKind.TABLE_ROW, "city: Bergen | people: 291940"),
        (BlockKind.PARAGRAPH, "After."),
    ]


def test_an_escaped_backslash_begins_no_control_word(tmp_path: Path) -> None:
    assert read(tmp_path, "a.rtf", HEAD + r"\pard a\\cell b | c\par}").text == r"a\cell b | c"


PIECES = st.sampled_from(
    ["{", "}", "\\", "\\par", "\\cell ", "\\row ", "\\trowd", "\\pard", "\\outlinelevel3 ", "\\u8212?", "\\'e4",
     "text ", "\\bin3", "\\pict", "\\field{", "\n", "\\*", "\\fcharset999 ", "\\f9 ", "\\uc99 ", "\ue000", "-1"]
)  # fmt: skip


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(PIECES, max_size=40))
def test_any_markup_ends_in_text_without_our_marks_or_in_a_sentence(tmp_path: Path, pieces: list[str]) -> None:
    try:
        text = read(tmp_path, "a.rtf", (HEAD + "".join(pieces)).encode()).text
    except IngestionError as error:
        text = str(error)

    assert text
    assert not set(text) & set("\ue000\ue001\ue002\ue003\ue010\ue013")
