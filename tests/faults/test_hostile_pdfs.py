"""PDFs made to harm (FAULTS.md D3 to D5): each ends as text or as a sentence, and the next file is read as ever."""

import zlib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ingestion.child_extractor import ChildExtractor
from ingestion.errors import Encrypted, IngestionError, LimitExceeded, NoText
from ingestion.types import Extraction, ExtractionLimits
from tests.ingestion.pdf_file import pdf_bytes, raw_pdf
from tests.ingestion.readers.test_pdf import encrypted_pdf

LIMITS = ExtractionLimits(seconds=8, memory_bytes=1 << 30, text_chars=20_000, pages=1_000)
PAGE = (
    b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents 4 0 R /Resources << /Font << /F1 5 0 R >> %s >> >>"
)
FONT = b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>"
SHOWN = b"BT /F1 12 Tf 72 700 Td (seen) Tj ET"

Outcome = Extraction | IngestionError


@pytest.fixture(scope="module")
def extractor() -> Iterator[ChildExtractor]:
    """The one that the product uses."""
    with ChildExtractor(LIMITS) as child:
        yield child


@pytest.fixture
def outcome(extractor: ChildExtractor, tmp_path: Path) -> Iterator[Callable[[bytes], Outcome]]:
    """Reads bytes as a PDF; afterwards the same extractor must read a plain one."""

    def read(data: bytes) -> Outcome:
        path = tmp_path / "upload"
        path.write_bytes(data)
        try:
            return extractor.extract(path, filename="a.pdf")
        except IngestionError as error:
            return error

    yield read
    after = read(pdf_bytes([["The next document"]]))
    assert isinstance(after, Extraction)
    assert after.text == "The next document"


def one_page(
    content: bytes, *, filters: bytes = b"", catalog: bytes = b"", page: bytes = b"", more: tuple[bytes, ...] = ()
) -> bytes:
    """A page that shows `content`, with objects from number 6 on behind it."""
    return raw_pdf(
        [
            b"<< /Type /Catalog /Pages 2 0 R %s >>" % catalog,
            b"<< /Type /Pages /Count 1 /Kids [3 0 R] >>",
            PAGE % page,
            b"<< /Length %d %s >>\nstream\n%s\nendstream" % (len(content), filters, content),
            FONT,
            *more,
        ]
    )


def stream(content: bytes, entries: bytes = b"") -> bytes:
    return b"<< /Length %d %s >>\nstream\n%s\nendstream" % (len(content), entries, content)


def nested_flate() -> bytes:
    content = SHOWN + b" " * (32 << 20)
    depth = 4
    for _ in range(depth):
        content = zlib.compress(content, 9)
    return one_page(content, filters=b"/Filter [%s]" % (b"/FlateDecode " * depth))


def lzw() -> bytes:
    # 9-bit codes: clear table, then the code that refers to itself, over and over.
    return one_page(b"\x80\x0b\x60\x50" + b"\xff" * 2_000_000, filters=b"/Filter /LZWDecode")


def xmp_entities() -> bytes:
    lines = b"".join(b'<!ENTITY l%d "%s">' % (n, b"&l%d;" % (n - 1) * 10) for n in range(1, 12))
    xmp = b'<?xml version="1.0"?><!DOCTYPE x [<!ENTITY l0 "ha">%s]><x>&l11;</x>' % lines
    return one_page(SHOWN, catalog=b"/Metadata 6 0 R", more=(stream(xmp, b"/Type /Metadata /Subtype /XML"),))


def self_drawing() -> bytes:
    form = stream(b"/X1 Do /X1 Do " + SHOWN, b"/Type /XObject /Subtype /Form /BBox [0 0 612 792] "
                  b"/Resources << /Font << /F1 5 0 R >> /XObject << /X1 6 0 R >> >>")  # fmt: skip
    return one_page(b"/X1 Do", page=b"/XObject << /X1 6 0 R >>", more=(form,))


def circular_prev() -> bytes:
    data = one_page(SHOWN)
    at = data.rindex(b"xref\n0")
    return data.replace(b"trailer << ", b"trailer << /Prev %d " % at)


def huge_size() -> bytes:
    return one_page(SHOWN).replace(b"/Size 6", b"/Size 2147483647")


def deep_outline() -> bytes:
    depth = 20_000
    marks = [
        b"<< /Title (m) /Parent %d 0 R /First %d 0 R /Last %d 0 R /Count 1 /Dest [3 0 R /Fit] >>"
        % (n - 1, n + 1, n + 1)
        for n in range(7, 7 + depth)
    ]
    root = b"<< /Type /Outlines /First 7 0 R /Last 7 0 R >>"
    last = b"<< /Title (m) /Parent %d 0 R /Next 7 0 R >>" % (6 + depth)  # and round again
    return one_page(SHOWN, catalog=b"/Outlines 6 0 R", more=(root, *marks, last))


def inline_image() -> bytes:
    return one_page(SHOWN + b" BI /W 100000 /H 100000 /BPC 8 /CS /RGB ID " + b"\x00" * 100_000)


HOSTILE = {
    "nested Flate": nested_flate,
    "LZW": lzw,
    "XMP entities": xmp_entities,
    "a form that draws itself": self_drawing,
    "circular Prev": circular_prev,
    "huge Size": huge_size,
    "deep and circular outline": deep_outline,
    "inline image without end": inline_image,
}


@pytest.mark.parametrize("build", HOSTILE.values(), ids=HOSTILE)
def test_d3_a_pdf_built_to_harm_ends_as_text_or_a_sentence(
    build: Callable[[], bytes], outcome: Callable[[bytes], Outcome]
) -> None:
    found = outcome(build())

    if isinstance(found, Extraction):
        assert "seen" in found.text
    else:
        assert found.code in {"no-text", "malformed", "parser-limit", "parser-crashed"}
        assert str(found).endswith(".")


def test_d4_a_hundred_thousand_pages_are_refused_by_the_cap_on_pages(outcome: Callable[[bytes], Outcome]) -> None:
    kids = b"3 0 R " * 100_000
    data = raw_pdf(
        [
            b"<< /Type /Catalog /Pages 2 0 R >>",
            b"<< /Type /Pages /Count 100000 /Kids [%s] >>" % kids,
            PAGE % b"",
            stream(SHOWN),
            FONT,
        ]
    )

    found = outcome(data)

    assert isinstance(found, LimitExceeded)
    assert "1,000 pages" in str(found)


def test_d4_a_page_of_very_many_glyphs_is_refused_by_the_cap_on_characters(
    outcome: Callable[[bytes], Outcome],
) -> None:
    glyphs = b"BT /F1 1 Tf 1 TL 10 780 Td " + b"(glyphs and glyphs) Tj T* " * 2_000 + b"ET"

    found = outcome(one_page(zlib.compress(glyphs), filters=b"/Filter /FlateDecode"))

    assert isinstance(found, LimitExceeded)
    assert "20,000 characters" in str(found)


def test_d5_a_pdf_behind_a_password_is_encrypted(outcome: Callable[[bytes], Outcome]) -> None:
    assert isinstance(outcome(encrypted_pdf()), Encrypted)


@pytest.mark.parametrize("pages", [[], [[]]], ids=["no pages", "a blank page"])
def test_d5_a_pdf_without_anything_to_read_has_no_text(
    pages: list[list[str]], outcome: Callable[[bytes], Outcome]
) -> None:
    assert isinstance(outcome(pdf_bytes(pages)), NoText)
