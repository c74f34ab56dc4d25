"""ingestion.table_headers: a chunk that begins inside a table knows the table's caption and column names."""

import time
from pathlib import Path

import pytest

from ingestion.builder import TextBuilder
from ingestion.chunking import Chunker
from ingestion.extraction import LocalExtractor
from ingestion.table_headers import TableHeaders
from ingestion.tables import cells
from ingestion.types import BlockKind, ChunkDraft, Extraction, ExtractionLimits, MediaType
from tests.ingestion.small_tokenizer import byte_level, token_count, word_piece

MAX_TOKENS = 64
ROWS = [f"Lake {number} | {number * 7},5{number:02}" for number in range(80)]


def report(*blocks: tuple[BlockKind, str], media_type: MediaType = MediaType.PDF) -> Extraction:
    builder = TextBuilder(ExtractionLimits())
    for kind, text in blocks:
        builder.append(kind, text, level=1 if kind is BlockKind.HEADING else None)
    return builder.build(media_type)


def lakes(*, above: str = "In square metres", columns: str = "Lake | Area") -> Extraction:
    rows = [(BlockKind.TABLE_ROW, text) for text in [columns, *ROWS]]
    return report(
        (BlockKind.HEADING, "Waters"), (BlockKind.CAPTION, "Table 1: Lakes"), (BlockKind.PARAGRAPH, above), *rows
    )


def chunks(extraction: Extraction, *, max_tokens: int = MAX_TOKENS) -> list[ChunkDraft]:
    return Chunker(word_piece(), max_tokens=max_tokens, overlap=8).chunk(extraction)


def test_chunks_of_rows_are_embedded_with_caption_and_columns_and_quote_neither() -> None:
    extraction = lakes()

    first, *others = chunks(extraction, max_tokens=128)

    assert first.table_header == ""
    assert len(others) > 2
    for passage in others:
        assert passage.table_header == "Table 1: Lakes\nIn square metres\nLake | Area"
        assert passage.embedding_text == f"Waters\n{passage.table_header}\n{passage.text}"
        assert passage.text == extraction.text[passage.start_char : passage.end_char]
        assert "Lake | Area" not in passage.text


@pytest.mark.parametrize("tokenizer", [word_piece, byte_level])
def test_chunks_with_a_table_header_fit_and_are_embedded_anew_alike(tokenizer) -> None:
    chunker = Chunker(tokenizer(), max_tokens=MAX_TOKENS, overlap=8)

    passages = chunker.chunk(lakes())

    for passage in passages:
        assert passage.token_count == token_count(tokenizer(), passage.embedding_text) <= MAX_TOKENS
        again = chunker.embedding_text(passage.heading_path, passage.text, passage.table_header)
        assert again == passage.embedding_text


def test_a_table_header_that_is_too_long_to_embed_loses_its_caption_first() -> None:
    passage = chunks(lakes(above="a long remark on how it was measured " * 4))[-1]

    assert passage.table_header.startswith("Table 1: Lakes\na long remark")
    assert passage.embedding_text == f"Waters\nLake | Area\n{passage.text}"


def test_a_table_in_one_chunk_has_its_header_in_its_text() -> None:
    (passage,) = chunks(lakes(), max_tokens=1024)

    assert passage.table_header == ""
    assert "Lake | Area" in passage.text


def test_rows_that_repeat_the_names_of_their_columns_need_the_caption_alone() -> None:
    rows = [(BlockKind.TABLE_ROW, f"lake: Lake {number} | area: {number}") for number in range(30)]
    extraction = report((BlockKind.CAPTION, "Lakes by area"), (BlockKind.TABLE_ROW, "lake | area"), *rows)

    assert {passage.table_header for passage in chunks(extraction)[1:]} == {"Lakes by area"}


def test_prose_above_a_table_and_its_heading_are_no_caption() -> None:
    prose = "Lakes were measured in the summer of 1999. " * 6
    rows = [(BlockKind.TABLE_ROW, text) for text in ["Lake | Area", *ROWS]]

    for kind, text in ((BlockKind.PARAGRAPH, prose), (BlockKind.HEADING, "Lakes")):
        assert chunks(report((kind, text), *rows))[-1].table_header == "Lake | Area"


