"""`python -m tests.faults.ingestion`: kill a server that ingests, at named points and at random moments.

Every kill is followed by a start and by a look at everything that was acknowledged (`Library.check`).
"""

import argparse
import json
import random
import shutil
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

import httpx
from rich.console import Console
from rich.progress import track

from tests.faults.forked import ForkedServer, KillPoint
from tests.faults.library import Library

_CLIENTS = 4
_NAMES = ("buoy", "ferry", "harbour", "pilot")
_ROUNDS = 12


def killed_at(folder: Path, point: KillPoint) -> float:
    """Upload, replace and delete until the server kills itself at `point`; then everything must be as acknowledged.

    The seconds until it was ready again.

    Raises:
        AssertionError: The point was never reached, or something acknowledged is lost or half there.
    """
    server = ForkedServer(folder / "data")
    try:
        server.start()
        library = Library(server)
        for name in ("old-a", "old-b"):
            library.upload(name)
        library.check()
        server.stop()
        server.start(kill_at=point)
        for number in range(_ROUNDS):
            if not server.alive():
                break
            _round(library, number)
        assert server.died(seconds=10), f"never reached: {point}"
        began = time.monotonic()
        server.start()
        ready = time.monotonic() - began
        library.check()
        return ready
    finally:
        server.close()


def killed_at_random(folder: Path, *, kills: int, seed: int, report: Callable[[int, int, float], None]) -> None:
    """Kill one data dir's server again and again while clients change documents; `report`s operations and seconds.

    Raises:
        AssertionError: Something acknowledged is lost or half there.
    """
    chance = random.Random(seed)
    server = ForkedServer(folder / "data")
    library = Library(server)
    try:
        for number in range(kills):
            server.start()
            stop = threading.Event()
            done = [0] * _CLIENTS
            errors: list[BaseException] = []
            clients = [
                threading.Thread(
                    target=_client, args=(library, index, chance.randrange(1 << 30), stop, done, errors), daemon=True
                )
                for index in range(_CLIENTS)
            ]
            began = time.monotonic()
            for client in clients:
                client.start()
            time.sleep(0.2 + chance.random())
            server.kill()
            seconds = time.monotonic() - began
            stop.set()
            for client in clients:
                client.join(60)
            if errors:
                raise errors[0]
            server.start()
            library.check()
            server.kill()
            report(number, sum(done), seconds)
    finally:
        server.close()


def _round(library: Library, number: int) -> None:
    """A bit of everything; a server that dies meanwhile leaves the rest undone."""
    steps: list[Callable[[], object]] = [
        lambda: library.upload(f"new-{number}", paragraphs=1 + number % 5),
        lambda: library.replace("old-a"),
        lambda: library.server.settled(seconds=10),
        lambda: library.upload("old-b"),
        lambda: library.server.settled(seconds=10),
        lambda: library.delete(f"new-{number}"),
    ]
    for step in steps:
        if not library.server.alive():
            return
        try:
            step()
        except httpx.TransportError:
            return


def _client(
    library: Library, index: int, seed: int, stop: threading.Event, done: list[int], errors: list[BaseException]
) -> None:
    """Change and search documents of its own until the server is gone."""
    chance = random.Random(seed)
    names = [f"{_NAMES[index]}-{number}" for number in range(6)]
    try:
        while not stop.is_set():
            name = chance.choice(names)
            act = chance.random()
            if name not in library.present():
                library.upload(name, paragraphs=chance.randrange(1, 8))
            elif act < 0.25:
                library.replace(name)
            elif act < 0.4:
                library.delete(name)
            else:
                library.peek(name)
            done[index] += 1
    except BaseException as error:  # noqa: BLE001 - told by the thread that waits
        errors.append(error)


def main() -> None:
    """Both, with a progress bar; ends with what was done, as JSON."""
    from tests.faults.kill_points import POINTS

    parser = argparse.ArgumentParser(prog="python -m tests.faults.ingestion", description=__doc__)
    parser.add_argument("--kills", type=int, default=200, help="kills at random moments")
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--out", type=Path, help="file for the figures")
    chosen = parser.parse_args()
    console = Console()
    ready: list[float] = []
    for point in track(POINTS, "named points", console=console):
        with tempfile.TemporaryDirectory() as scratch:
            ready.append(killed_at(Path(scratch), point))
    operations: list[int] = []
    rates: list[float] = []

    def told(number: int, count: int, seconds: float) -> None:
        operations.append(count)
        rates.append(count / seconds)
        if number % 10 == 9:
            console.print(f"{number + 1} kills, {sum(operations)} operations")

    folder = Path(tempfile.mkdtemp())
    killed_at_random(folder, kills=chosen.kills, seed=chosen.seed, report=told)
    shutil.rmtree(folder)
    figures = {
        "named_points": len(POINTS),
        "slowest_start_seconds": round(max(ready), 2),
        "random_kills": chosen.kills,
        "operations": sum(operations),
        "operations_per_second": {
            "median": round(sorted(rates)[len(rates) // 2], 1),
            "least": round(min(rates), 1),
        },
        "violations": 0,  # the first one ends the run with an error
    }
    console.print_json(json.dumps(figures))
    if chosen.out:
        chosen.out.write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
