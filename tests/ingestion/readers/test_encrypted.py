"""ingestion.readers.office: a document behind a password is read with it, and with nothing else."""

import io
from pathlib import Path

import pytest
from msoffcrypto.format.ooxml import OOXMLFile

from ingestion.errors import Encrypted, UnsupportedFormat
from ingestion.extraction import LocalExtractor
from ingestion.types import Extraction
from tests.ingestion.office_files import docx_bytes, xlsx_bytes


def sealed(data: bytes, password: str) -> bytes:
    """An OOXML document under agile encryption ([MS-OFFCRYPTO] §2.3.4.10)."""
    out = io.BytesIO()
    OOXMLFile(io.BytesIO(data)).encrypt(password, out)
    return out.getvalue()


def read(folder: Path, data: bytes, *, filename: str = "a.docx", password: str | None = None) -> Extraction:
    path = folder / "upload"
    path.write_bytes(data)
    return LocalExtractor().extract(path, filename=filename, password=password)


def test_the_password_opens_the_document(tmp_path: Path) -> None:
    assert read(tmp_path, sealed(docx_bytes(), "hunter2"), password="hunter2") == read(tmp_path, docx_bytes())


def test_a_wrong_password_or_none_leaves_it_closed(tmp_path: Path) -> None:
    data = sealed(docx_bytes(), "hunter2")

    with pytest.raises(Encrypted, match="upload it with the password"):
        read(tmp_path, data)
    for wrong in ("hunter3", ""):
        with pytest.raises(Encrypted, match="The password is wrong") as caught:
            read(tmp_path, data, password=wrong)
        assert not wrong or wrong not in str(caught.value)
        assert caught.value.__cause__ is None


def test_what_lies_behind_the_password_must_be_what_the_name_says(tmp_path: Path) -> None:
    with pytest.raises(UnsupportedFormat, match=r"named \.docx but its content is an Excel workbook"):
        read(tmp_path, sealed(xlsx_bytes(), "hunter2"), password="hunter2")


def test_a_password_that_is_not_needed_is_ignored(tmp_path: Path) -> None:
    assert read(tmp_path, docx_bytes(), password="hunter2") == read(tmp_path, docx_bytes())
    assert read(tmp_path, b"words", filename="a.txt", password="hunter2").text == "words"
