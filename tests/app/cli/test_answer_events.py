"""app.cli.answer_events: `footnote ask` reads any text in any pieces, and says so where a stream is no whole answer."""

import json
from collections.abc import Iterator

import httpx
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from app.api.event_stream import sse
from app.cli.answer_events import answer_events
from app.client import Client, Refused

PIECES = st.lists(
    st.text(max_size=8)
    | st.sampled_from(
        ["\u2028", "\u2029", "\x85", "\x0b", "\x0c", "\x1c", "\r\n", "\r", "\n\n", "\0", "👩‍👩‍👧", "data: "]
    ),
    max_size=8,
)


def server(stream: bytes, *, step: int | None = None, status: int = 200) -> Client:
    """A client of a server that sends `stream` in pieces of `step` bytes."""

    def pieces() -> Iterator[bytes]:
        for at in range(0, len(stream), step or len(stream) or 1):
            yield stream[at : at + (step or len(stream))]

    handler = httpx.MockTransport(lambda _: httpx.Response(status, content=pieces()))
    return Client(httpx.Client(transport=handler, base_url="http://server"))


@given(texts=PIECES, step=st.integers(1, 40))
@example(texts=["Forty\u2028ships"], step=40)  # was split at U+2028, and read as two broken lines
@example(texts=["next\x85line"], step=40)
def test_every_text_arrives_as_it_was_sent(texts: list[str], step: int) -> None:
    stream = b": still working\n\n".join(
        sse("delta", json.dumps({"text": text}, ensure_ascii=False)) for text in [*texts, "end"]
    )

    found = [*answer_events(server(stream + sse("done", "{}"), step=step), {})]

    assert found == [*(("delta", {"text": text}) for text in [*texts, "end"]), ("done", {})]


@pytest.mark.parametrize(
    ("stream", "sentence"),
    [
        (sse("delta", '{"text": "Forty"}'), "ended before the answer was complete"),
        (b"", "ended before the answer was complete"),
        (sse("done", "{}")[:-1], "ended before the answer was complete"),
        (sse("delta", '{"text": '), "no part of an answer"),
        (sse("delta", "[" * 100_000), "no part of an answer"),
        (sse("delta", '"text"'), "no part of an answer"),
        (b"data: \xff\xfe\n\n", "no part of an answer"),
    ],
)
def test_a_stream_that_is_no_whole_answer_is_refused_in_one_sentence(stream: bytes, sentence: str) -> None:
    with pytest.raises(Refused, match=sentence):
        list(answer_events(server(stream), {}))


def test_a_redirect_or_an_error_is_no_stream() -> None:
    with pytest.raises(Refused, match="answered 302"):
        list(answer_events(server(b"<html>moved", status=302), {}))
    with pytest.raises(Refused, match="No such thing"):
        list(answer_events(server(b'{"detail": "No such thing."}', status=404), {}))


def test_nothing_after_the_last_event_is_read() -> None:
    assert len([*answer_events(server(sse("error", '{"detail": "x"}') + b"data: no JSON\n\n"), {})]) == 1


@pytest.mark.parametrize("body", [b"<html>sign in</html>", b"", b"\xff", b"[" * 100_000])
def test_a_success_without_json_is_refused_and_not_tried_again(body: bytes) -> None:
    with pytest.raises(Refused, match="address of a Footnote server") as caught:
        server(body).call("GET", "/v1/documents")

    assert caught.value.status == 200
