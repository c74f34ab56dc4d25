"""ingestion.readers.text keeps the text as it is."""

from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings

from ingestion.errors import NoText
from ingestion.normalise import normalise
from ingestion.readers.text import paragraph_spans
from ingestion.types import BlockKind, MediaType
from tests.ingestion.readers.reading import blocks, read
from tests.ingestion.texts import hostile_text


def test_blank_lines_separate_paragraphs_and_nothing_is_changed(tmp_path: Path) -> None:
    text = "  First line\nsecond line\n \t\n\nSecond paragraph 🦆\n"

    extraction = read(tmp_path, "a.txt", text)

    assert extraction.text == text
    assert extraction.media_type is MediaType.TEXT
    assert [shown for _, shown in blocks(extraction)] == ["First line\nsecond line", "Second paragraph 🦆"]
    assert (extraction.pages, extraction.title) == ((), "a")


@pytest.mark.parametrize("encoding", ["utf-16", "utf-32-be", "shift_jis", "iso2022_jp"])
def test_the_encoding_does_not_matter(tmp_path: Path, encoding: str) -> None:
    text = "吾輩は猫である。\n名前はまだ無い。\n\nどこで生れたかとんと見当がつかぬ。Hello, cat.\n"

    assert read(tmp_path, "a.txt", text.encode(encoding)).text == text


def test_white_space_alone_is_no_text(tmp_path: Path) -> None:
    with pytest.raises(NoText):
        read(tmp_path, "a.txt", " \n\t \u200b\n")


@settings(deadline=None)
@given(text=hostile_text.map(normalise))
def test_paragraphs_cover_everything_but_white_space(text: str) -> None:
    spans = paragraph_spans(text)

    left = list(text)
    for span in spans:
        assert span.kind is BlockKind.PARAGRAPH
        assert text[span.start : span.end].strip() == text[span.start : span.end] != ""
        left[span.start : span.end] = " " * (span.end - span.start)
    assert not "".join(left).strip()
    assert all(one.end < other.start for one, other in pairwise(spans))
