"""generation.server_events: what is decoded follows the standard and does not depend on how the bytes are cut."""

import re
import time
from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from generation.server_events import EventDecoder, EventTooLarge, ServerEvent
from tests.fuzz.event_reference import events_in

STREAMS = st.lists(
    st.sampled_from(
        [b"data:", b"data: ", b"data", b"event: ", b"event:x", b"error: {}", b"id: 1", b"retry: 5", b": note", b"x",
         b"\n", b"\r", b"\r\n", b"\n\n", b" ", b":", b"\xef\xbb\xbf", b"\xe2\x80\xa8", b"\xc2\x85", b"\0", b"\x0b",
         "🙂".encode(), b"\xff"]
    ),
    max_size=40,
).map(b"".join)  # fmt: skip


def decoded(pieces: list[bytes]) -> list[ServerEvent]:
    decoder = EventDecoder()
    return [event for piece in pieces for event in decoder.feed(piece)]


@given(stream=STREAMS, cuts=st.lists(st.integers(0, 120), max_size=8))
@example(stream=b"data: a\r\n\r\ndata: b\r\n\r\n", cuts=[8, 10])
@example(stream=b"data: a\r\rdata: b\r\r", cuts=[8])
@example(stream=b"\xef\xbb\xbfdata: a\n\n", cuts=[1, 2])
def test_events_are_those_of_the_standard_however_the_bytes_are_cut(stream: bytes, cuts: list[int]) -> None:
    at = [0, *sorted(min(cut, len(stream)) for cut in cuts), len(stream)]

    found = decoded([stream[start:stop] for start, stop in pairwise(at)])

    expected = events_in(re.sub(rb"(\A(?:\xef\xbb\xbf)?|[\r\n])error:", rb"\1event:error\ndata:", stream))
    assert [(event.name, event.data.decode(errors="replace")) for event in found] == expected


@pytest.mark.parametrize("endless", [b"x" * 1000, b"data: x\n", b": note\r"])
def test_an_event_without_end_is_not_kept_for_ever(endless: bytes) -> None:
    decoder = EventDecoder(largest=100_000)
    decoder.feed(b"data: begun\n")

    def feed_for_ever() -> None:
        for _ in range(200_000):
            decoder.feed(endless)

    with pytest.raises(EventTooLarge):
        feed_for_ever()


def test_an_event_that_comes_byte_by_byte_takes_linear_time() -> None:
    decoder, started = EventDecoder(), time.process_time()
    for _ in range(500_000):
        decoder.feed(b"x")

    assert time.process_time() - started < 10  # joined anew for each byte it would take minutes
