"""Exact counts that come after others settled a call at its checkpoint become a correction, once."""

from pathlib import Path
from zoneinfo import ZoneInfo

import sqlalchemy as sa

from app.db.audit import AuditLog
from app.db.presence import OwnProcess, not_living
from app.db.session import Database
from app.db.tables.ledger import process, usage_event
from app.db.tables.prices import usage_adjustment
from app.db.tables.usage_columns import Measures
from app.telemetry.metrics import Metrics
from app.types import Operation, Principal, Role, Settlement, UsageStatus
from app.usage.ledger.adjustments import Adjustments, adjusted_calls
from app.usage.ledger.ledger import Ledger
from app.usage.ledger.prices import PriceRepository
from app.usage.ledger.rerating import Rerater
from app.usage.ledger.settlement_journal import SettlementJournal
from app.usage.reconciliation.reconciliation import LedgerReconciliation
from app.usage.rollups.rollups import Rollups
from tests.app.usage.samples import Clock, reservation

ADMIN = Principal("t1", "root", "k0", Role.ADMIN)
EXACT = Settlement(status=UsageStatus.SERVER_ABORT, cached_tokens=7, output_tokens=41, delivered_tokens=38)
EVENT = "req_1:1"


class Books:
    """A process that was taken for dead while it generated, and another one that settled its call."""

    def __init__(self, database: Database, *, operation: Operation = Operation.CHAT, priced: bool = True) -> None:
        self.database, self.clock = database, Clock()
        self.audit = AuditLog(database, clock=self.clock)
        rollups = Rollups(ZoneInfo("UTC"))
        self.adjustments = Adjustments(database, self.audit, observers=(rollups,), currency="usd", clock=self.clock)
        self.observers = (rollups,)
        prices = PriceRepository(database, self.audit, currency="usd", clock=self.clock)
        if priced:
            for meter, per_million in (("input", "1"), ("cached_input", "0.1"), ("output", "2")):
                prices.add(ADMIN, model="m1", meter=meter, price_per_million=per_million)
        self.clock.now += 1
        self.buried = self.ledger("boot-1")
        self.buried.reserve(reservation(EVENT, operation=operation))
        self.buried.checkpoint(EVENT, 32 if operation.generates else 0)
        self.other = self.ledger("boot-2")
        with database.write() as connection:
            assert self.other.recover_in(connection, not_living) == 1
        self.clock.now += 1

    def ledger(self, boot_id: str, journal: SettlementJournal | None = None) -> Ledger:
        row = {"boot_id": boot_id, "role": "all", "version": "0", "host": "h", "started_at": 0.0, "beat": 1}
        if boot_id != "boot-1":
            with self.database.write() as connection:
                connection.execute(sa.insert(process).values(**row))
        late = self.adjustments.correct_late_in
        return Ledger(
            self.database, boot_id, self.clock, observers=self.observers, journal=journal, late=late, clock_in=self.now
        )

    def now(self, _: sa.Connection) -> float:
        return self.clock.now

    def billed(self) -> tuple[Measures, int]:
        with self.database.read() as connection:
            (call,) = adjusted_calls(connection, sa.select(usage_event))
        return call.counts, call.cost_pico

    def corrections(self) -> list[sa.Row[tuple[object, ...]]]:
        with self.database.read() as connection:
            return list(connection.execute(sa.select(usage_adjustment).where(usage_adjustment.c.kind == "correction")))

    def agree(self) -> bool:
        own = OwnProcess("boot-2", not_living)
        found = LedgerReconciliation(self.database, own, zone=ZoneInfo("UTC"), metrics=Metrics()).run(since=0)
        return found.mismatches == ()


def test_the_bill_of_a_call_is_in_the_end_what_was_generated(database: Database) -> None:
    books = Books(database)
    recovered, _ = books.billed()

    assert not books.buried.settle(EVENT, EXACT), "its row was settled before"

    counts, cost = books.billed()
    assert (recovered.output_tokens, counts.output_tokens) == (32, 41)
    assert (counts.input_cached_tokens, counts.output_delivered_tokens, counts.input_tokens) == (7, 38, 20)
    assert cost == 13 * 1_000_000 + 7 * 100_000 + 41 * 2_000_000
    (correction,) = books.corrections()
    assert correction.created_at == round(books.clock.now * 1_000_000), "closed ranges stay as they were exported"
    assert (correction.created_by, correction.reason) == ("", "Counted after its process was taken for dead.")
    assert books.agree()


def test_it_is_corrected_once_also_when_the_journal_brings_it_again(database: Database, tmp_path: Path) -> None:
    books = Books(database)
    books.buried.settle(EVENT, EXACT)
    journal = SettlementJournal(tmp_path / "settlements.jsonl")
    journal.append(EVENT, EXACT)

    assert books.ledger("boot-3", journal).settle_journaled() == 0

    assert (len(books.corrections()), len(journal)) == (1, 0)
    assert books.billed()[0].output_tokens == 41


def test_the_journal_of_a_process_that_starts_again_corrects_what_others_settled(
    database: Database, tmp_path: Path
) -> None:
    books = Books(database)
    journal = SettlementJournal(tmp_path / "settlements.jsonl")
    journal.append(EVENT, EXACT)

    books.ledger("boot-3", journal).settle_journaled()

    assert books.billed()[0].output_tokens == 41
    assert books.agree()


def test_counts_that_are_the_same_correct_nothing(database: Database) -> None:
    books = Books(database)

    books.buried.settle(EVENT, Settlement(status=UsageStatus.COMPLETED, output_tokens=32))

    assert books.corrections() == []


def test_what_an_administrator_corrected_is_left_alone(database: Database) -> None:
    books = Books(database)
    books.adjustments.correct(ADMIN, EVENT, Measures(output_tokens=9), reason="seen in the log")

    books.buried.settle(EVENT, EXACT)

    assert len(books.corrections()) == 1
    assert books.billed()[0].output_tokens == 41


def test_a_rerated_call_keeps_its_new_price(database: Database) -> None:
    books = Books(database, priced=False)
    assert books.billed()[1] == 0
    prices = PriceRepository(database, books.audit, currency="usd", clock=books.clock)
    for meter in ("input", "cached_input", "output"):
        prices.add(ADMIN, model="m1", meter=meter, price_per_million="1", effective_from=0)
    rerater = Rerater(database, books.adjustments, books.audit, clock=books.clock)
    rerater.run(ADMIN, start=0, end=2**56, reason="a price", dry_run=False)

    books.buried.settle(EVENT, EXACT)

    assert books.billed()[1] == (20 + 41) * 1_000_000
    assert books.agree()


def test_an_unpriced_call_is_corrected_in_tokens(database: Database) -> None:
    books = Books(database, priced=False)

    books.buried.settle(EVENT, EXACT)

    counts, cost = books.billed()
    assert (counts.output_tokens, cost) == (41, 0)
    assert books.agree()


def test_an_ingestion_is_billed_for_what_it_kept(database: Database) -> None:
    """The rest is embedded, and billed, by whoever took the job."""
    books = Books(database, operation=Operation.EMBED_DOC)

    books.buried.settle(EVENT, Settlement(status=UsageStatus.ERROR, input_tokens=5))

    assert books.corrections() == []


def test_a_call_that_ended_by_itself_is_not_corrected(database: Database) -> None:
    books = Books(database)
    books.other.reserve(reservation("req_2:1"))
    books.other.settle("req_2:1", Settlement(status=UsageStatus.COMPLETED, output_tokens=3))

    assert not books.other.settle("req_2:1", EXACT)

    assert books.corrections() == []
