"""ingestion.readers.pdf: opening, pages and the structure that the lines of a page are given."""

from pathlib import Path

import pytest

from ingestion.errors import Encrypted, LimitExceeded, Malformed, NoText
from ingestion.readers.pdf import read_pdf
from ingestion.types import BlockKind, ExtractionLimits, MediaType
from tests.ingestion.pdf_file import Shown, locked_pdf, pdf_bytes, set_pdf
from tests.ingestion.readers.reading import blocks, paths, read


def encrypted_pdf() -> bytes:
    """Behind the standard security handler (ISO 32000-1 §7.6.3), with hashes that no password has."""
    handler = b"/Encrypt << /Filter /Standard /V 1 /R 2 /O <%s> /U <%s> /P -4 >> " % (b"ab" * 32, b"cd" * 32)
    return pdf_bytes([["secret"]]).replace(b"trailer << ", b"trailer << " + handler + b"/ID [<00> <00>] ")


def test_every_page_is_kept_with_its_number(tmp_path: Path) -> None:
    extraction = read(tmp_path, "a.pdf", pdf_bytes([["One", "more."], [], ["Three (3)"]], title="More than one"))

    shown = [(page.number, extraction.text[page.start_char : page.end_char]) for page in extraction.pages]
    assert shown == [(1, "One more."), (2, ""), (3, "Three (3)")]
    assert extraction.text == "One more.\n\nThree (3)"
    assert [(block.page, text) for block, (_, text) in zip(extraction.blocks, blocks(extraction), strict=True)] == [
        (1, "One more."),
        (3, "Three (3)"),
    ]
    assert extraction.title == "More than one"
    assert extraction.media_type is MediaType.PDF


@pytest.mark.parametrize("pages", [[[]], [[], []]])
def test_a_pdf_of_blank_pages_has_no_text(tmp_path: Path, pages: list[list[str]]) -> None:
    with pytest.raises(NoText, match="holds no text"):
        read(tmp_path, "a.pdf", pdf_bytes(pages))


@pytest.mark.parametrize("before", [b"%PDF-1.7 broken", "encrypted"])
def test_a_pdf_without_pages_has_no_text_whatever_was_wrong_with_the_one_before(
    tmp_path: Path, before: bytes | str
) -> None:
    with pytest.raises((Malformed, Encrypted)):
        read(tmp_path, "a.pdf", encrypted_pdf() if before == "encrypted" else before)

    with pytest.raises(NoText, match="no pages"):
        read(tmp_path, "a.pdf", pdf_bytes([]))


def test_a_pdf_behind_a_password_is_encrypted(tmp_path: Path) -> None:
    with pytest.raises(Encrypted, match="password"):
        read(tmp_path, "a.pdf", encrypted_pdf())


def test_a_damaged_pdf_is_malformed(tmp_path: Path) -> None:
    with pytest.raises(Malformed, match="damaged"):
        read(tmp_path, "a.pdf", b"%PDF-1.7\nand nothing that follows from it")


def test_more_pages_than_the_cap_are_refused(tmp_path: Path) -> None:
    with pytest.raises(LimitExceeded, match="2 pages"):
        read(tmp_path, "a.pdf", pdf_bytes([["a"], ["b"], ["c"]]), limits=ExtractionLimits(pages=2))


def test_a_page_tree_that_runs_in_a_circle_ends(tmp_path: Path) -> None:
    data = pdf_bytes([["a"]]).replace(b"/Kids [5 0 R]", b"/Kids [2 0 R]")

    with pytest.raises((Malformed, NoText)):
        read(tmp_path, "a.pdf", data)


HEADING, PARAGRAPH, ROW = BlockKind.HEADING, BlockKind.PARAGRAPH, BlockKind.TABLE_ROW


def column(left: float, top: float, *texts: str, size: float = 10, bold: bool = False) -> list[Shown]:
    """Lines below one another, single spaced."""
    return [Shown(left, top - 1.2 * size * at, text, size, bold) for at, text in enumerate(texts)]


def test_lines_become_paragraphs_and_a_short_line_ends_one(tmp_path: Path) -> None:
    page = column(
        72, 700, "The first paragraph runs over two lines", "and ends here.", "The second one follows it directly."
    )

    assert [text for _, text in blocks(read(tmp_path, "a.pdf", set_pdf([page])))] == [
        "The first paragraph runs over two lines and ends here.",
        "The second one follows it directly.",
    ]


