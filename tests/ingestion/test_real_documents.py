"""Real documents, where they are at hand: everything is read, or refused in a sentence."""

import json
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ingestion.child_extractor import ChildExtractor
from ingestion.errors import UnsupportedFormat

DOCUMENTS = Path(__file__).resolve().parents[3] / "shared" / "data" / "documents"

pytestmark = [
    pytest.mark.skipif(not DOCUMENTS.is_dir(), reason="the shared documents do not lie beside this checkout"),
]

# One or two of every kind, small enough for every run, and the least share of known words each must give back.
SAMPLE = {
    "pdf/multi_page.pdf": 0.99,
    "pdf/redp5110_sampled.pdf": 0.95,
    "pdf/right_to_left_03.pdf": 0.93,
    "docx/word_sample.docx": 0.97,
    "docx/docx_lists.docx": 0.97,
    "docx/word_tables.docx": 0.95,
    "pptx/powerpoint_sample.pptx": 0.95,
    "xlsx/xlsx_01.xlsx": 0.93,
    "xlsx/xlsx_06_edge_cases_.xlsx": 0.97,
    "html/html_code_snippets.html": 0.97,
    "html/example_08.html": 0.97,
    "epub/purvis_poetry.epub": 0.95,
    "legacy_and_odf/text_document_01.odt": 0.97,
    "legacy_and_odf/odf_presentation_01.odp": 0.97,
    "legacy_and_odf/odf_table_with_title_01.ods": 0.97,
    "md/nested.md": 0.97,
    "csv/csv-semicolon.csv": 0.97,
}
WORD = re.compile(r"\w+")


@pytest.fixture(scope="module")
def extractor() -> Iterator[ChildExtractor]:
    """The one that the product uses."""
    with ChildExtractor() as child:
        yield child


def manifest() -> list[dict[str, Any]]:
    with (DOCUMENTS / "manifest.jsonl").open() as lines:
        return [json.loads(line) for line in lines]


def recall(known: str, text: str) -> float:
    """Share of the words of `known` that `text` has, each as often as it occurs."""
    words = Counter(WORD.findall(known.lower()))
    return (words & Counter(WORD.findall(text.lower()))).total() / words.total()


def test_documents_give_back_the_words_they_are_known_to_hold(extractor: ChildExtractor) -> None:
    known = {row["file"]: row["known"] for row in manifest() if row.get("known")}

    poor = {}
    for file, least in SAMPLE.items():
        extraction = extractor.extract(DOCUMENTS / file, filename=Path(file).name)
        found = recall((DOCUMENTS / known[file]).read_text(), extraction.text)
        if found < least:
            poor[file] = found

    assert not poor


def test_text_is_read_in_the_encoding_it_was_written_in(extractor: ChildExtractor) -> None:
    for row in manifest():
        if row.get("decodes") and row["file"].endswith((".txt", ".srt")):
            path = DOCUMENTS / row["file"]
            written = path.read_bytes().decode(row["encoding"]).removeprefix("\ufeff")

            read = extractor.extract(path, filename=path.name).text

            assert recall(written, read) == 1, row["file"]


def test_legacy_formats_are_refused_with_advice(extractor: ChildExtractor) -> None:
    for path in sorted((DOCUMENTS / "legacy_and_odf").glob("*.[dxp][olp][cst]")):
        with pytest.raises(UnsupportedFormat, match=r"save it as .* LibreOffice"):
            extractor.extract(path, filename=path.name)
