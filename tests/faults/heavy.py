"""The heaviest requests a stranger or a member can think of, each near the limit of its route or beyond it."""

import json
from collections.abc import Callable
from dataclasses import dataclass

_BOUNDARY = "footnote"


@dataclass(frozen=True, slots=True)
class Heavy:
    """A request; `signed` says whether a key is sent, `kind` is its Content-Type.

    With `read_later` the server goes on working after its answer.
    """

    name: str
    path: str
    body: Callable[[], bytes]
    signed: bool = True
    method: str = "POST"
    kind: str = "application/json"
    read_later: bool = False

    def __str__(self) -> str:
        return self.name


def _json(value: object) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()


def _of(count: int, item: str, *, before: str, after: str) -> bytes:
    """A JSON text that is not built as an object first."""
    return (before + ",".join([item] * count) + after).encode()


def _unknown_fields(count: int) -> bytes:
    return ("{" + ",".join(f'"{number:x}":1' for number in range(count)) + "}").encode()


def _chat(text: str) -> bytes:
    said = [{"role": "user", "content": text}, {"role": "assistant", "content": text}]
    return _json({"model": "footnote", "messages": [*said, {"role": "user", "content": "When did it open?"}]})


def _form(filename: str, content: bytes) -> bytes:
    head = f'--{_BOUNDARY}\r\nContent-Disposition: form-data; name="file"; filename="{filename}"\r\n\r\n'
    return head.encode() + content + f"\r\n--{_BOUNDARY}--\r\n".encode()


def _parts(count: int) -> bytes:
    part = f'--{_BOUNDARY}\r\nContent-Disposition: form-data; name="a"\r\n\r\nb\r\n'
    return (part * count + f"--{_BOUNDARY}--\r\n").encode()


_MULTIPART = f"multipart/form-data; boundary={_BOUNDARY}"

HEAVY = (
    Heavy("sign-in with 16 KB of unknown fields", "/v1/session", lambda: _unknown_fields(1_500), signed=False),
    Heavy("sign-in with 1 MB of unknown fields", "/v1/session", lambda: _unknown_fields(105_000), signed=False),
    Heavy("ask with 1 MB of unknown fields", "/v1/ask", lambda: _unknown_fields(95_000)),
    Heavy("ask of a long question", "/v1/ask", lambda: _json({"question": "why is it so? " * 2_300})),
    Heavy("search of a long query", "/v1/search", lambda: _json({"query": "Alpha beta. " * 2_700})),
    Heavy("search of white space", "/v1/search", lambda: _json({"query": " " * 32_000 + "x"})),
    Heavy("search with a deep filter", "/v1/search", lambda: b'{"query":"a","filter":' + b'{"not":' * 50_000),
    Heavy(
        "search within many documents",
        "/v1/search",
        lambda: _of(60_000, '"doc_00000000"', before='{"query":"a","document_ids":[', after="]}"),
    ),
    Heavy(
        "embeddings of a million token ids",
        "/v1/embeddings",
        lambda: _of(500_000, "1", before='{"model":"footnote","input":[', after="]}"),
    ),
    Heavy(
        "embeddings of many letters",
        "/v1/embeddings",
        lambda: _of(250_000, '"a"', before='{"model":"footnote","input":[', after="]}"),
    ),
    Heavy(
        "embeddings of a long text", "/v1/embeddings", lambda: _json({"model": "footnote", "input": "a" * 2_000_000})
    ),
    Heavy("tokens of a long text", "/v1/tokens/count", lambda: _json({"text": "a" * 2_000_000})),
    Heavy("tokens of text at the limit", "/v1/tokens/count", lambda: _json({"text": "word " * 26_000})),
    Heavy("chat with names", "/v1/chat/completions", lambda: _chat("Alpha. " * 1_428)),
    Heavy("chat with names at the limit", "/v1/chat/completions", lambda: _chat("Alpha. " * 8_500)),
    Heavy("chat with white space", "/v1/chat/completions", lambda: _chat("a" + " " * 30_000 + "b")),
    Heavy("conversation with nested lists", "/v1/conversations", lambda: b"[" * 500_000 + b"]" * 500_000),
    Heavy("conversation with flat lists", "/v1/conversations", lambda: _of(340_000, "[]", before="[", after="]")),
    Heavy("conversation by a form", "/v1/conversations", lambda: bytes(8_000_000), kind=_MULTIPART),
    Heavy(
        "document as JSON",
        "/v1/documents",
        lambda: _json({"text": "A sentence. " * 80_000, "filename": "a.txt"}),
        read_later=True,
    ),
    Heavy("form of many parts", "/v1/documents", lambda: _parts(60_000), kind=_MULTIPART),
    Heavy(
        "upload of many comments",
        "/v1/documents",
        lambda: _form("a.txt", b"<!---->" * 600_000),
        kind=_MULTIPART,
        read_later=True,
    ),
    Heavy(
        "upload of one long line",
        "/v1/documents",
        lambda: _form("b.txt", b"a! " * 1_000_000),
        kind=_MULTIPART,
        read_later=True,
    ),
    Heavy("file of zeros", "/v1/files", lambda: _form("c.txt", bytes(8_000_000)), kind=_MULTIPART),
    Heavy("deletion by a large filter", "/v1/documents/delete", lambda: _unknown_fields(90_000)),
    Heavy("batch of lines", "/v1/batches", lambda: _unknown_fields(90_000)),
)
