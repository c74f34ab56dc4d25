"""`python -m tests.bench.service.disconnects`: clients hang up at random moments, over real sockets; what leaks?

The application runs under uvicorn in this process, its engine whole over a model that says letters. Clients leave
before an answer begins (in the line, in preparation, in prefill), after some of it, or at its end; a share of them
stays and must read what is read when nobody leaves. When nothing runs any more, what is held is counted.
"""

import argparse
import asyncio
import json
import random
import shutil
import socket
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import sqlalchemy as sa
import uvicorn
from rich.console import Console

from app.answering.question import AnswerDefaults
from app.api.application import create_app
from app.db.tables.ledger import usage_event
from app.server.state import State
from generation.engine import LocalEngine
from generation.ports import Observer, Stream
from generation.types import Completion, GenerationRequest
from tests.bench.ledger.requests import RecordingEngine
from tests.faults.metered import metered, scripted
from tests.generation.fakes import LetterTokenizer
from tests.server import ADMIN_KEY

LIMITS = AnswerDefaults(max_context_tokens=2000, max_output_tokens=64, min_evidence=0.3, max_waiting=64)
_LENGTHS = (5, 40, 180)
_STAYS = 0.2
_CLIENTS = 32


class Ends(RecordingEngine):
    """Notes when each sequence was closed in the books."""

    def __init__(self, engine: LocalEngine) -> None:
        super().__init__(engine, LetterTokenizer(), recount=False)
        self.ended: dict[str, float] = {}

    def submit(self, request: GenerationRequest, *, observer: Observer) -> Stream:
        return super().submit(request, observer=_Noting(observer, self.ended))


class _Noting:
    def __init__(self, observer: Observer, ended: dict[str, float]) -> None:
        self._observer, self._ended = observer, ended

    def checkpoint(self, request_id: str, generated_tokens: int) -> None:
        self._observer.checkpoint(request_id, generated_tokens)

    def finish(self, completion: Completion) -> None:
        self._observer.finish(completion)
        self._ended[completion.id] = time.perf_counter()


class LoopTurns:
    """Lets an engine wait for a turn of the event loop, so that it cannot run ahead of clients on that loop."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None

    @contextmanager
    def of_this_loop(self) -> Iterator[None]:
        """Inside the block `wait` waits for the running loop; outside it returns at once."""
        self._loop = asyncio.get_running_loop()
        try:
            yield
        finally:
            self._loop = None

    def wait(self) -> None:
        """Wait until the loop has done what was ready; a second at most, as it may just be ending."""
        loop, turned = self._loop, threading.Event()
        if loop is None:
            return
        with suppress(RuntimeError):  # it has ended
            loop.call_soon_threadsafe(turned.set)
            turned.wait(1)


@dataclass(slots=True)
class Figures:
    """What happened, and what was left when all was over; `closed_ms` is from hanging up to the row's settlement."""

    acts: Counter[str] = field(default_factory=Counter)
    statuses: Counter[str] = field(default_factory=Counter)
    rows: Counter[str] = field(default_factory=Counter)
    closed_ms: list[float] = field(default_factory=list)
    other_outputs: int = 0
    leaks: dict[str, int] = field(default_factory=dict)
    seconds: float = 0.0

    def closed_within(self, share: float) -> float:
        """Milliseconds within which that share was closed."""
        ordered = sorted(self.closed_ms)
        return round(ordered[min(len(ordered) - 1, int(share * len(ordered)))], 1) if ordered else 0.0


async def run(state: State, engine: Ends, *, requests: int, seed: int, clients: int = _CLIENTS) -> Figures:
    """Ask so many questions, `clients` at once, and hang up on most of them."""
    figures, chance = Figures(), random.Random(seed)
    listener = socket.create_server(("127.0.0.1", 0), backlog=512)
    config = uvicorn.Config(
        create_app(lambda: nullcontext(state), version="0"), http="h11", log_config=None, access_log=False
    )
    server = uvicorn.Server(config)
    serving = asyncio.create_task(server.serve(sockets=[listener]))
    port = listener.getsockname()[1]
    while not server.started:
        await asyncio.sleep(0.01)
    undisturbed = {length: (await ask(port, length)).text for length in _LENGTHS}
    await asyncio.gather(*(ask(port, 5) for _ in range(clients)))  # threads that are kept are there now
    threads = threading.active_count()
    left: dict[str, float] = {}
    turn = iter(range(requests))

    async def work() -> None:
        for _ in turn:
            length = chance.choice(_LENGTHS)
            act = "stay" if chance.random() < _STAYS else chance.choice(["early", "midway", "end"])
            figures.acts[act] += 1
            leave_in = chance.random() * 0.3 if act == "early" else None
            leave_at = {"midway": b"event: delta", "end": b"event: usage"}.get(act)
            deltas = chance.randrange(1, length) if act == "midway" else 1
            reply = await ask(port, length, leave_in=leave_in, leave_at=leave_at, times=deltas)
            figures.statuses[str(reply.status)] += 1
            if act == "stay":
                figures.other_outputs += reply.status == 200 and reply.text != undisturbed[length]
            elif reply.request_id and not reply.whole:
                left[reply.request_id] = reply.left_at

    started = time.perf_counter()
    await asyncio.gather(*(work() for _ in range(clients)))
    figures.leaks = await _leaks(state, engine, threads=threads)
    figures.seconds = time.perf_counter() - started
    server.should_exit = True
    await serving
    figures.closed_ms = [max(0.0, engine.ended[one] - at) * 1000 for one, at in left.items() if one in engine.ended]
    with state.database.read() as connection:
        counted = sa.select(usage_event.c.operation, usage_event.c.status, sa.func.count())
        for operation, status, count in connection.execute(counted.group_by(sa.text("1, 2"))):
            figures.rows[f"{operation} {status}"] = count
    return figures


