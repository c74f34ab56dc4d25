"""Passages are located on pages in a child process that can be killed."""

import json
from pathlib import Path

import pytest

from ingestion.child_extractor import ChildExtractor
from ingestion.errors import Malformed, ParserCrashed
from ingestion.extraction import LocalExtractor
from ingestion.messages import Located, Request, framed, pack_reply, pack_request, unpack_reply, unpack_request
from ingestion.readers.pdf_boxes import read_boxes
from ingestion.types import ExtractionLimits, PageBoxes, PageSpan
from tests.ingestion.pdf_file import pdf_bytes

SPAN = PageSpan(1, "Some words are here 😀.", 5, 10)


def test_the_child_finds_what_is_found_in_this_process_and_reads_on(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(pdf_bytes([["Some words are here."]]))

    with ChildExtractor() as extractor:
        found = extractor.locate(path, [SPAN])
        text = extractor.extract(path, filename="a.pdf")

    assert found == read_boxes(path, [SPAN])
    assert len(found[0].boxes) == 1
    assert text == LocalExtractor().extract(path, filename="a.pdf")


@pytest.mark.parametrize("content", [b"no PDF at all", b"%PDF-1.7\nbroken"])
def test_a_file_that_is_no_pdf_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "file"
    path.write_bytes(content)

    with ChildExtractor() as extractor, pytest.raises(Malformed):
        extractor.locate(path, [SPAN])


def test_a_child_that_answers_something_else_is_not_believed(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("babble")  # a text: the hostile child takes any request for one to read

    with ChildExtractor(module="tests.ingestion.hostile_locator") as extractor:
        with pytest.raises(ParserCrashed):
            extractor.locate(path, [SPAN])
        with pytest.raises(ParserCrashed):
            extractor.extract(path, filename="a.txt")


def test_spans_and_boxes_arrive_as_they_were_sent(tmp_path: Path) -> None:
    request = Request(tmp_path, "", ExtractionLimits(), None, (SPAN, PageSpan(7, "", 0, 0)))
    located = Located(
        (
            PageBoxes(4, 612.0, 792.5, ((1.0, 2.0, 3.25, 4.0),), exact=False, words=9, words_found=7),
            PageBoxes(5, 1, 2, (), True, 0, 0),
        )
    )

    assert unpack_request(json.loads(framed(pack_request(request))[4:])) == request
    assert unpack_reply(framed(pack_reply(located))[4:]) == located


@pytest.mark.parametrize(
    "page",
    [
        "3", "[]", '[1,2,3,[],true]', '[1,2,3,[],true,1,1,0]', '["1",2,3,[],true,1,1]', '[1,2,3,[],1,1,1]',
        '[1,2,3,[[1,2,3]],true,1,1]', '[1,2,3,[[1,2,3,"4"]],true,1,1]', '[1,NaN,3,[],true,1,1]',
        '[1,2,3,[[1,2,3,Infinity]],true,1,1]', '[1,2,true,[],true,1,1]', '[1,2,3,[[1,2,3,' + "9" * 400 + ']],true,1,1]',
        '[1,2,3,[],true,1,2]', '[1,2,3,[],true,1,-1]', '[1,2,3,[],true,1.5,1]', '[1,2,3,[],true,true,1]',
    ],
)  # fmt: skip
def test_what_are_no_boxes_is_refused(page: str) -> None:
    with pytest.raises(ValueError, match="no reply"):
        unpack_reply(f'{{"located":[{page}]}}'.encode())
