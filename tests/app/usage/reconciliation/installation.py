"""An installation whose books, rollups and engine counters agree until a test damages one."""

from collections.abc import Iterator
from contextlib import contextmanager
from zoneinfo import ZoneInfo

import pytest
import sqlalchemy as sa

from app.db.presence import Gone, OwnProcess, all_but
from app.db.session import Database
from app.telemetry.metrics import Metrics
from app.types import DocumentShare, Operation, Settlement, UsageStatus
from app.usage.ledger.ledger import Ledger
from app.usage.reconciliation.checks import Check
from app.usage.reconciliation.engine_counters import EngineCounters
from app.usage.reconciliation.reconciliation import LedgerReconciliation, Reconciliation
from app.usage.rollups.rollups import Rollups
from generation.types import EngineStats, ModelInfo
from tests.app.usage.samples import Clock, reservation

BERLIN = ZoneInfo("Europe/Berlin")


MODEL = "m1"


class CountedEngine:
    """An engine that did what a test says it did."""

    def __init__(self) -> None:
        self.counts = EngineStats(
            waiting=0, running=0, capacity=1, prefill_tokens=0, decode_tokens=0, requests=0, cancelled=0
        )

    @property
    def info(self) -> ModelInfo:
        return ModelInfo(model=MODEL, revision="0", context_window=100, device="cpu", dtype="float32")

    def stats(self) -> EngineStats:
        return self.counts


class Installation:
    """A ledger with sums, an engine's counters, and what reconciles them."""

    def __init__(
        self, database: Database, boot_id: str = "boot_1", *, clock: Clock | None = None, gone: Gone | None = None
    ) -> None:
        self.database = database
        self.clock = clock or Clock()
        self.engine = CountedEngine()
        self.metrics = Metrics()
        self.ledger = Ledger(database, boot_id, self.clock, observers=(Rollups(BERLIN),))
        self.counters = EngineCounters(database, self.engine, boot_id=boot_id, clock=self.clock)
        self.counters.flush()
        self.reconciliation = LedgerReconciliation(
            database,
            OwnProcess(boot_id, gone or all_but(boot_id), self.clock),
            zone=BERLIN,
            metrics=self.metrics,
            counters=self.counters,
        )
        self._number = 0

    def begin(self, operation: Operation = Operation.CHAT) -> str:
        self._number += 1
        event_id = f"{self.ledger.boot_id}-{self._number}:1"
        documents = (DocumentShare("doc_1", 1, 2), DocumentShare("doc_2", 1, 4)) if operation.generates else ()
        self.ledger.reserve(
            reservation(
                event_id,
                operation=operation,
                input_tokens=None if operation.generates else 9,
                max_output_tokens=50 if operation.generates else 0,
                documents=documents,
            )
        )
        return event_id

    def end(self, event_id: str, *, output: int = 10, cached: int = 5, counted: bool = True) -> None:
        """Settle a call of 20 tokens; the engine counts it too, unless it forgets."""
        if counted:
            self.count(prefill=20 - cached, decode=output)
        self.ledger.settle(
            event_id, Settlement(status=UsageStatus.COMPLETED, cached_tokens=cached, output_tokens=output)
        )

    def count(self, *, prefill: int, decode: int) -> None:
        before = self.engine.counts
        self.engine.counts = EngineStats(
            waiting=0,
            running=0,
            capacity=1,
            prefill_tokens=before.prefill_tokens + prefill,
            decode_tokens=before.decode_tokens + decode,
            requests=before.requests + 1,
            cancelled=0,
        )

    def look(self, **options: int) -> Reconciliation:
        return self.reconciliation.run(**options)

    def check(self, name: str, **options: int) -> Check:
        (found,) = [check for check in self.look(**options).checks if check.name == name]
        return found

    @contextmanager
    def changed(self) -> Iterator[sa.Connection]:
        """Behind everybody's back."""
        with self.database.write() as connection:
            yield connection


@pytest.fixture
def installation(database: Database) -> Installation:
    return Installation(database)