async def _leaks(state: State, engine: Ends, *, threads: int) -> dict[str, int]:
    """What is still held ten seconds after the last client left, at most; looked at until nothing is."""
    held: dict[str, int] = {}
    for _ in range(200):
        stats, admission = engine.stats(), state.limits.admission
        with state.database.read() as connection:
            reserved = connection.execute(
                sa.select(sa.func.count()).where(usage_event.c.status == "reserved")
            ).scalar_one()
        held = {
            "sequences": stats.running + stats.waiting,
            "waiting_tokens": stats.waiting_tokens,
            "blocks": stats.used_blocks,
            "seats": admission.generation_slots.held + admission.generation_slots.waiting,
            "turns": admission.preparation_slots.held + admission.preparation_slots.waiting,
            "rows": reserved,
            "cancellable": len(state.serving.models.answerer.running) if state.serving.models is not None else 0,
            "threads": max(0, threading.active_count() - threads - _SPARE),
        }
        if not any(held.values()):
            break
        await asyncio.sleep(0.05)
    for line in (state.limits.admission.generation_slots, state.limits.admission.preparation_slots):
        line.check_integrity()
    return held


_SPARE = 36  # pools of the event loop and of anyio may still grow to their sizes while all clients ask at once


@dataclass(slots=True)
class _Reply:
    status: int = 0
    request_id: str = ""
    text: str = ""
    left_at: float = 0.0
    whole: bool = False
    received: str = ""


async def ask(
    port: int, length: int, *, leave_in: float | None = None, leave_at: bytes | None = None, times: int = 1
) -> _Reply:
    """Ask for so many letters; leave in so many seconds, or when some text has come so many times."""
    body = json.dumps(
        {"question": "How many ships?", "max_output_tokens": length, "on_no_evidence": "answer", "stream": True}
    ).encode()
    head = (
        "POST /v1/ask HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Type: application/json\r\n"
        f"Authorization: Bearer {ADMIN_KEY}\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    reply, received = _Reply(), bytearray()
    try:
        writer.write(head.encode() + body)
        with suppress(TimeoutError):
            async with asyncio.timeout(leave_in):
                while piece := await reader.read(1 << 16):
                    received += piece
                    if leave_at is not None and received.count(leave_at) >= times:
                        break
                else:
                    reply.whole = True
    finally:
        writer.transport.abort()  # a reset, as of a client that died
        reply.left_at = time.perf_counter()
    text = received.decode(errors="replace")
    reply.received = text
    if text:
        reply.status = int(text[9:12])
        named = text.casefold().find("x-request-id: ")
        reply.request_id = text[named + 14 :].partition("\r\n")[0] if named >= 0 else ""
        reply.text = "".join(_deltas(text))
    return reply


def _deltas(text: str) -> list[str]:
    found, kind = [], ""
    for line in text.splitlines():
        if line.startswith("event: "):
            kind = line.removeprefix("event: ")
        elif kind == "delta" and line.startswith("data: "):
            with suppress(ValueError):  # cut in the middle, by whoever left
                found.append(json.loads(line.removeprefix("data: "))["text"])
    return found


def measured(folder: Path, *, requests: int, seed: int = 7, in_turns: bool = False) -> Figures:
    """One run over a scratch data dir.

    Where `in_turns`, the engine waits for a turn of the clients' loop before each step: on a slow machine it would
    otherwise have ended most answers before their clients, which share the loop with the server, can leave.
    """
    turns = LoopTurns()
    engine = Ends(scripted(step_seconds=0.002, wait=turns.wait))

    async def in_one_loop() -> Figures:
        with turns.of_this_loop() if in_turns else nullcontext():
            return await run(state, engine, requests=requests, seed=seed)

    with metered(folder, engine=engine, limits=LIMITS) as state:
        return asyncio.run(in_one_loop())


def main() -> None:
    """Ask, leave, count, tell; the exit status is 1 where anything leaked or an answer differed."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.service.disconnects", description=__doc__)
    parser.add_argument("--requests", type=int, default=6300, help="about four fifths of them are left")
    parser.add_argument("--seed", type=int, default=7)
    chosen = parser.parse_args()
    folder = Path(tempfile.mkdtemp())
    figures = measured(folder / "data", requests=chosen.requests, seed=chosen.seed)
    shutil.rmtree(folder)
    told: dict[str, Any] = {
        "disconnects": sum(count for act, count in figures.acts.items() if act != "stay"),
        "acts": dict(figures.acts),
        "statuses": dict(figures.statuses),
        "rows": dict(figures.rows),
        "closed_ms": {
            "p50": figures.closed_within(0.5),
            "p99": figures.closed_within(0.99),
            "of": len(figures.closed_ms),
        },
        "leaks": figures.leaks,
        "other_outputs": figures.other_outputs,
        "seconds": round(figures.seconds, 1),
    }
    Console().print_json(json.dumps(told))
    raise SystemExit(1 if any(figures.leaks.values()) or figures.other_outputs else 0)


if __name__ == "__main__":
    main()
