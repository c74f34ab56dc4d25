"""Decodes server-sent events from bytes that arrive in any pieces (WHATWG HTML, section 9.2.6)."""

import re
from dataclasses import dataclass

_LARGEST_EVENT = 1 << 20  # bytes; a token's worth of text, ids and log probabilities is a few kilobytes
_LINE_END = re.compile(rb"\r\n|\r|\n")
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class EventTooLarge(Exception):
    """An event has more bytes than the decoder keeps."""


@dataclass(frozen=True, slots=True)
class ServerEvent:
    """One event. `data` are the bytes of its data lines, joined by line feeds; `name` is `message` by default."""

    name: str
    data: bytes


class EventDecoder:
    r"""Decodes a stream of events; what it returns does not depend on how the bytes are cut.

    Lines end at CR, LF or CRLF and are split before they are decoded: text may contain U+2028, at which
    `str.splitlines` would split. A field `error`, which older builds of llama.cpp send, is an event of that name.

    >>> decoder = EventDecoder()
    >>> decoder.feed(b"event: delta\ndata: 1\n") + decoder.feed(b"\n")
    [ServerEvent(name='delta', data=b'1')]
    """

    def __init__(self, *, largest: int = _LARGEST_EVENT) -> None:
        """`largest` is the most bytes of an event, its lines and ends together."""
        self._largest = largest
        self._rest: list[bytes] = []
        self._rest_bytes = 0
        self._begun = False
        self._skip_line_feed = False  # the bytes until now ended with CR; LF would be the rest of that line end
        self._name = b""
        self._data: list[bytes] = []
        self._event_bytes = 0

    def feed(self, received: bytes) -> list[ServerEvent]:
        """The events that are complete now.

        Raises:
            EventTooLarge: An event has more than `largest` bytes.
        """
        if self._skip_line_feed and received:
            received = received.removeprefix(b"\n")
            self._skip_line_feed = False
        events = []
        *lines, rest = _LINE_END.split(received)
        for line in lines:
            whole = b"".join([*self._rest, line])
            self._rest, self._rest_bytes = [], 0
            self._event_bytes += len(whole) + 1
            self._limit()
            if (event := self._take(whole)) is not None:
                events.append(event)
        self._skip_line_feed = received.endswith(b"\r")
        self._rest.append(rest)
        self._rest_bytes += len(rest)
        self._limit()
        return events

    def _limit(self) -> None:
        if self._event_bytes + self._rest_bytes > self._largest:
            raise EventTooLarge

    def _take(self, line: bytes) -> ServerEvent | None:
        """Process one line without its end; an empty one completes an event that has data."""
        if not self._begun:
            line, self._begun = line.removeprefix(_BYTE_ORDER_MARK), True
        if not line:
            return self._complete()
        field, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if field == b"data":
            self._data.append(value)
        elif field == b"event":
            self._name = value
        elif field == b"error":
            self._name = field
            self._data.append(value)
        return None

    def _complete(self) -> ServerEvent | None:
        name, data = self._name, self._data
        self._name, self._data, self._event_bytes = b"", [], 0
        return ServerEvent(name.decode(errors="replace") or "message", b"\n".join(data)) if data else None