def test_a_first_row_of_data_names_no_columns() -> None:
    extraction = report(*((BlockKind.TABLE_ROW, text) for text in ROWS))

    assert {passage.table_header for passage in chunks(extraction)} == {""}


def test_a_chunk_that_begins_inside_a_row_has_the_rows_name() -> None:
    row = "Loch Ness | " + " | ".join(f"value {number}" for number in range(60))
    extraction = report(
        (BlockKind.TABLE_ROW, "name | depth"), (BlockKind.TABLE_ROW, row), (BlockKind.TABLE_ROW, "a | 1")
    )

    long = extraction.blocks[1]
    inside = [passage for passage in chunks(extraction) if long.start_char < passage.start_char < long.end_char]

    assert len(inside) > 2
    assert all(passage.table_header.endswith("Loch Ness") for passage in inside)


def test_tables_are_cut_between_rows_though_sentences_end_inside_them() -> None:
    rows = [(BlockKind.TABLE_ROW, f"Lake {number} | It is deep. It is cold. It is far.") for number in range(30)]
    extraction = report(*rows)
    ends = {block.end_char for block in extraction.blocks}
    starts = {block.start_char for block in extraction.blocks}

    for passage in chunks(extraction):
        assert passage.start_char in starts
        assert passage.end_char in ends


def statement() -> Extraction:
    """An income statement as it is read from a printed page."""
    row, line = BlockKind.TABLE_ROW, BlockKind.PARAGRAPH
    rows = [(row, f"Lakes | $ | {number},5{number} | $ | {number},1{number}") for number in range(10, 22)]
    return report(
        (line, "(In millions)"),
        (row, "Three Months Ended | Nine Months Ended"),
        (line, "June 25, 2022"),
        (line, "June 26, 2021"),
        (line, "Net sales:"),
        *rows,
        (line, "Operating expenses:"),
        *rows,
        (row, "Assets | Debts"),
        (row, "Cash | 1,500"),
        (line, "Signed by the auditors."),
    )


def test_a_printed_tables_names_take_several_lines_and_labels_stand_between_its_rows() -> None:
    extraction = statement()
    headers = TableHeaders(extraction)
    names = "(In millions)\nThree Months Ended | Nine Months Ended\nJune 25, 2022 | June 26, 2021"
    sales, expenses, *_ = (block for block in extraction.blocks if extraction.text[: block.end_char].endswith("s:"))
    starts = [block.start_char for block in extraction.blocks]

    assert headers.at(starts[6]) == f"{names}\nNet sales:"
    assert headers.at(expenses.start_char) == names  # its own text has its label
    assert headers.at(starts[-4]) == f"{names}\nOperating expenses:"
    assert headers.at(starts[-2]) == "Assets | Debts"
    assert headers.at(starts[-1]) == ""
    assert headers.at(sales.start_char) == names


def test_sections_that_begin_inside_a_printed_table_leave_room_for_its_names() -> None:
    extraction = statement()

    for passage in chunks(extraction, max_tokens=96):
        assert token_count(word_piece(), passage.embedding_text) == passage.token_count <= 96
        assert passage.table_header.split("\n")[-1] in passage.embedding_text


def test_text_around_tables_has_no_table_header() -> None:
    headers = TableHeaders(extraction := lakes())

    last = extraction.blocks[-1]
    assert headers.at(0) == headers.at(last.end_char) == ""
    assert headers.at(last.start_char) == "Table 1: Lakes\nIn square metres\nLake | Area"


def test_the_header_of_a_markdown_table_is_its_first_row(tmp_path: Path) -> None:
    path = tmp_path / "a.md"
    path.write_text("Who works where.\n\n| Who | Where |\n|---|---|\n" + "| Ann | Oslo |\n" * 40)

    passages = chunks(LocalExtractor().extract(path, filename="a.md"))

    assert passages[-1].table_header == "Who works where.\n| Who | Where |"


def test_cells_are_read_with_and_without_outer_bars() -> None:
    assert cells("a | b") == cells("| a | b |") == ["a", "b"]
    assert cells(r"| a \| b | c |") == [r"a \| b", "c"]


def test_many_rows_without_numbers_take_a_moment() -> None:
    extraction = report(*[(BlockKind.TABLE_ROW, "a b | c d"), (BlockKind.PARAGRAPH, "label:")] * 20_000)

    started = time.process_time()
    TableHeaders(extraction)

    assert time.process_time() - started < 5
