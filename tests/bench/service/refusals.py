"""`python -m tests.bench.service.refusals`: ten times as many clients as there are places; how soon are they refused?

The application runs under uvicorn in this process, its engine whole over a model that takes 2 ms for a step. Half of
the time as many clients ask as have seats, and half of it ten times as many; those who are refused come back soon.
"""

import argparse
import asyncio
import json
import shutil
import socket
import tempfile
import time
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path

import uvicorn
from rich.console import Console

from app.api.application import create_app
from app.server.state import State
from tests.bench.service.disconnects import LIMITS, Ends, ask
from tests.faults.metered import metered, scripted

_LENGTH = 40


@dataclass(slots=True)
class Figures:
    """Answers a second at capacity and at ten times it, and how long those took who were refused, in seconds."""

    peak: float = 0.0
    overloaded: float = 0.0
    refused_s: list[float] = field(default_factory=list)
    statuses: set[int] = field(default_factory=set)
    cut: int = 0
    answered: int = 0  # under the load, those included that ended after it

    def refused_within(self, share: float) -> float:
        """Milliseconds within which that share was refused."""
        ordered = sorted(self.refused_s)
        return round(1000 * ordered[min(len(ordered) - 1, int(share * len(ordered)))], 1) if ordered else 0.0


async def run(state: State, *, seconds: float, times: int = 10, pause: float = 0.1) -> Figures:
    """Ask for so many seconds each; who is refused comes back after `pause` seconds."""
    figures = Figures()
    listener = socket.create_server(("127.0.0.1", 0), backlog=2048)
    server = uvicorn.Server(
        uvicorn.Config(
            create_app(lambda: nullcontext(state), version="0"), http="h11", log_config=None, access_log=False
        )
    )
    serving = asyncio.create_task(server.serve(sockets=[listener]))
    while not server.started:
        await asyncio.sleep(0.01)
    port, capacity = listener.getsockname()[1], state.settings.max_running

    async def load(clients: int) -> float:
        answers, until = 0, time.perf_counter() + seconds

        async def client() -> None:
            nonlocal answers
            while time.perf_counter() < until:
                began = time.perf_counter()
                reply = await ask(port, _LENGTH)
                took = time.perf_counter() - began
                figures.statuses.add(reply.status)
                if reply.status == 200:
                    answers += time.perf_counter() <= until
                    figures.answered += clients > 2 * capacity
                    figures.cut += "event: done" not in reply.received
                else:
                    figures.refused_s.append(took)
                    await asyncio.sleep(pause)

        await asyncio.gather(*(client() for _ in range(clients)))
        return answers / seconds

    await load(capacity)  # caches and threads are there now
    figures.peak = await load(2 * capacity)
    figures.overloaded = await load(times * 2 * capacity)
    server.should_exit = True
    await serving
    return figures


def measured(folder: Path, *, seconds: float, times: int = 10) -> Figures:
    """One run over a scratch data dir."""
    with metered(folder, engine=Ends(scripted(step_seconds=0.002)), limits=LIMITS) as state:
        return asyncio.run(run(state, seconds=seconds, times=times))


def main() -> None:
    """Ask, and tell."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.service.refusals", description=__doc__)
    parser.add_argument("--seconds", type=float, default=20.0)
    chosen = parser.parse_args()
    folder = Path(tempfile.mkdtemp())
    figures = measured(folder / "data", seconds=chosen.seconds)
    shutil.rmtree(folder)
    Console().print_json(
        json.dumps(
            {
                "answers_per_s": {"peak": round(figures.peak, 1), "overloaded": round(figures.overloaded, 1)},
                "refused": len(figures.refused_s),
                "refused_ms": {"p50": figures.refused_within(0.5), "p99": figures.refused_within(0.99)},
                "statuses": sorted(figures.statuses),
                "streams_cut": figures.cut,
            }
        )
    )


if __name__ == "__main__":
    main()
