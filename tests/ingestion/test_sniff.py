"""ingestion.sniff detects the media type from a file's bytes."""

import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ingestion.errors import EmptyDocument, Encrypted, IngestionError, UnsupportedFormat
from ingestion.sniff import is_archive, sniff
from ingestion.types import MediaType
from tests.ingestion.pdf_file import pdf_bytes
from tests.ingestion.zip_file import ooxml_bytes, zip_bytes

PDF = pdf_bytes([["hello"]])
EPUB = zip_bytes({"mimetype": "application/epub+zip", "META-INF/container.xml": "<container/>"})
STORED_PDF = zip_bytes({"mimetype": PDF, "a.txt": "x"})
"""An archive that begins with a PDF, which is not compressed: its mark is in the first KiB of the archive."""
PNG = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + bytes(200)


def compound_file(stream: str) -> bytes:
    """The start of an OLE file whose directory names one stream ([MS-CFB] §2.2: sector size at 30, directory at 48)."""
    header = bytearray(512)
    header[:8] = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
    struct.pack_into("<H", header, 30, 9)
    struct.pack_into("<L", header, 48, 3)
    return (
        bytes(header) + bytes(3 * 512) + "Root Entry".encode("utf-16-le").ljust(128, b"\0") + stream.encode("utf-16-le")
    )


def odf(kind: str) -> bytes:
    return zip_bytes({"mimetype": f"application/vnd.oasis.opendocument.{kind}"})


def sniffed(folder: Path, data: bytes, filename: str) -> MediaType:
    path = folder / "upload"
    path.write_bytes(data)
    return sniff(path, filename=filename)


@pytest.mark.parametrize(
    ("data", "filename", "media_type"),
    [
        (PDF, "a.pdf", MediaType.PDF),
        (PDF, "no-extension", MediaType.PDF),
        (b"junk before\n" + PDF, "a.pdf", MediaType.PDF),
        (b"if not head.startswith(b'%PDF-'):\n    return\n", "a.py", MediaType.CODE),
        (b"A PDF 1.4 begins with %PDF-1.4 and ends with %%EOF.", "a.txt", MediaType.TEXT),
        (ooxml_bytes("word"), "a.docx", MediaType.DOCX),
        (ooxml_bytes("ppt"), "a.PPTX", MediaType.PPTX),
        (ooxml_bytes("xl"), "a.xlsx", MediaType.XLSX),
        (ooxml_bytes("word"), "", MediaType.DOCX),
        (EPUB, "a.epub", MediaType.EPUB),
        (b"<!doctype html><p>hi", "a.html", MediaType.HTML),
        (b"  <!-- c --><HTML lang=en>", "a.txt", MediaType.HTML),
        (b'<?xml version="1.0"?><html xmlns="x"/>', "a.xhtml", MediaType.HTML),
        ("\ufeff<html>".encode("utf-16"), "a", MediaType.HTML),
        (b"<p>a fragment</p>", "a.htm", MediaType.HTML),
        (b"a < b and no tag", "a.html", MediaType.TEXT),
        (b"# title\n", "a.md", MediaType.MARKDOWN),
        (b"# title\n", "a.txt", MediaType.TEXT),
        (b"a,b\n1,2\n", "a.csv", MediaType.CSV),
        (b"a\tb\n", "a.TSV", MediaType.CSV),
        (b"a,b\n1,2\n", "a.json", MediaType.CODE),
        (b"<html>", "a.xml", MediaType.CODE),
        (b"#!/usr/bin/env python\n", "run", MediaType.CODE),
        (b"#!/usr/bin/env python\n", "run.txt", MediaType.TEXT),
        (odf("text"), "a.odt", MediaType.ODT),
        (odf("spreadsheet"), "a.ods", MediaType.ODS),
        (odf("presentation-template"), "a.otp", MediaType.ODP),
        (rb"{\rtf1\ansi hello}", "a.rtf", MediaType.RTF),
        (b"From: a@b.c\nTo: c@d.e\nSubject: hi\n\nbody", "a", MediaType.EMAIL),
        (b"X-Header: 1\n\nbody", "a.eml", MediaType.EMAIL),
        (b"anything", "a.eml", MediaType.TEXT),
        ("text in UTF-16".encode("utf-16"), "a.txt", MediaType.TEXT),
        ("text without a mark".encode("utf-16-le"), "a.txt", MediaType.TEXT),
        ("日本語".encode("shift_jis"), "a.txt", MediaType.TEXT),
        ("日本語".encode("iso2022_jp"), "a.txt", MediaType.TEXT),
        (b"Subject: a note\n\njust a text", "a.txt", MediaType.TEXT),
    ],
)
def test_the_media_type_is_detected_from_the_bytes(
    tmp_path: Path, data: bytes, filename: str, media_type: MediaType
) -> None:
    assert sniffed(tmp_path, data, filename) is media_type


@pytest.mark.parametrize("piece", ["<!---->", "<!-- c --> ", "<?xml?>", "<!--<?xml?>-->\n"])
def test_many_comments_before_no_html_are_read_in_linear_time(tmp_path: Path, piece: str) -> None:
    """With a pattern that could end a comment at any later `-->`, 25 of them took seconds and 43 weeks."""
    started = time.process_time()

    assert sniffed(tmp_path, (piece * 1_000).encode() + b"x", "a.txt") is MediaType.TEXT
    assert time.process_time() - started < 1


