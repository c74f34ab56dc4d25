"""ingestion.readers.csv: each row is written with its column names."""

from pathlib import Path

import pytest

from ingestion.types import BlockKind, MediaType
from tests.ingestion.readers.reading import blocks, read


def rows(folder: Path, data: str | bytes, name: str = "a.csv") -> list[str]:
    extraction = read(folder, name, data)
    assert {kind for kind, _ in blocks(extraction)} == {BlockKind.TABLE_ROW}
    assert extraction.media_type is MediaType.CSV
    return [text for _, text in blocks(extraction)]


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_the_header_comes_first_and_each_row_repeats_its_names(tmp_path: Path, delimiter: str) -> None:
    lines = [["city", "people"], ["Oslo", "717710"], ["Bergen", ""]]

    text = "\n".join(delimiter.join(line) for line in lines)

    assert rows(tmp_path, text) == ["city | people", "city: Oslo | people: 717710", "city: Bergen"]


def test_quoted_cells_may_hold_delimiters_quotes_and_line_ends(tmp_path: Path) -> None:
    text = 'name,note\n"Doe, Jane","said ""hi""\nand left"\n'

    assert rows(tmp_path, text) == ["name | note", 'name: Doe, Jane | note: said "hi" and left']


def test_a_table_without_a_header_keeps_its_first_row(tmp_path: Path) -> None:
    assert rows(tmp_path, "1,2\n3,4\n") == ["1 | 2", "3 | 4"]


def test_one_row_is_no_header(tmp_path: Path) -> None:
    assert rows(tmp_path, "just,one\n") == ["just | one"]


def test_a_row_longer_than_the_header_keeps_its_cells(tmp_path: Path) -> None:
    assert rows(tmp_path, "a,b\n1,2,3\n") == ["a | b", "a: 1 | b: 2 | 3"]


def test_one_column_is_a_table_too(tmp_path: Path) -> None:
    assert rows(tmp_path, "name\nAda\nGrace\n") == ["name", "name: Ada", "name: Grace"]


def test_the_encoding_does_not_matter(tmp_path: Path) -> None:
    text = "название,страна\nМосква,Россия\nКазань,Россия\nСамара,Россия\n"

    assert rows(tmp_path, text.encode("cp1251"))[1] == "название: Москва | страна: Россия"
