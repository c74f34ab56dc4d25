"""ingestion.readers.pdf: text by page."""

from pathlib import Path

import pytest

from ingestion.errors import Encrypted, LimitExceeded, Malformed, NoText
from ingestion.types import ExtractionLimits, MediaType
from tests.ingestion.pdf_file import pdf_bytes
from tests.ingestion.readers.reading import blocks, read


def encrypted_pdf() -> bytes:
    """Behind the standard security handler (ISO 32000-1 §7.6.3), with hashes that no password has."""
    handler = b"/Encrypt << /Filter /Standard /V 1 /R 2 /O <%s> /U <%s> /P -4 >> " % (b"ab" * 32, b"cd" * 32)
    return pdf_bytes([["secret"]]).replace(b"trailer << ", b"trailer << " + handler + b"/ID [<00> <00>] ")


def test_every_page_is_kept_with_its_number(tmp_path: Path) -> None:
    extraction = read(tmp_path, "a.pdf", pdf_bytes([["One", "more"], [], ["Three (3)"]], title="A title"))

    shown = [(page.number, extraction.text[page.start_char : page.end_char]) for page in extraction.pages]
    assert shown == [(1, "One\nmore"), (2, ""), (3, "Three (3)")]
    assert extraction.text == "One\nmore\n\nThree (3)"
    assert [(block.page, text) for block, (_, text) in zip(extraction.blocks, blocks(extraction), strict=True)] == [
        (1, "One\nmore"),
        (3, "Three (3)"),
    ]
    assert extraction.title == "A title"
    assert extraction.media_type is MediaType.PDF


@pytest.mark.parametrize("pages", [[[]], [[], []]])
def test_a_pdf_without_text_says_that_it_may_be_a_scan(tmp_path: Path, pages: list[list[str]]) -> None:
    with pytest.raises(NoText, match="scan"):
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