@given(st.lists(st.sampled_from([" ", "\n", "<!-- c -->", "<!---->", "<!--", "-->", "<?xml?>", "<html>", "<p>", "x"])))
def test_html_is_what_follows_comments_white_space_and_a_declaration(pieces: list[str]) -> None:
    text = "".join(pieces) or "x"
    while text.startswith((" ", "\n", "<!--", "<?xml?>")) and (text[:4] != "<!--" or "-->" in text[4:]):
        text = text[1:] if text[0] in " \n" else text.split("-->" if text[:4] == "<!--" else ">", 1)[1]
    with tempfile.TemporaryDirectory() as folder:
        found = sniffed(Path(folder), ("".join(pieces) or "x").encode(), "a.txt")

    assert (found is MediaType.HTML) is text.startswith("<html>")


@pytest.mark.parametrize(
    ("data", "filename", "sentence"),
    [
        (PDF, "a.docx", r"named \.docx but its content is a PDF"),
        (PDF, "a.txt", r"named \.txt but its content is a PDF"),
        (PDF, "a.docx. ", r"named \.docx but"),
        (ooxml_bytes("word"), "a.pdf", r"named \.pdf but its content is a Word document"),
        (ooxml_bytes("word"), "a.xlsx", r"named \.xlsx but its content is a Word document"),
        (b"just text", "a.pdf", r"named \.pdf but its content is plain text"),
        (b"<html>", "a.docx", r"named \.docx but its content is an HTML page"),
        (PNG, "a.pdf", r"named \.pdf but its content looks like an image"),
        (PNG, "a.png", "looks like an image"),
        (bytes(range(256)) * 8, "a.bin", "binary file"),
        (zip_bytes({"a.txt": "x"}), "a.zip", "zip archive"),
        (STORED_PDF, "a.zip", "zip archive"),
        (STORED_PDF, "a.pdf", "zip archive"),
        (compound_file("%PDF-1.4\n1 0 obj\n"), "a.pdf", "legacy Office file"),
        (ooxml_bytes("xl", {"xl/workbook.bin": b"x"}), "a.xlsb", "binary Excel workbook"),
        (odf("graphics"), "a.odg", "OpenDocument file other than"),
        (odf("text"), "a.docx", r"named \.docx but its content is an OpenDocument text"),
        (rb"{\rtf1\ansi hello}", "a.doc", r"named \.doc but its content is a Rich Text document"),
        (
            compound_file("WordDocument"),
            "a.doc",
            r"legacy Word document \(\.doc\); save it as \.docx, or install LibreOffice",
        ),
        (compound_file("Workbook"), "a.xls", "legacy Excel workbook"),
        (compound_file("PowerPoint Document"), "a.ppt", "legacy PowerPoint presentation"),
        (compound_file("__substg1.0_0037001F"), "a.msg", "Outlook message"),
        (compound_file("Whatever"), "a.doc", "legacy Office file"),
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "a.doc", "legacy Office file"),
        (b"%!PS-Adobe-3.0\n", "a.ps", "PostScript"),
    ],
)
def test_an_unsupported_format_is_refused_with_its_name(
    tmp_path: Path, data: bytes, filename: str, sentence: str
) -> None:
    with pytest.raises(UnsupportedFormat, match=sentence):
        sniffed(tmp_path, data, filename)


def test_an_empty_file_is_empty(tmp_path: Path) -> None:
    with pytest.raises(EmptyDocument):
        sniffed(tmp_path, b"", "a.pdf")


def test_an_office_document_behind_a_password_is_encrypted(tmp_path: Path) -> None:
    with pytest.raises(Encrypted, match="password"):
        sniffed(tmp_path, compound_file("EncryptedPackage"), "a.docx")


def test_a_password_lets_its_document_in_by_the_name(tmp_path: Path) -> None:
    path = tmp_path / "upload"
    path.write_bytes(compound_file("EncryptedPackage"))

    assert sniff(path, filename="a.xlsx", with_password=True) is MediaType.XLSX
    with pytest.raises(UnsupportedFormat, match="must end in"):
        sniff(path, filename="a", with_password=True)


def test_legacy_documents_are_let_in_where_libreoffice_is(tmp_path: Path) -> None:
    path = tmp_path / "upload"
    for stream, name, media_type in (
        ("WordDocument", "a.doc", MediaType.DOC),
        ("Workbook", "a.xls", MediaType.XLS),
        ("PowerPoint Document", "", MediaType.PPT),
    ):
        path.write_bytes(compound_file(stream))

        assert sniff(path, filename=name, with_office=True) is media_type


def test_an_archive_is_a_zip_that_is_no_document(tmp_path: Path) -> None:
    path = tmp_path / "upload"
    for data, expected in (
        (zip_bytes({"a.txt": "x"}), True),
        (STORED_PDF, True),
        (ooxml_bytes("word"), False),
        (EPUB, False),
        (odf("text"), False),
        (PDF, False),
    ):
        path.write_bytes(data)

        assert is_archive(path) is expected


MAGICS = st.sampled_from(
    [b"", b"%PDF-", b"PK\x03\x04", b"PK\x05\x06", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", b"\xff\xfe", b"<html"]
)


@settings(
    deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)  # the file is written anew each time
@given(magic=MAGICS, rest=st.binary(max_size=300), filename=st.text(max_size=20))
def test_any_bytes_under_any_name_are_a_format_or_an_error_of_ours(
    tmp_path: Path, magic: bytes, rest: bytes, filename: str
) -> None:
    said: MediaType | str
    try:
        said = sniffed(tmp_path, magic + rest, filename)
    except IngestionError as error:
        said = str(error)

    assert said in list(MediaType) or said.endswith(".")


def test_sniffing_loads_no_parser() -> None:
    code = "import sys, ingestion.sniff; print(*sorted({name.split('.')[0] for name in sys.modules}))"

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert not {"docling", "torch", "pypdfium2", "lxml", "bs4", "transformers"} & set(done.stdout.split())
