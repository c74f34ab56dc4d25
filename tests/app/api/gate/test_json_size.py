"""A JSON body with so many values that parsing it would stop the server is refused while it arrives."""

import json
import time
from itertools import pairwise
from typing import Any

import pytest
from fastapi import HTTPException
from hypothesis import given
from hypothesis import strategies as st

from app.access.routes import BodyKind
from app.api.gate.body_limits import JSON_BYTES
from app.api.gate.json_size import MOST_COSTLY, MOST_VALUES, JsonCounter, bounded_json

TEXTS = st.text(st.sampled_from('",[]{}:.eE\\\n ü😀') | st.characters(codec="utf-8"), max_size=12)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXTS,
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(TEXTS, inner, max_size=5),
    max_leaves=20,
)


def counted(value: Any) -> tuple[int, int]:
    """The commas and the costly marks of a value, from the value itself."""
    if isinstance(value, list | dict):
        parts = [counted(part) for part in (value.values() if isinstance(value, dict) else value)]
        commas, costly = max(0, len(value) - 1), 1 + (len(value) if isinstance(value, dict) else 0)
        return commas + sum(part[0] for part in parts), costly + sum(part[1] for part in parts)
    if isinstance(value, str):
        return 0, 0
    written = json.dumps(value)
    return 0, written.count(".") + written.count("e")


def count(*pieces: bytes) -> tuple[int, int]:
    counter = JsonCounter()
    for piece in pieces:
        counter.feed(piece)
    return counter.commas, counter.costly


@given(VALUES, st.booleans(), st.data())
def test_values_are_counted_as_they_are_wherever_the_text_is_cut(value, ascii_only, data):
    body = json.dumps(value, ensure_ascii=ascii_only).encode()
    cuts = sorted(data.draw(st.lists(st.integers(0, len(body)), max_size=6)))
    pieces = [body[start:end] for start, end in pairwise([0, *cuts, len(body)])]

    assert count(*pieces) == counted(value)
    assert count(*(bytes([byte]) for byte in body)) == counted(value)


@given(VALUES, st.sampled_from(["utf-16", "utf-16-le", "utf-32-be"]))
def test_in_another_encoding_at_least_the_values_are_counted(value, encoding):
    body = json.dumps(value, ensure_ascii=False).encode(encoding)

    commas, costly = count(body[:2], body[2:])
    assert (commas, costly) >= counted(value)
    assert commas >= counted(value)[0]


async def refusal_of(body: bytes, kind: BodyKind) -> HTTPException | None:
    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": body, "more_body": False}

    try:
        await bounded_json(receive, kind=kind)()
    except HTTPException as refused:
        return refused
    return None


@pytest.mark.parametrize("kind", list(BodyKind))
async def test_as_many_values_as_may_be_pass_and_one_more_is_413(kind):
    most = MOST_VALUES[kind]

    assert await refusal_of(b"[" + b"1," * most + b"1]", kind) is None
    refused = await refusal_of(b"[" + b"1," * (most + 1) + b"1]", kind)
    assert refused is not None
    assert refused.status_code == 413
    assert await refusal_of(b"[" * MOST_COSTLY, kind) is None
    assert await refusal_of(b"[" * (MOST_COSTLY + 1), kind) is not None


@pytest.mark.parametrize("kind", list(BodyKind))
@pytest.mark.parametrize(
    "part", [b"[],", b"{},", b'"%d":1,', b"1.5,", b"1e9,", b"1,", b'"a",', b"null,"], ids=lambda part: part.decode()
)
async def test_the_longest_json_that_is_read_is_parsed_in_a_moment(kind, part):
    made, commas, costly = bytearray(), 0, 0
    while len(made) < JSON_BYTES[kind] - 32:
        one = part % len(made) if b"%" in part else part
        step = count(one)
        if commas + step[0] > MOST_VALUES[kind] or costly + step[1] > MOST_COSTLY - 4:
            break
        made += one
        commas, costly = commas + step[0], costly + step[1]
    rest = JSON_BYTES[kind] - len(made) - 12
    text = b'"' + b"\\n" * (rest // 2) + b'"'
    body = b"{%s%s:1}" % (made, text) if b"%" in part else b"[%s%s]" % (made, text)
    assert await refusal_of(body, kind) is None

    best = min(_seconds(body) for _ in range(3))

    assert best < 0.1, f"{best:.3f} s"


def _seconds(body: bytes) -> float:
    began = time.process_time()
    json.loads(body)
    return time.process_time() - began


@pytest.mark.parametrize("path", ["/v1/conversations", "/v1/documents", "/v1/admin/keys"])
def test_a_body_of_very_many_values_is_413_on_every_route(client, path):
    refused = client.post(path, content=b"[" + b"[]," * 300_000 + b"1]", headers={"Content-Type": "application/json"})

    assert refused.status_code == 413
    assert refused.json()["detail"].startswith("The JSON has more than")
