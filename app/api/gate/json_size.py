"""Limits on the number of values in a JSON body, counted while it arrives.

Parsing JSON holds the interpreter's lock. A body of `[[],[],…` takes a hundred times longer than a text of its size, so
a limit in bytes alone would let one request stop all others for seconds.
"""

from collections.abc import Mapping
from http import HTTPStatus

from fastapi import HTTPException
from starlette.types import Message, Receive

from app.access.routes import BodyKind

MOST_COSTLY = 30_000
"""Objects, arrays, fields and fractions in a JSON body: parsing one costs as much as ten other values."""

MOST_VALUES: Mapping[BodyKind, int] = {
    BodyKind.JSON: 100_000,
    BodyKind.TEXTS: 320_000,
    BodyKind.FILE: 50_000,
    BodyKind.SENT: 50_000,
}
"""Values in a JSON body by kind of route; 300,000 token ids may be embedded together."""


_COSTLY = (b"[", b"{", b":", b".", b"e", b"E")


class JsonCounter:
    """Counts the commas of a JSON text outside its strings, and the marks of values that are costly to parse.

    The text may come in any pieces. A text that is not JSON is counted up to its first error exactly, and no parser
    reads on from there. A text with NUL bytes is UTF-16 or UTF-32, and everything in it is counted.

    Example:
        >>> counter = JsonCounter()
        >>> counter.feed(b'{"a": [1, ')
        >>> counter.feed(b'"[,"]}')
        >>> counter.commas, counter.costly
        (1, 3)
    """

    def __init__(self) -> None:
        self.commas = 0
        self.costly = 0
        self._inside = False  # a string
        self._escaped = False  # the next byte
        self._wide = False

    def feed(self, piece: bytes) -> None:
        """Count the next piece."""
        self._wide = self._wide or b"\0" in piece
        outside = piece if self._wide else self._outside(piece)
        self.commas += outside.count(b",")
        self.costly += sum(map(outside.count, _COSTLY))

    def _outside(self, piece: bytes) -> bytes:
        """What of the piece is in no string."""
        if self._escaped and piece:
            piece, self._escaped = piece[1:], False
        piece = piece.replace(b"\\\\", b"")
        if piece.endswith(b"\\"):
            piece, self._escaped = piece[:-1], True
        parts = piece.replace(b'\\"', b"").split(b'"')
        outside = b" ".join(parts[1 if self._inside else 0 :: 2])
        self._inside ^= len(parts) % 2 == 0
        return outside


def bounded_json(receive: Receive, *, kind: BodyKind) -> Receive:
    """Wrap `receive` to refuse a JSON body with too many values.

    Raises, from the wrapped `receive`, an `HTTPException` of 413, as `bounded` does.
    """
    counter, most = JsonCounter(), MOST_VALUES[kind]
    too_many = f"The JSON has more than {most:,} values, or {MOST_COSTLY:,} fields, objects, arrays and fractions."

    async def bounded_receive() -> Message:
        message = await receive()
        if message["type"] == "http.request":
            counter.feed(message.get("body", b""))
            if counter.costly > MOST_COSTLY or counter.commas > most:
                raise HTTPException(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, too_many)
        return message

    return bounded_receive
