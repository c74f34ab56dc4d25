"""`python -m tests.bench.ledger.settle`: milliseconds of writing a call down and of closing it, SQLite with full sync.

A price and sums are kept, without a budget and with one each for tenant, user, key and collection; one caller.
"""

import argparse
import json
import statistics
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from zoneinfo import ZoneInfo

from app.db.audit import AuditLog
from app.db.migration import upgrade
from app.db.session import Database
from app.types import DocumentShare, Principal, Role, Settlement, UsageStatus
from app.usage.budgets.budgets import Budgets
from app.usage.budgets.repository import BudgetRepository
from app.usage.ledger.ledger import Ledger
from app.usage.ledger.prices import PriceRepository
from app.usage.rollups.rollups import Rollups
from tests.app.usage.samples import reservation

_ADMIN = Principal("t1", "u1", "k1", Role.ADMIN)
_SETTLEMENT = Settlement(status=UsageStatus.COMPLETED, cached_tokens=2, output_tokens=9, delivered_tokens=9)


def measure(calls: int) -> dict[str, object]:
    """p50 and p95 of both together, without and with four budgets."""
    with tempfile.TemporaryDirectory() as folder:
        database = Database.open(f"sqlite:///{Path(folder) / 'footnote.db'}")
        upgrade(database)
        audit = AuditLog(database)
        for meter in ("input", "output"):
            PriceRepository(database, audit, currency="usd").add(
                _ADMIN, model="m1", meter=meter, price_per_million="0.25"
            )
        ledger = Ledger(database, "boot", observers=(Budgets(), Rollups(ZoneInfo("Europe/Berlin"))))
        result: dict[str, object] = {"calls": calls, "no_budget": _timed(ledger, calls, "a")}
        budgets = BudgetRepository(database, audit)
        for scope_type, scope_id in (("tenant", "t1"), ("user", "u1"), ("key", "k1"), ("collection", "c1")):
            budgets.create(
                _ADMIN,
                scope_type=scope_type,
                scope_id=scope_id,
                unit="tokens",
                limit=10**12,
                period="day",
                tz="Europe/Berlin",
                enforcement="hard",
                thresholds=(80, 100),
            )
        result["four_budgets"] = _timed(ledger, calls, "b")
        database.close()
        return result


def _timed(ledger: Ledger, calls: int, name: str) -> dict[str, float]:
    taken = []
    for number in range(calls):
        call = replace(
            reservation(f"req_{name}{number}:1", documents=[DocumentShare("doc_1", 2, 4)]), collection_ids=("c1",)
        )
        began = time.perf_counter()
        ledger.reserve(call)
        ledger.settle(call.event_id, _SETTLEMENT)
        taken.append((time.perf_counter() - began) * 1000)
    taken.sort()
    return {"p50_ms": round(statistics.median(taken), 2), "p95_ms": round(taken[int(calls * 0.95)], 2)}


def main() -> None:
    """Print the figures as JSON."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.ledger.settle", description=__doc__)
    parser.add_argument("--calls", type=int, default=2000)
    print(json.dumps(measure(parser.parse_args().calls), indent=1))


if __name__ == "__main__":
    main()
