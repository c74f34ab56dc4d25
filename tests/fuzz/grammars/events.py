"""Server-sent events: what our server writes is what the standard reads, and our own readers survive any stream."""

import asyncio
import json
from collections import Counter
from collections.abc import AsyncGenerator
from typing import Any

import httpx
from hypothesis import strategies as st

from app.api.event_stream import EventStream, sse
from app.cli.answer_events import answer_events
from app.client import Client, Refused
from generation.server_events import EventDecoder
from tests.fuzz.event_reference import events_in
from tests.fuzz.target import Case, as_bytes, as_text, cut_up

ODD = ["\n", "\r", "\r\n", "\n\n", "\u2028", "\u2029", "\x85", "\x0b", "\x0c", "\x1c", "\0", "\ufeff", "🙂", "👩‍👩‍👧"]
_text = st.lists(
    st.text(st.characters(exclude_categories=["Cs"]), max_size=6)
    | st.sampled_from([*ODD, "data: ", "event: done", ":", "[DONE]", '"', "\\n"]),
    max_size=8,
).map("".join)
_events = st.lists(st.tuples(st.sampled_from(["delta", "sources", "done", None]), _text), max_size=6)
_lines = [
    b"data: ", b"data", b"data:{}", b"event: delta", b"event: done", b"event:", b"error: {}", b"id: 1", b"retry: 1",
    b":",
    b"\n", b"\r", b"\r\n", b"\n\n", b"\xef\xbb\xbf", b"\xe2\x80\xa8", b"\xc2\x85", b"\xff", b"\0", b"[",
    b'{"text": "a"}',
]  # fmt: skip
_stream = st.lists(st.sampled_from(_lines) | st.binary(max_size=4), max_size=30).map(b"".join)
_cuts = st.lists(st.integers(0, 400), max_size=8)


def _written(events: list[tuple[str | None, str]], json_only: bool, cuts: list[int]) -> Case:
    return {"kind": "written", "events": [[name, text] for name, text in events], "json": json_only, "cuts": cuts}


def _read(stream: bytes, cuts: list[int]) -> Case:
    return {"kind": "read", "stream": as_text(stream), "cuts": cuts}


class EventTarget:
    """Streams of events, written by our server and read by our readers."""

    name = "events"
    cases: st.SearchStrategy[Case] = st.one_of(
        st.builds(_written, _events, st.booleans(), _cuts), st.builds(_read, _stream, _cuts)
    )

    def __init__(self) -> None:
        self.answers: Counter[tuple[str, int]] = Counter()

    def check(self, case: Case) -> None:
        """Write the events and read them, or read any stream."""
        if case["kind"] == "read":
            _check_readers(as_bytes(case["stream"]), case["cuts"])
            return
        texts = [
            (name, json.dumps(text, ensure_ascii=False) if case["json"] else text) for name, text in case["events"]
        ]
        stream = asyncio.run(_sent([sse(name, text) for name, text in texts]))
        # in JSON line ends are escaped; in a raw text CR and CRLF become LF, as the standard has no way to write them
        expected = [(name or "message", text.replace("\r\n", "\n").replace("\r", "\n")) for name, text in texts]
        assert events_in(stream) == expected, "the standard reads other events than were written"
        assert [(name, data.decode()) for name, data in _decoded(stream, case["cuts"])] == expected, "ours reads others"


def _check_readers(stream: bytes, cuts: list[int]) -> None:
    found = _decoded(stream, cuts)
    assert found == _decoded(stream, []), "what is read depends on how the bytes are cut"
    handler = httpx.MockTransport(lambda _: httpx.Response(200, content=iter(cut_up(stream, cuts))))
    with httpx.Client(transport=handler, base_url="http://server") as http:
        names, refusal = list[str](), None
        try:
            names += [name for name, _ in answer_events(Client(http), {})]
        except Refused as error:
            refusal = str(error)
    assert (refusal is not None) == (not names or names[-1] not in {"done", "error"}), f"{names}, {refusal}"


def _decoded(stream: bytes, cuts: list[int]) -> list[tuple[str, bytes]]:
    decoder = EventDecoder()
    return [(event.name, event.data) for piece in cut_up(stream, cuts) for event in decoder.feed(piece)]


async def _sent(events: list[bytes]) -> bytes:
    """What the server's response sends for these events, with a heartbeat in between."""
    sent: list[bytes] = []
    gone = asyncio.Event()

    async def source() -> AsyncGenerator[bytes, None]:
        for event in events:
            if len(sent) < 3:  # wait until a heartbeat was sent
                before = len(sent)
                while len(sent) == before:
                    await asyncio.sleep(0)
            yield event

    async def send(message: Any) -> None:
        if message["type"] == "http.response.body" and message.get("body"):
            sent.append(message["body"])

    async def receive() -> dict[str, str]:
        await gone.wait()
        return {"type": "http.disconnect"}

    response = EventStream(source(), on_close=gone.set, heartbeat=0)
    await response({"type": "http", "asgi": {"spec_version": "2.4"}}, receive, send)
    return b"".join(sent)
