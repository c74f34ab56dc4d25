"""`python -m tests.bench.service.asks`: how many asks a second the service around the model takes, and how fast.

The real application in a process of its own, under uvicorn as `footnote serve` runs it, SQLite with full sync,
full-text and vector search over real chunks. Only the models are stand-ins: the engine answers at once, the
questions' vectors are remembered. Loads: as much as it takes, a steady rate, and both again with every station timed.
"""

import argparse
import asyncio
import json
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.bench.service.library import questions_of
from tests.bench.service.load import Figures, closed_loop, steady_rate
from tests.server import ADMIN_KEY


class Served:
    """The application in its own process; `figures` are the process's own."""

    def __init__(self, data_dir: Path, *, chunks: int, corpus: Path | None, stations: bool) -> None:
        with socket.create_server(("127.0.0.1", 0)) as probe:
            self.port = probe.getsockname()[1]
        options = ["--port", str(self.port), "--chunks", str(chunks)]
        options += ["--corpus", str(corpus)] if corpus is not None else []
        options += ["--stations"] if stations else []
        data_dir.mkdir(parents=True, exist_ok=True)
        with (data_dir / "served.log").open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "tests.bench.service.served", str(data_dir), *options],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,  # to a file: a pipe that nobody reads stops the server once it is full
                text=True,
            )
        deadline = time.monotonic() + 600
        while time.monotonic() < deadline:
            assert self.process.poll() is None, "the server ended"
            try:
                socket.create_connection(("127.0.0.1", self.port), timeout=1).close()
                return
            except OSError:
                time.sleep(0.1)
        raise AssertionError("the server does not listen")

    def reset(self) -> None:
        """Count anew."""
        self._say("reset")

    def figures(self, asks: int) -> dict[str, Any]:
        """What the process took since."""
        self._say(f"told {asks}")
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if line.startswith("figures "):  # else it is a line of the log
                found: dict[str, Any] = json.loads(line.removeprefix("figures "))
                return found
        raise AssertionError("the server ended")

    def close(self) -> None:
        """End it."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait(60)

    def _say(self, line: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(f"{line}\n")
        self.process.stdin.flush()


def request_of(question: str, *, stream: bool = False) -> bytes:
    """An ask on the wire."""
    body = json.dumps({"question": question, "stream": stream}).encode()
    head = (
        "POST /v1/ask HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
        f"Authorization: Bearer {ADMIN_KEY}\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


def check(figures: Figures) -> None:
    """Every ask was answered, with a citation."""
    assert set(figures.statuses) == {200}, dict(figures.statuses)
    for body in figures.bodies:
        answer = json.loads(body)
        assert answer["answered"] and answer["citations"], answer


def measure(served: Served, requests: Sequence[bytes], *, connections: int, rate: float, seconds: float) -> Any:
    """The peak and the steady rate of one server."""
    check(asyncio.run(closed_loop(served.port, requests, connections=connections, seconds=max(5.0, seconds / 4))))
    found = {}
    for name, load in (
        ("peak", lambda: closed_loop(served.port, requests, connections=connections, seconds=seconds)),
        ("steady", lambda: steady_rate(served.port, requests, rate=rate, connections=256, seconds=seconds)),
    ):
        served.reset()
        figures = asyncio.run(load())
        check(figures)
        found[name] = {**figures.told(), **served.figures(len(figures.seconds))}
        print(name, json.dumps(found[name]), file=sys.stderr, flush=True)
    return found


def main() -> None:
    """Print the figures as JSON."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.service.asks", description=__doc__)
    parser.add_argument("--corpus", type=Path, help="folder with */corpus.jsonl and */queries.jsonl; generated without")
    parser.add_argument("--data", type=Path, help="keep the collection here, to measure it again")
    parser.add_argument("--chunks", type=int, default=10_000)
    parser.add_argument("--questions", type=int, default=300)
    parser.add_argument("--connections", type=int, default=16)
    parser.add_argument("--rate", type=float, default=50.0)
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--only", choices=("plain", "stations"))
    chosen = parser.parse_args()
    requests = [request_of(question) for question in questions_of(chosen.corpus, chosen.questions)]
    with tempfile.TemporaryDirectory() as folder:
        data, told = chosen.data or Path(folder) / "data", {}
        for name, stations in (("plain", False), ("stations", True)):
            if chosen.only in {None, name}:
                served = Served(data, chunks=chosen.chunks, corpus=chosen.corpus, stations=stations)
                try:
                    told[name] = measure(
                        served,
                        requests,
                        connections=chosen.connections,
                        rate=chosen.rate,
                        seconds=chosen.seconds,
                    )
                finally:
                    served.close()
    print(json.dumps(told, indent=1))


if __name__ == "__main__":
    main()
