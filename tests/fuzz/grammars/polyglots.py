"""Files that are several formats at once, or have another's name: the bytes decide, and a contradiction is refused."""

import io
import tempfile
import zipfile
from collections import Counter
from pathlib import Path

from hypothesis import strategies as st

from ingestion.errors import IngestionError
from ingestion.formats import FORMATS, Family
from ingestion.sniff import is_archive, sniff
from ingestion.types import MediaType
from tests.fuzz.grammars.damaged_files import small_files
from tests.fuzz.grammars.readers import packed, unpacked
from tests.fuzz.target import Case
from tests.ingestion.zip_file import zip_bytes

_PNG = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\1\0\0\0\1\x08\2\0\0\0"
_GIF = b"GIF89a\1\0\1\0\x80\0\0\xff\xff\xff\0\0\0!\xf9\4"
_GIF_IN_LETTERS = b"GIF89a/*"  # a width and height that are letters: the classic beginning of a script in an image
_PAGE = b"<!doctype html><html><body><script>alert(1)</script><p>Words</p></body></html>"
_OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600)
_MARKS = [
    b"", b"%PDF-1.4\n", b"PK\x03\x04", b"PK\x05\x06", b"{\\rtf1", b"<html>", b"<!--", b"-->", b"<?xml?>", b"%!PS",
    b"MZ\x90\0",
    b"\xff\xfe", b"\xfe\xff", b"\xef\xbb\xbf", b"From: a@b.test\nTo: c\nSubject: d\n\n", b"#!/bin/sh\n", b"\x7fELF",
    b"RIFF",
    b" " * 1019, b"\0", b"\n", b"words ", _PNG, _GIF, _GIF_IN_LETTERS, _PAGE, _OLE,
]  # fmt: skip
_NAMES = [
    *sorted({f"a.{extension}" for row in FORMATS.values() for extension in row.extensions[:2]}),
    "a", "a.zip", "a.gif", "a.png", "a.exe", "a.doc.txt", "a.PDF", "a.html. ", ".html", "a.docx/../b.txt", "",
]  # fmt: skip


def _whole() -> list[bytes]:
    files = [data for name, data in small_files().items() if name != "locked.pdf"]
    return [*files, zip_bytes({"a.txt": "Words"}), _stored(files[0])]


def _stored(pdf: bytes) -> bytes:
    """An archive whose first member is a PDF that is not compressed: the PDF's mark is in the first KiB."""
    data = zip_bytes({"mimetype": pdf, "a.txt": "Words"})
    assert b"%PDF-" in data[:1024], "it is stored as it is"
    return data


class PolyglotTarget:
    """Files that begin as one format and go on as another, under any name."""

    name = "polyglots"

    def __init__(self) -> None:
        self.answers: Counter[tuple[str, int]] = Counter()
        pieces = st.sampled_from(_MARKS) | st.sampled_from(_whole()) | st.binary(max_size=30)
        self.cases: st.SearchStrategy[Case] = st.builds(
            packed, st.sampled_from(_NAMES), st.lists(pieces, min_size=1, max_size=4).map(b"".join)
        )

    def check(self, case: Case) -> None:
        """Sniff the file under its name and under none."""
        data, name = unpacked(case), case["name"]
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "upload"
            path.write_bytes(data)
            named, unnamed = _sniffed(path, name), _sniffed(path, "")
            archive = _is_archive(path)
        textual = {row.media_type for row in FORMATS.values() if row.family is Family.TEXT}
        if isinstance(named, MediaType):
            claimed = _claimed(name)
            assert claimed in {None, named} or {claimed, named} <= textual, f"{name} is taken as {named}"
            assert named == unnamed or {named, unnamed} <= textual, f"{named} by the name {name}, {unnamed} without one"
            assert not archive, f"{named} is an archive too"
        if b"%PDF-" in data[:1024] and b"\n1 0 obj\n" in data[:8192] and not data.startswith((b"PK", _OLE[:8])):
            assert unnamed is MediaType.PDF, f"a PDF begins in the first KiB, and it is {unnamed}"
        if b" obj" not in data and not data.startswith(b"%PDF-"):
            assert unnamed is not MediaType.PDF, "a file that mentions a PDF's mark is taken as a PDF"
        if data.startswith((_PNG, _GIF)) and unnamed is not MediaType.PDF:
            assert not isinstance(unnamed, MediaType), f"an image is taken as {unnamed}"
        if data.startswith(b"PK\x03\x04") and zipfile.is_zipfile(io.BytesIO(data)):
            assert unnamed is not MediaType.PDF, "a zip file is taken as the PDF in it"
        if data.startswith(_OLE[:8]):
            assert unnamed is not MediaType.PDF, "an OLE compound file is taken as the PDF in it"


def _claimed(name: str) -> MediaType | None:
    """The format that the last extension of a name claims."""
    extension = Path(name.lower().rstrip(". ")).suffix.removeprefix(".")
    return next((row.media_type for row in FORMATS.values() if extension and extension in row.extensions), None)


def _sniffed(path: Path, name: str) -> MediaType | str:
    try:
        return sniff(path, filename=name)
    except IngestionError as error:
        sentence = str(error)
    assert sentence.endswith("."), f"no sentence: {sentence}"
    return sentence


def _is_archive(path: Path) -> bool:
    try:
        return is_archive(path)
    except IngestionError:
        return False
