"""Event streams of waiting documents: limited in number, cheap, and counted only while they are open."""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest

from app.server.state import State
from app.types import Role
from tests.app.server.listening import listening
from tests.statements import executions_of

STREAMS, OF_A_KEY = 300, 64
SOON_S = 60


class Stream:
    """One request for events over a socket of its own."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer
        self.status = 0
        self.head = b""

    async def begin(self, path: str, key: str) -> None:
        self._writer.write(f"GET {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {key}\r\n\r\n".encode())
        self.head = await self._reader.readuntil(b"\r\n\r\n")
        self.status = int(self.head.split()[1])

    async def until(self, text: bytes) -> None:
        await self._reader.readuntil(text)

    async def problem(self) -> dict[str, Any]:
        length = next(line for line in self.head.lower().splitlines() if line.startswith(b"content-length:"))
        body: dict[str, Any] = json.loads(await self._reader.readexactly(int(length.split(b":")[1])))
        return body

    async def leave(self) -> None:
        """Hang up without a word."""
        self._writer.transport.abort()
        await asyncio.sleep(0)


@asynccontextmanager
async def streams(port: int, document_id: str, *keys: str) -> AsyncIterator[list[Stream]]:
    """A stream for each key; hung up at the end."""
    opened: list[Stream] = []
    try:
        for _ in keys:
            opened.append(Stream(*await asyncio.open_connection("127.0.0.1", port)))
        async with asyncio.timeout(SOON_S):
            await asyncio.gather(
                *(
                    stream.begin(f"/v1/documents/{document_id}/events", key)
                    for stream, key in zip(opened, keys, strict=True)
                )
            )
        yield opened
    finally:
        for stream in opened:
            await stream.leave()


def key_of(state: State, tenant: str, role: Role) -> str:
    return state.access.keys.create(tenant_id=tenant, user_id="u", name=tenant, role=role)[1]


def waiting(port: int, key: str) -> str:
    """The id of a document that nobody ingests, since the server has no models."""
    headers = {"Authorization": f"Bearer {key}"}
    body = {"text": "Words.", "filename": "a.txt"}
    return str(
        httpx.post(f"http://127.0.0.1:{port}/v1/documents", json=body, headers=headers, timeout=SOON_S).json()["id"]
    )


async def until(true: Callable[[], bool]) -> None:
    async with asyncio.timeout(SOON_S):
        while not true():
            await asyncio.sleep(0.01)


@pytest.fixture
def port(state: State) -> Iterator[int]:
    with listening(state) as served:
        yield served.port


async def test_of_three_hundred_streams_of_a_reader_most_are_refused_and_the_rest_cost_little(state, port):
    member, reader, other = (
        key_of(state, tenant, role)
        for tenant, role in (("acme", Role.MEMBER), ("acme", Role.READER), ("globex", Role.READER))
    )
    document_id = await asyncio.to_thread(waiting, port, member)
    async with (
        httpx.AsyncClient(
            base_url=f"http://127.0.0.1:{port}",
            headers={"Authorization": f"Bearer {other}"},
            trust_env=False,
            timeout=SOON_S,
        ) as client,
        streams(port, document_id, *[reader] * STREAMS) as opened,
    ):
        refused = [stream for stream in opened if stream.status == 429]
        accepted = [stream for stream in opened if stream.status == 200]
        problem = await refused[0].problem()
        began = time.monotonic()
        with executions_of(state.database) as executed:
            listed = [await client.get("/v1/documents") for _ in range(20)]
        took = time.monotonic() - began
        async with streams(port, document_id, member) as (another,):
            status_of_another_key = another.status

    assert (len(accepted), len(refused)) == (OF_A_KEY, STREAMS - OF_A_KEY)
    assert b"content-type: application/problem+json" in refused[0].head.lower()
    assert b"retry-after:" in refused[0].head.lower()
    assert (problem["type"], problem["limit_name"]) == ("urn:footnote:problem:rate-limited", "caller-event-streams")
    assert {answer.status_code for answer in listed} == {200}
    reads = [statement for statement, _ in executed if "FROM document" in statement]
    assert len(reads) <= len(listed) + 10 * took + 10, "one reader for all streams, ten times a second at most"
    assert status_of_another_key == 200


async def test_a_stream_that_is_hung_up_gives_its_place_back(state, port):
    member = key_of(state, "acme", Role.MEMBER)
    document_id = await asyncio.to_thread(waiting, port, member)
    async with streams(port, document_id, *[member] * OF_A_KEY) as opened:
        assert {stream.status for stream in opened} == {200}
        assert (len(state.limits.event_streams), len(state.corpus.watch)) == (OF_A_KEY, 1)
        await opened[0].leave()
        await until(lambda: len(state.limits.event_streams) == OF_A_KEY - 1)
        async with streams(port, document_id, member, member) as (again, above):
            assert sorted([again.status, above.status]) == [200, 429]
    await until(lambda: len(state.limits.event_streams) == len(state.corpus.watch) == 0)


async def test_a_stream_that_ends_gives_its_place_back(state, port):
    member = key_of(state, "acme", Role.MEMBER)
    document_id = await asyncio.to_thread(waiting, port, member)
    async with streams(port, document_id, member) as (stream,):
        headers = {"Authorization": f"Bearer {member}"}
        async with httpx.AsyncClient(
            base_url=f"http://127.0.0.1:{port}", headers=headers, trust_env=False, timeout=SOON_S
        ) as client:
            assert (await client.delete(f"/v1/documents/{document_id}")).status_code == 200
        async with asyncio.timeout(SOON_S):
            await stream.until(b"event: done")
        await until(lambda: len(state.limits.event_streams) == len(state.corpus.watch) == 0)


async def test_a_stream_of_a_document_that_is_not_there_takes_no_place(state, port):
    member = key_of(state, "acme", Role.MEMBER)
    async with streams(port, "doc_none", *[member] * 3) as opened:
        assert {stream.status for stream in opened} == {404}
    assert len(state.limits.event_streams) == 0


async def test_a_tenants_streams_are_limited_too(state, port):
    keys = [key_of(state, "acme", Role.MEMBER) for _ in range(5)]
    document_id = await asyncio.to_thread(waiting, port, keys[0])
    async with streams(port, document_id, *keys * (OF_A_KEY - 4)) as opened:
        refused = [stream for stream in opened if stream.status == 429]
        problem = await refused[0].problem()

    assert len(opened) - len(refused) == 256
    assert problem["limit_name"] == "tenant-event-streams"
