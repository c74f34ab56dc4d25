"""ingestion.extraction turns any parser result into an extraction or a plain error."""

import random
from pathlib import Path

import pytest

from ingestion.errors import IngestionError
from ingestion.extraction import LocalExtractor
from ingestion.types import Extraction
from tests.ingestion.epub_file import book
from tests.ingestion.office_files import docx_bytes, pptx_bytes, xlsx_bytes
from tests.ingestion.pdf_file import pdf_bytes

WHOLE = {
    "a.pdf": pdf_bytes([["One", "two"], ["three"]]),
    "a.docx": docx_bytes(),
    "a.pptx": pptx_bytes(),
    "a.xlsx": xlsx_bytes(),
    "a.epub": book(),
}


@pytest.mark.parametrize("name", WHOLE)
def test_a_damaged_file_ends_in_text_or_in_a_sentence_without_a_path(tmp_path: Path, name: str) -> None:
    chance = random.Random(name)
    path = tmp_path / "secret-place"
    for _ in range(12):
        data = bytearray(WHOLE[name])
        for _ in range(chance.randint(1, 20)):
            data[chance.randrange(len(data))] = chance.randrange(256)
        path.write_bytes(data[: chance.choice([len(data), chance.randrange(1, len(data))])])

        outcome: Extraction | IngestionError
        try:
            outcome = LocalExtractor().extract(path, filename=name)
        except IngestionError as error:
            outcome = error

        if isinstance(outcome, Extraction):
            assert outcome.text.strip()
        else:
            assert str(outcome).endswith(".")
            assert "secret-place" not in str(outcome)
