"""The protocol between server and parser process: length-prefixed JSON, never pickle.

A message is four bytes of length (big-endian) and that many bytes of UTF-8 JSON. The parser process
reads hostile files, so its messages are validated field by field.
"""

import json
import math
import re
import struct
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

from ingestion import errors
from ingestion.types import Block, BlockKind, Extraction, ExtractionLimits, MediaType, PageBoxes, PageRange, PageSpan

HEADER_BYTES = 4
MAX_MESSAGE_BYTES = 1 << 30
_MOST_POINTS = 1 << 31  # far more than any page has
_ADDRESS = re.compile(r"[A-Z]{1,7}[0-9]{1,10}")

_ERRORS: dict[str, type[errors.IngestionError]] = {
    error.code: error
    for error in (
        errors.IngestionError,
        errors.UnsupportedFormat,
        errors.EmptyDocument,
        errors.NoText,
        errors.Encrypted,
        errors.Malformed,
        errors.LimitExceeded,
        errors.NoRoom,
        errors.DiskFailed,
        errors.ParserCrashed,
    )
}


@dataclass(frozen=True, slots=True)
class Request:
    """A request to read a file or, with `spans`, to locate them in a PDF; its repr hides the password."""

    path: Path
    filename: str
    limits: ExtractionLimits
    password: str | None = field(default=None, repr=False)
    spans: tuple[PageSpan, ...] = ()


@dataclass(frozen=True, slots=True)
class Loaded:
    """The parser is in memory and begins to read: the document's clock starts."""


@dataclass(frozen=True, slots=True)
class Scanning:
    """The recognition of scanned page `page` (from 1) `of` all in a PDF begins: the page's clock starts."""

    page: int
    of: int


@dataclass(frozen=True, slots=True)
class Located:
    """The locations of a request's spans."""

    pages: tuple[PageBoxes, ...]


Reply = Loaded | Scanning | Extraction | Located | errors.IngestionError


def framed(message: dict[str, Any]) -> bytes:
    """Frames `message` with its length."""
    body = json.dumps(message, separators=(",", ":")).encode()
    assert len(body) <= MAX_MESSAGE_BYTES, "the cap on text keeps messages short"
    return struct.pack(">L", len(body)) + body


def body_length(header: bytes) -> int:
    """The length that a message's first `HEADER_BYTES` bytes announce.

    Raises:
        ValueError: No message is that long.
    """
    length: int = struct.unpack(">L", header)[0]
    if length > MAX_MESSAGE_BYTES:
        raise ValueError("the message is too long")
    return length


def read_message(stream: BinaryIO) -> dict[str, Any] | None:
    """The next message of a blocking stream, `None` at its end."""
    header = stream.read(HEADER_BYTES)
    if len(header) < HEADER_BYTES:
        return None
    body = stream.read(body_length(header))
    message: dict[str, Any] = json.loads(body)
    return message


def pack_request(request: Request) -> dict[str, Any]:
    """`request` as a message."""
    return {
        "path": str(request.path),
        "filename": request.filename,
        "limits": asdict(request.limits),
        "password": request.password,
        "spans": [(span.number, span.text, span.start, span.end) for span in request.spans],
    }


def unpack_request(message: dict[str, Any]) -> Request:
    """The request that `pack_request` packed."""
    return Request(
        Path(message["path"]),
        message["filename"],
        ExtractionLimits(**message["limits"]),
        message["password"],
        tuple(PageSpan(*span) for span in message["spans"]),
    )


def pack_reply(reply: Reply) -> dict[str, Any]:
    """`reply` as a message; an error as its code and its sentence."""
    match reply:
        case Loaded():
            return {"loaded": True}
        case Scanning():
            return {"scanning": [reply.page, reply.of]}
        case Extraction():
            return {
                "media_type": reply.media_type,
                "title": reply.title,
                "text": reply.text,
                "pages": [(page.number, page.start_char, page.end_char) for page in reply.pages],
                "blocks": [(b.kind, b.start_char, b.end_char, b.page, b.heading_path, b.cells) for b in reply.blocks],
            }
        case Located():
            return {"located": [_packed_boxes(page) for page in reply.pages]}
        case errors.IngestionError():
            return {"code": reply.code, "message": str(reply)}


def unpack_reply(body: bytes) -> Reply:
    """The reply in the body of a message.

    Raises:
        ValueError: The body is no valid reply.
    """
    try:
        message = json.loads(body)
        if "code" in message:
            return _ERRORS[message["code"]](str(message["message"]))
        if "loaded" in message:
            return Loaded()
        if "scanning" in message:
            return _scanning(*message["scanning"])
        if "located" in message:
            return Located(tuple(_page_boxes(*page) for page in message["located"]))
        return Extraction(
            media_type=MediaType(message["media_type"]),
            title=message["title"],
            text=message["text"],
            pages=tuple(PageRange(*page) for page in message["pages"]),
            blocks=tuple(
                Block(BlockKind(kind), start, end, page, tuple(path), _addresses(cells))
                for kind, start, end, page, path, cells in message["blocks"]
            ),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError("the message is no reply") from error


def _addresses(cells: list[object]) -> tuple[str, ...]:
    if not all(isinstance(cell, str) and _ADDRESS.fullmatch(cell) for cell in cells):
        raise ValueError("these are no addresses of cells")
    return tuple(map(str, cells))


def _scanning(page: object, of: object) -> Scanning:
    if type(page) is not int or type(of) is not int or not 1 <= page <= of:  # a bool is an int to isinstance
        raise ValueError("these are no page and number of pages")
    return Scanning(page, of)


def _packed_boxes(page: PageBoxes) -> tuple[object, ...]:
    return page.number, page.width, page.height, page.boxes, page.exact, page.words, page.words_found


def _page_boxes(
    number: int, width: float, height: float, boxes: list[list[float]], exact: object, words: object, found: object
) -> PageBoxes:
    if type(number) is not int or type(exact) is not bool:
        raise ValueError("these are no boxes of a page")
    if type(words) is not int or type(found) is not int or not 0 <= found <= words:
        raise ValueError("these are no words, and no part of them")
    sides = tuple((_points(left), _points(top), _points(right), _points(bottom)) for left, top, right, bottom in boxes)
    return PageBoxes(number, _points(width), _points(height), sides, exact, words, found)


def _points(length: object) -> float:
    if type(length) is int and abs(length) < _MOST_POINTS:
        return float(length)
    if type(length) is float and math.isfinite(length):
        return length
    raise ValueError("this is no length")
