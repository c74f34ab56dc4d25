"""`python -m tests.bench.ledger.shared_commit`: what sharing commits brings to writers of the ledger on SQLite.

So many threads reserve and settle one call after the other, with shared commits and with one each, in turns.
"""

import argparse
import itertools
import random
import statistics
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from zoneinfo import ZoneInfo

import sqlalchemy as sa

from app.db.migration import upgrade
from app.db.session import Database
from app.types import Settlement, UsageStatus
from app.usage.budgets.budgets import Budgets
from app.usage.ledger.ledger import Ledger
from app.usage.rollups.builder import RollupBuilder
from app.usage.rollups.rollups import Rollups
from tests.app.usage.samples import reservation


class OwnCommits(Database):
    """A commit for each transaction."""

    @contextmanager
    def write_shortly(self) -> Iterator[sa.Connection]:
        with self.write() as connection:
            yield connection


def calls_per_second(kind: type[Database], *, writers: int, seconds: float, folder: str) -> float:
    database, zone = kind.open(f"sqlite:///{folder}/footnote.db"), ZoneInfo("UTC")
    upgrade(database)
    RollupBuilder(database, zone).ensure_zone()
    ledger = Ledger(database, "boot", observers=(Budgets(), Rollups(zone)))
    numbers, ends = itertools.count(), time.monotonic() + seconds

    def write() -> None:
        while time.monotonic() < ends:
            event = f"req_{next(numbers)}:1"
            ledger.reserve(reservation(event, tenant_id="default"))
            ledger.settle(event, Settlement(status=UsageStatus.COMPLETED))

    threads = [threading.Thread(target=write) for _ in range(writers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    database.close()
    return next(numbers) / seconds


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.ledger.shared_commit", description=__doc__)
    parser.add_argument("--seconds", type=float, default=3.0, help="of each run")
    parser.add_argument("--runs", type=int, default=5, help="of each kind")
    parser.add_argument("--folder", help="where the databases lie; default: for temporary files")
    chosen = parser.parse_args()
    for writers in (1, 4, 8):
        found: dict[type[Database], list[float]] = {Database: [], OwnCommits: []}
        for _ in range(chosen.runs):
            for kind in random.sample(sorted(found, key=lambda kind: kind.__name__), 2):
                with tempfile.TemporaryDirectory(dir=chosen.folder) as folder:
                    found[kind].append(calls_per_second(kind, writers=writers, seconds=chosen.seconds, folder=folder))
        shared, own = (statistics.median(found[kind]) for kind in (Database, OwnCommits))
        print(f"{writers} writers: {shared:.0f} calls/s shared, {own:.0f} each its own, ratio {shared / own:.2f}")


if __name__ == "__main__":
    main()
