"""Load on a server: closed loops for its peak, and a steady rate for its latency.

At a steady rate a request's time begins when it was to be sent, whether or not a connection was free: a server that
stalls is charged for all who would have come meanwhile (Tene 2013, "How NOT to measure latency": coordinated omission).
"""

import asyncio
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

_DRAIN_SECONDS = 30.0


@dataclass(slots=True)
class Figures:
    """Seconds of each answer, how many came with which status, and what the generator itself took of a core.

    `unanswered` were still waiting when it was given up.
    """

    seconds: list[float] = field(default_factory=list)
    statuses: Counter[int] = field(default_factory=Counter)
    wall_s: float = 0.0
    cpu_s: float = 0.0
    unanswered: int = 0
    bodies: list[bytes] = field(default_factory=list)

    def told(self) -> dict[str, float | int | dict[str, int]]:
        """As it is reported; milliseconds."""
        ordered = sorted(self.seconds)
        return {
            "asks": len(ordered),
            "asks_per_s": round(len(ordered) / self.wall_s, 1),
            "p50_ms": _at(ordered, 0.50),
            "p95_ms": _at(ordered, 0.95),
            "p99_ms": _at(ordered, 0.99),
            "max_ms": _at(ordered, 1.0),
            "statuses": {str(status): count for status, count in self.statuses.items()},
            "unanswered": self.unanswered,
            "load_generator_cores": round(self.cpu_s / self.wall_s, 2),
        }


class Client(asyncio.Protocol):
    """One connection that is kept, one request on it at a time. Reads bodies with a declared length."""

    def __init__(self) -> None:
        self._transport: asyncio.Transport | None = None
        self._buffer = bytearray()
        self._answer: asyncio.Future[tuple[int, bytes]] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        head_ends = self._buffer.find(b"\r\n\r\n")
        if head_ends < 0 or self._answer is None:
            return
        head = bytes(self._buffer[:head_ends]).lower()
        _, _, rest = head.partition(b"content-length:")
        whole = head_ends + 4 + int(rest.partition(b"\r\n")[0])
        if len(self._buffer) >= whole:
            body = bytes(self._buffer[head_ends + 4 : whole])
            del self._buffer[:whole]
            answer, self._answer = self._answer, None
            answer.set_result((int(head[9:12]), body))

    def connection_lost(self, error: Exception | None) -> None:
        if self._answer is not None:
            self._answer.set_exception(error or ConnectionResetError("the server hung up"))

    async def send(self, request: bytes) -> tuple[int, bytes]:
        """The status and body of the answer."""
        assert self._transport is not None and self._answer is None, "one request at a time"
        self._answer = asyncio.get_running_loop().create_future()
        self._transport.write(request)
        return await self._answer

    @property
    def closed(self) -> bool:
        """Whether the server has hung up, as it does on a connection that is idle for long."""
        return self._transport is None or self._transport.is_closing()

    def close(self) -> None:
        """Hang up."""
        if self._transport is not None:
            self._transport.close()


async def closed_loop(port: int, requests: Sequence[bytes], *, connections: int, seconds: float) -> Figures:
    """So many connections, each of which asks again as soon as it has its answer."""
    figures, clients = Figures(), await _connected(port, connections)
    began, began_cpu = time.perf_counter(), time.process_time()
    place = iter(range(1 << 60))

    async def ask_on(client: Client) -> None:
        while time.perf_counter() - began < seconds:
            started = time.perf_counter()
            status, body = await client.send(requests[next(place) % len(requests)])
            _note(figures, status, body, time.perf_counter() - started)

    await asyncio.gather(*map(ask_on, clients))
    figures.wall_s, figures.cpu_s = time.perf_counter() - began, time.process_time() - began_cpu
    _close(clients)
    return figures


async def steady_rate(
    port: int, requests: Sequence[bytes], *, rate: float, connections: int, seconds: float
) -> Figures:
    """`rate` requests a second, at moments fixed beforehand; one that finds no connection free waits for one."""
    figures, free = Figures(), await _connected(port, connections)
    freed = asyncio.Condition()
    began, began_cpu = time.perf_counter(), time.process_time()

    async def ask_at(moment: float, request: bytes) -> None:
        async with freed:
            await freed.wait_for(lambda: bool(free))
            client = free.pop()
        if client.closed:
            (client,) = await _connected(port, 1)
        status, body = await client.send(request)
        _note(figures, status, body, time.perf_counter() - moment)
        async with freed:
            free.append(client)
            freed.notify()

    asks = set()
    for number in range(int(rate * seconds)):
        moment = began + number / rate
        if (early := moment - time.perf_counter()) > 0:
            await asyncio.sleep(early)
        asks.add(asyncio.create_task(ask_at(moment, requests[number % len(requests)])))
    _, late = await asyncio.wait(asks, timeout=_DRAIN_SECONDS)
    figures.unanswered = len(late)
    for ask in late:
        ask.cancel()
    await asyncio.gather(*asks, return_exceptions=True)
    for ask in asks - late:
        ask.result()
    figures.wall_s, figures.cpu_s = time.perf_counter() - began, time.process_time() - began_cpu
    _close(free)
    return figures


def _note(figures: Figures, status: int, body: bytes, seconds: float) -> None:
    figures.seconds.append(seconds)
    figures.statuses[status] += 1
    if len(figures.bodies) < 1000:
        figures.bodies.append(body)


async def _connected(port: int, count: int) -> list[Client]:
    loop = asyncio.get_running_loop()
    return [(await loop.create_connection(Client, "127.0.0.1", port))[1] for _ in range(count)]


def _close(clients: Sequence[Client]) -> None:
    for client in clients:
        client.close()


def _at(ordered: Sequence[float], share: float) -> float:
    return round(1000 * ordered[min(len(ordered) - 1, int(len(ordered) * share))], 1) if ordered else 0.0
