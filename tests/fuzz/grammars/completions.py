"""Streams of a generation server, whole and broken, over a real connection: chunks come of them or a named failure."""

import asyncio
import json
import math
from collections import Counter
from contextlib import suppress
from typing import Any

from hypothesis import strategies as st

from generation.remote_config import RemoteConfig
from generation.remote_protocol import StreamChunk
from generation.remote_server import CompletionServer, ServerFailed
from tests.fuzz.target import Case, as_bytes, as_text, cut_up

_TIMEOUT_S = 60
_LARGEST_COUNT = 2**31 - 1

_text = st.text(max_size=6) | st.sampled_from(["\n", "\r", "\u2028", "\x85", "\0", "🙂", "\ud83d", "[DONE]", "data: x"])
_values: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3) | st.just(10**40),
    lambda inner: (
        st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(["id", "logprob", "a"]), inner, max_size=2)
    ),
    max_leaves=4,
)
_logprobs = st.fixed_dictionaries(
    {},
    optional={
        "content": st.lists(
            st.fixed_dictionaries({"id": st.just(4) | _values, "logprob": st.just(-0.5) | _values}) | _values,
            max_size=2,
        ),
        "tokens": st.lists(st.sampled_from(["token_id:4", "a", "token_id:x", "token_id:²"]) | _values, max_size=2),
        "token_logprobs": st.lists(st.just(-0.5) | _values, max_size=2),
        "top_logprobs": st.lists(st.just({"token_id:4": -1.0}) | _values, max_size=2) | _values,
    },
)
_near_chunks = st.fixed_dictionaries(
    {},
    optional={
        "choices": st.lists(
            st.fixed_dictionaries(
                {},
                optional={
                    "text": _text | _values,
                    "token_ids": st.lists(st.integers(0, 99), max_size=3) | _values,
                    "finish_reason": st.sampled_from([None, "stop", "length", "abort", ""]) | _values,
                    "logprobs": _logprobs | _values,
                },
            ) | _values,
            max_size=2,
        ) | _values,
        "usage": st.fixed_dictionaries(
            {}, optional=dict.fromkeys(["prompt_tokens", "completion_tokens"], st.integers(-1, 9) | _values)
        ) | _values,
        "error": _values,
        "object": st.sampled_from(["error", "chunk"]),
    },
)  # fmt: skip
_near = st.lists(
    st.one_of(
        _near_chunks.map(lambda chunk: b"data: " + json.dumps(chunk).encode() + b"\n\n"),
        st.sampled_from(
            [b"data: [DONE]\n\n", b"data: \n\n", b": note\n\n", b"error: {}\n\n", b"\r", b"data: {", b"}\n\n"]
        ),
        st.binary(max_size=6),
    ),
    max_size=6,
).map(b"".join)
_cuts = st.lists(st.integers(0, 400), max_size=6)
_ENDINGS = ["end", "abort", "no last chunk", "wrong chunk size"]


def _whole(texts: list[str], end: bytes, cuts: list[int]) -> Case:
    """A stream that is right, its lines ended by `end`."""
    chunks: list[Any] = [{"choices": [{"text": text, "finish_reason": None}]} for text in texts]
    chunks += [{"choices": [{"text": "", "finish_reason": "stop"}]}, {"choices": [], "usage": {"completion_tokens": 1}}]
    lines = [json.dumps(chunk).encode() for chunk in chunks] + [b"[DONE]"]
    stream = b"".join(b"data: " + line + end + end for line in lines)
    return {"stream": as_text(stream), "cuts": cuts, "ending": "end", "texts": texts}


def _broken(stream: bytes, cuts: list[int], ending: str) -> Case:
    return {"stream": as_text(stream), "cuts": cuts, "ending": ending, "texts": None}


class CompletionTarget:
    """Streams read by the client of a generation server."""

    name = "completions"
    cases: st.SearchStrategy[Case] = st.one_of(
        st.builds(_whole, st.lists(_text, max_size=6), st.sampled_from([b"\n", b"\r\n", b"\r"]), _cuts),
        st.builds(_broken, _near, _cuts, st.sampled_from(_ENDINGS)),
        st.builds(_broken, _near, _cuts, st.sampled_from(_ENDINGS)),
    )

    def __init__(self) -> None:
        self.answers: Counter[tuple[str, int]] = Counter()

    def check(self, case: Case) -> None:
        """Read the stream to its end or failure."""
        chunks, failure = asyncio.run(asyncio.wait_for(_read(case), _TIMEOUT_S))
        if case["texts"] is not None:
            assert failure is None, f"a whole stream failed: {failure}"
            expected = "".join(_well_formed(text) for text in case["texts"])
            assert "".join(chunk.text for chunk in chunks) == expected, "another text was read"
        for chunk in chunks:
            chunk.text.encode()
            for entry in chunk.logprobs:
                assert all(math.isfinite(value) for value in (entry.logprob, *(value for _, value in entry.top))), entry
            if chunk.usage is not None:
                assert 0 <= chunk.usage.completion_tokens <= _LARGEST_COUNT, chunk.usage


def _well_formed(text: str) -> str:
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


async def _read(case: Case) -> tuple[list[StreamChunk], str | None]:
    """The chunks that came, and the failure in words."""
    handled = asyncio.Event()

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await _answer(case, reader, writer)
        finally:
            writer.close()
            with suppress(ConnectionError):
                await writer.wait_closed()
            handled.set()

    listening = await asyncio.start_server(answer, "127.0.0.1", 0)
    port = listening.sockets[0].getsockname()[1]
    client = CompletionServer(RemoteConfig(base_url=f"http://127.0.0.1:{port}/v1", model="m", read_timeout_s=30))
    chunks, failure = list[StreamChunk](), None
    try:
        async with client.complete({"model": "m"}) as found:
            async for chunk in found:
                chunks.append(chunk)
    except ServerFailed as error:
        failure = str(error)
    await client.close()
    await handled.wait()
    listening.close()
    return chunks, failure


async def _answer(case: Case, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """One answer in chunked transfer encoding; it ends well, or is aborted, or breaks the encoding."""
    await reader.readuntil(b"\r\n\r\n")
    stream = as_bytes(case["stream"])
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n")
    with suppress(ConnectionError):
        for piece in filter(None, cut_up(stream, case["cuts"])):
            writer.write(b"%x\r\n%s\r\n" % (len(piece), piece))
            await writer.drain()
        match case["ending"]:
            case "end":
                writer.write(b"0\r\n\r\n")
            case "abort":
                writer.transport.abort()
            case "wrong chunk size":
                writer.write(b"zz\r\n")
        await writer.drain()
