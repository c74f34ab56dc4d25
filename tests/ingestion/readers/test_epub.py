"""ingestion.readers.office: the chapters in the order of the spine."""

from pathlib import Path

import pytest

from ingestion.errors import Malformed
from ingestion.types import BlockKind, MediaType
from tests.ingestion.epub_file import PACKAGE, book
from tests.ingestion.readers.reading import blocks, paths, read


@pytest.mark.parametrize("mimetype_first", [True, False])
def test_chapters_come_in_the_order_of_the_spine(tmp_path: Path, mimetype_first: bool) -> None:
    extraction = read(tmp_path, "a.epub", book(mimetype_first=mimetype_first))

    assert blocks(extraction) == [
        (BlockKind.HEADING, "First"),
        (BlockKind.PARAGRAPH, "Es war einmal 🦆."),
        (BlockKind.HEADING, "Last"),
        (BlockKind.PARAGRAPH, "The end."),
    ]
    assert paths(extraction) == [(), ("First",), (), ("Last",)]
    assert (extraction.title, extraction.pages) == ("On Ducks", ())
    assert extraction.media_type is MediaType.EPUB


@pytest.mark.parametrize("package", ["<package/>", "not xml", PACKAGE.replace("<spine>", "<spin>")])
def test_a_book_without_a_spine_is_malformed(tmp_path: Path, package: str) -> None:
    with pytest.raises(Malformed, match="damaged"):
        read(tmp_path, "a.epub", book(package=package))
