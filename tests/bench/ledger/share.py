"""`python -m tests.bench.ledger.share`: which share of a request's time the ledger takes, with several streams at once.

Questions are asked of the configured language model through the real HTTP application in this process. Timed is every
call of the ledger a request makes (to reserve, note and settle its embedding and its answer), the wait for its turn to
write included, and the request from first byte to last. Settling an answer delays nobody; it is counted all the same.
"""

import argparse
import asyncio
import json
import statistics
import tempfile
import threading
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any, cast

from app.api.application import create_app
from app.types import Reservation, Settlement
from app.usage.ledger.ledger import Ledger
from tests.bench.ledger.client import Client
from tests.bench.ledger.requests import real, stub


class TimedLedger:
    """A ledger that notes how long its calls take; `seconds_of` is by request."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._noting = threading.Lock()
        self.seconds_of: defaultdict[str, float] = defaultdict(float)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._ledger, name)

    metered: Any = Ledger.metered  # its reserving and settling are timed here too

    def reserve(self, reservation: Reservation) -> None:
        with self._timed(reservation.event_id):
            self._ledger.reserve(reservation)

    def checkpoint(self, event_id: str, output_tokens: int) -> None:
        with self._timed(event_id):
            self._ledger.checkpoint(event_id, output_tokens)

    def settle(self, event_id: str, settlement: Settlement) -> bool:
        with self._timed(event_id):
            return self._ledger.settle(event_id, settlement)

    @contextmanager
    def _timed(self, event_id: str) -> Iterator[None]:
        began = time.perf_counter()
        yield
        with self._noting:
            self.seconds_of[event_id.partition(":")[0]] += time.perf_counter() - began


def measure(folder: Path, *, requests: int, streams: int, output_tokens: int, scripted: bool = False) -> dict[str, Any]:
    """Milliseconds of requests and of the ledger in them, and the share of the one in the other."""
    ledgers: list[TimedLedger] = []

    def watched(ledger: Ledger) -> Ledger:
        ledgers.append(TimedLedger(ledger))
        return cast("Ledger", ledgers[-1])

    serving, engine = (stub if scripted else real)(folder / "data", watched=watched)
    taken: dict[str, float] = {}

    async def ask() -> None:
        app = create_app(lambda: nullcontext(state), version="0")
        left = iter(range(requests))

        async def stream(client: Client) -> None:
            for number in left:
                began = time.perf_counter()
                reply = await client.ask(
                    {
                        "question": f"How many ships and boats were counted on day {number} of the year?",
                        "max_output_tokens": output_tokens,
                        "on_no_evidence": "answer",
                        "stream": True,
                    }
                )
                assert reply.usage is not None, "every request is answered"
                taken[reply.request_id] = time.perf_counter() - began

        async with app.router.lifespan_context(app):
            client = Client(app)
            await asyncio.gather(*(stream(client) for _ in range(streams)))

    with serving as state:
        asyncio.run(ask())
    spent = ledgers[0].seconds_of
    assert set(taken) <= set(spent), "every request is on the ledger"
    shares = sorted(spent[request] / seconds for request, seconds in taken.items())
    return {
        "model": engine.info.model,
        "requests": requests,
        "streams": streams,
        "output_tokens": output_tokens,
        "request_ms": round(1000 * statistics.median(taken.values()), 1),
        "ledger_ms": round(1000 * statistics.median(spent[request] for request in taken), 2),
        "share": round(sum(spent[request] for request in taken) / sum(taken.values()), 4),
        "share_p95": round(shares[int(len(shares) * 0.95)], 4),
    }


def main() -> None:
    """Print the figures as JSON."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.ledger.share", description=__doc__)
    parser.add_argument("--requests", type=int, default=80)
    parser.add_argument("--streams", type=int, default=8)
    parser.add_argument("--output-tokens", type=int, default=64)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        found = measure(
            Path(folder), requests=chosen.requests, streams=chosen.streams, output_tokens=chosen.output_tokens
        )
    print(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