def test_a_word_broken_at_a_line_end_is_made_whole_and_a_compound_keeps_its_hyphen(tmp_path: Path) -> None:
    page = column(
        72,
        700,
        "It is well-known that long words are some-",
        "times broken, and that other words are well-",
        "known to keep their hyphen, as in Franco-",
        "German.",
    )

    text = read(tmp_path, "a.pdf", set_pdf([page])).text

    assert "are sometimes broken" in text
    assert "are well-known to keep" in text
    assert "Franco-German" in text


def test_what_runs_along_the_pages_is_kept_once_and_page_numbers_are_not(tmp_path: Path) -> None:
    pages = [
        [
            Shown(72, 760, "Annual report of Example Limited"),
            *column(72, 700, f"Page {word} says something of its own, and says it at length."),
            Shown(300, 30, str(number)),
        ]
        for number, word in enumerate(["one", "two", "three", "four"], start=7)
    ]

    extraction = read(tmp_path, "a.pdf", set_pdf(pages))

    assert extraction.text.count("Example Limited") == 1
    assert not [number for number in ("7", "8", "9", "10") if number in extraction.text]
    assert [block.page for block in extraction.blocks][-3:] == [2, 3, 4]


def test_a_column_of_figures_at_the_foot_of_pages_is_no_page_number(tmp_path: Path) -> None:
    pages = [[*column(72, 700, "Something is said here."), Shown(300, 30, total)] for total in ("512", "77", "1903")]

    text = read(tmp_path, "a.pdf", set_pdf(pages)).text

    assert all(total in text for total in ("512", "77", "1903"))


def test_bookmarks_name_the_headings(tmp_path: Path) -> None:
    page = [
        *column(72, 700, "1 Introduction"),
        *column(72, 670, "What is said first."),
        *column(72, 640, "1.1 Aims of the"),
        *column(72, 628, "whole work"),
        *column(72, 600, "What is said then."),
        *column(72, 570, "2 Method"),
        *column(72, 540, "What is said last."),
    ]
    outline = [(1, "Introduction", 0), (2, "Aims of the whole work", 0), (1, "Method", 0)]

    extraction = read(tmp_path, "a.pdf", set_pdf([page], outline=outline))

    assert blocks(extraction) == [
        (HEADING, "1 Introduction"),
        (PARAGRAPH, "What is said first."),
        (HEADING, "1.1 Aims of the whole work"),
        (PARAGRAPH, "What is said then."),
        (HEADING, "2 Method"),
        (PARAGRAPH, "What is said last."),
    ]
    assert paths(extraction)[3] == ("1 Introduction", "1.1 Aims of the whole work")
    assert paths(extraction)[5] == ("2 Method",)


def test_without_bookmarks_larger_and_bolder_lines_are_headings(tmp_path: Path) -> None:
    prose = ("Here the prose of the document goes on for a while,", "so that it has most of the text, and then ends.")
    page = [
        *column(72, 700, "The large title", size=18),
        *column(72, 660, *prose),
        *column(72, 620, "A bold one", bold=True),
        *column(72, 600, *prose),
    ]

    extraction = read(tmp_path, "a.pdf", set_pdf([page]))

    assert [text for kind, text in blocks(extraction) if kind is HEADING] == ["The large title", "A bold one"]
    assert paths(extraction)[-1] == ("The large title", "A bold one")


def test_columns_drawn_before_the_title_above_them_are_read_after_it(tmp_path: Path) -> None:
    left = column(72, 600, "The left column comes first", "and has two lines.")
    right = column(320, 600, "The right column comes second", "and has two lines as well.")
    title = column(72, 700, "A line over both columns, which is drawn last of all lines on this page")

    text = read(tmp_path, "a.pdf", set_pdf([[*left, *right, *title]])).text

    assert text.index("over both") < text.index("left column") < text.index("right column")


def test_a_line_with_wide_gaps_is_a_row_with_cells(tmp_path: Path) -> None:
    page = [Shown(72, 700, "Oslo"), Shown(300, 700, "717,710"), Shown(72, 688, "Bergen"), Shown(300, 688, "291,940")]

    assert blocks(read(tmp_path, "a.pdf", set_pdf([page]))) == [(ROW, "Oslo | 717,710"), (ROW, "Bergen | 291,940")]


def test_a_password_opens_what_it_locks_and_a_wrong_one_is_told(tmp_path: Path) -> None:
    path = tmp_path / "upload"
    path.write_bytes(locked_pdf([["A secret"]], password="sesame"))

    assert read_pdf(path, ExtractionLimits(), password="sesame").text == "A secret"
    with pytest.raises(Encrypted, match="password is wrong"):
        read_pdf(path, ExtractionLimits(), password="simsim")
    with pytest.raises(Encrypted, match="needs a password"):
        read_pdf(path, ExtractionLimits())
