"""ingestion.messages: messages between parent and child are decoded as sent, and malformed ones refused."""

import io
import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ingestion import errors
from ingestion.builder import TextBuilder
from ingestion.messages import (
    MAX_MESSAGE_BYTES,
    Loaded,
    Request,
    Scanning,
    body_length,
    framed,
    pack_reply,
    pack_request,
    read_message,
    unpack_reply,
    unpack_request,
)
from ingestion.types import BlockKind, ExtractionLimits, MediaType
from tests.ingestion.texts import hostile_text


@settings(deadline=None)
@given(filename=st.text(), seconds=st.floats(0.1, 999), pages=st.integers(1, 1 << 40))
def test_a_request_arrives_as_it_was_sent(filename: str, seconds: float, pages: int) -> None:
    request = Request(Path("uploads") / "file", filename, ExtractionLimits(seconds=seconds, pages=pages))

    message = read_message(io.BytesIO(framed(pack_request(request))))

    assert message is not None
    assert unpack_request(message) == request


def test_a_password_arrives_and_does_not_show(tmp_path: Path) -> None:
    request = Request(tmp_path, "a.pdf", ExtractionLimits(), "hunter2")

    assert unpack_request(json.loads(framed(pack_request(request))[4:])).password == "hunter2"
    assert "hunter2" not in repr(request)


@settings(deadline=None)
@given(text=hostile_text, title=st.one_of(st.none(), st.text(alphabet=st.characters(exclude_categories=["Cs"]))))
def test_an_extraction_arrives_as_it_was_sent(text: str, title: str | None) -> None:
    builder = TextBuilder(ExtractionLimits())
    builder.begin_page(1)
    builder.append(BlockKind.HEADING, "Überschrift", level=1)
    builder.append(BlockKind.PARAGRAPH, text)
    extraction = builder.build(MediaType.PDF, title=title)

    assert unpack_reply(framed(pack_reply(extraction))[4:]) == extraction


@pytest.mark.parametrize(
    "kind",
    [
        errors.IngestionError,
        errors.UnsupportedFormat,
        errors.EmptyDocument,
        errors.NoText,
        errors.Encrypted,
        errors.Malformed,
        errors.LimitExceeded,
        errors.ParserCrashed,
    ],
)
def test_an_error_arrives_as_the_same_kind_with_its_sentence(kind: type[errors.IngestionError]) -> None:
    arrived = unpack_reply(framed(pack_reply(kind("A sentence.")))[4:])

    assert type(arrived) is kind
    assert str(arrived) == "A sentence."


def test_every_error_of_ours_has_a_place_in_a_message() -> None:
    for kind in errors.IngestionError.__subclasses__():
        assert isinstance(unpack_reply(json.dumps({"code": kind.code, "message": "m"}).encode()), kind)


def test_that_the_parser_is_loaded_is_a_reply() -> None:
    assert unpack_reply(framed(pack_reply(Loaded()))[4:]) == Loaded()


@settings(deadline=None)
@given(page=st.integers(1, 1 << 40), more=st.integers(0, 1 << 40))
def test_that_a_scanned_page_begins_is_a_reply(page: int, more: int) -> None:
    scanning = Scanning(page, page + more)

    assert unpack_reply(framed(pack_reply(scanning))[4:]) == scanning


@pytest.mark.parametrize(
    "body",
    [
        b"", b"{", b"[]", b"3", b"null", b'"x"', b"{}", b'{"code":"nonsense","message":"m"}',
        b'{"code":["x"],"message":"m"}',
        b'{"media_type":"x"}', b'{"media_type":"text/plain","title":null,"text":"a","pages":[[1]],"blocks":[]}',
        b"\xff",
        b'{"scanning":true}', b'{"scanning":[1]}', b'{"scanning":[0,1]}', b'{"scanning":[2,1]}',
        b'{"scanning":[true,1]}', b'{"scanning":[1,1.5]}', b'{"scanning":[1,"2"]}', b'{"scanning":[1,NaN]}',
        *(
            b'{"media_type":"text/plain","title":null,"text":"a","pages":[],'
            b'"blocks":[["table_row",0,1,null,[],%s]]}' % cells for cells in (b'[1]', b'["27"]', b'["B27 "]', b"null")
        ),
    ],
)  # fmt: skip
def test_what_is_no_reply_is_refused(body: bytes) -> None:
    with pytest.raises(ValueError, match="no reply"):
        unpack_reply(body)


def test_a_message_too_long_is_refused_by_its_length() -> None:
    with pytest.raises(ValueError, match="too long"):
        body_length((MAX_MESSAGE_BYTES + 1).to_bytes(4, "big"))


def test_a_stream_that_ends_has_no_message() -> None:
    assert read_message(io.BytesIO(b"")) is None
    assert read_message(io.BytesIO(b"\0\0")) is None
