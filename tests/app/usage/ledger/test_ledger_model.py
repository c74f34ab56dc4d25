"""The ledger under random operations equals a model in memory."""

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
import sqlalchemy as sa
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from app.db.presence import OwnProcess
from app.db.session import Database
from app.db.tables.budgets import budget, budget_hold, budget_window
from app.db.tables.ledger import usage_event
from app.db.tables.prices import price
from app.errors import BudgetExceeded, StoreUnavailable
from app.telemetry.metrics import Metrics
from app.types import Components, Operation, Settlement, UsageStatus
from app.usage.budgets.budgets import Budgets
from app.usage.ledger.ledger import Ledger
from app.usage.ledger.settlement_journal import SettlementJournal
from app.usage.reconciliation.engine_counters import EngineCounters
from app.usage.reconciliation.reconciliation import LedgerReconciliation
from app.usage.rollups.rollups import Rollups
from generation.types import EngineStats, ModelInfo
from tests.app.usage.samples import Clock, reservation
from tests.examples import examples

ZONE = ZoneInfo("Australia/Lord_Howe")  # half an hour of summer time
LIMIT = 1500
ENDS = [UsageStatus.COMPLETED, UsageStatus.CLIENT_ABORT, UsageStatus.SERVER_ABORT, UsageStatus.ERROR]


class AwayDatabase(Database):
    """Takes no writes while `away`."""

    away = False

    @contextmanager
    def write(self) -> Iterator[sa.Connection]:
        if self.away:
            raise StoreUnavailable("The database cannot be reached or is locked; try again in a moment.")
        with super().write() as connection:
            yield connection

    @contextmanager
    def write_shortly(self) -> Iterator[sa.Connection]:
        if self.away:
            raise StoreUnavailable("The database cannot be reached or is locked; try again in a moment.")
        with super().write_shortly() as connection:
            yield connection


class Engine:
    """Says what a test says it did."""

    def __init__(self) -> None:
        self.prefill = self.decode = self.requests = 0

    @property
    def info(self) -> ModelInfo:
        return ModelInfo(model="m1", revision="0", context_window=100, device="cpu", dtype="float32")

    def stats(self) -> EngineStats:
        return EngineStats(
            waiting=0,
            running=0,
            capacity=1,
            prefill_tokens=self.prefill,
            decode_tokens=self.decode,
            requests=self.requests,
            cancelled=0,
        )


@dataclass(frozen=True, slots=True)
class Row:
    """A call as it must stand in the ledger. `price` is a token's when it was accepted, None without one."""

    boot: str
    status: str
    input: int
    output: int
    most: int
    accepted: int
    price: int | None
    cached: int = 0
    delivered: int = 0

    @property
    def cost(self) -> int | None:
        return None if self.price is None else self.price * (self.input + self.output)


class LedgerModel(RuleBasedStateMachine):
    """Invariants 4, 7, 8, 9 and 10, and with them 3, 6, 11 and 17: they are looked at after every step."""

    migrated: Path

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp())
        shutil.copy(self.migrated, self.folder / "footnote.db")
        self.clock = Clock()
        self.boots = 0
        self.calls = 0
        self.looks = 0
        self.rows: dict[str, Row] = {}
        self.journaled: dict[str, Row] = {}
        self.price: int | None = None
        self.away = False

    @initialize()
    def begin(self) -> None:
        self._start()
        with self.database.write() as connection:
            connection.execute(
                sa.insert(budget).values(
                    budget_id="b1",
                    tenant_id="t1",
                    scope_type="tenant",
                    scope_id="t1",
                    unit="tokens",
                    limit_value=LIMIT,
                    period="day",
                    tz=ZONE.key,
                    enforcement="hard",
                    created_by="u1",
                    created_at=0,
                )
            )

    def _start(self) -> None:
        self.boots += 1
        database = AwayDatabase.open(f"sqlite:///{self.folder / 'footnote.db'}")
        assert isinstance(database, AwayDatabase)
        self.database = database
        self.engine = Engine()
        self.journal = SettlementJournal(self.folder / "settlements.jsonl")
        self.ledger = Ledger(
            self.database, f"boot_{self.boots}", self.clock, observers=(Budgets(), Rollups(ZONE)), journal=self.journal
        )
        assert self.ledger.settle_journaled() == len(self.journaled)
        self._taken_from_the_journal()
        left_open = [event_id for event_id, row in self.rows.items() if row.status == UsageStatus.RESERVED]
        assert self.ledger.recover() == len(left_open)
        for event_id in left_open:
            self.rows[event_id] = replace(self.rows[event_id], status=UsageStatus.RECOVERED)
        self.counters = EngineCounters(self.database, self.engine, boot_id=self.ledger.boot_id, clock=self.clock)
        self.counters.flush()
        self.reconciliation = LedgerReconciliation(
            self.database,
            OwnProcess.alone(self.ledger.boot_id, clock=self.clock),
            zone=ZONE,
            metrics=Metrics(),
            counters=self.counters,
        )

    def _taken_from_the_journal(self) -> None:
        self.rows |= self.journaled
        self.journaled.clear()

    @property
    def _open(self) -> list[str]:
        return [event_id for event_id, row in self.rows.items() if row.status == UsageStatus.RESERVED]

    def _room(self) -> int:
        """What the budget of today still has."""
        with self.database.read() as connection:
            window = connection.execute(
                sa.select(budget_window).order_by(budget_window.c.window_start.desc()).limit(1)
            ).one_or_none()
        now = round(self.clock.now * 1_000_000)
        if window is None or not window.window_start <= now < window.window_end:
            return LIMIT
        return LIMIT - int(window.reserved) - int(window.settled)

    @rule(
        operation=st.sampled_from([Operation.CHAT, Operation.REWRITE]),
        parts=st.tuples(*[st.integers(0, 20)] * 5),
        most=st.integers(0, 60),
    )
    def reserve(self, operation: Operation, parts: tuple[int, ...], most: int) -> None:
        self.calls += 1
        event_id = f"req_{self.calls}:1"
        components = Components(*parts)
        asked = reservation(event_id, operation=operation, components=components, max_output_tokens=most)
        if self.away:
            with pytest.raises(StoreUnavailable):
                self.ledger.reserve(asked)
            return
        if components.total + most > self._room():
            with pytest.raises(BudgetExceeded):
                self.ledger.reserve(asked)
            return
        self.ledger.reserve(asked)
        self.engine.requests += 1  # it hears of the call now, whose row is there
        accepted = round(self.clock.now * 1_000_000)
        self.rows[event_id] = Row(
            self.ledger.boot_id, UsageStatus.RESERVED, components.total, 0, most, accepted, self.price
        )

    @rule(
        data=st.data(),
        parts=st.tuples(*[st.integers(0, 20)] * 5),
        most=st.integers(0, 60),
        status=st.sampled_from(ENDS),
        times=st.integers(1, 4),
    )
    def ask(self, data: st.DataObject, parts: tuple[int, ...], most: int, status: UsageStatus, times: int) -> None:
        for _ in range(times):
            self.reserve(Operation.CHAT, parts, most)
            if f"req_{self.calls}:1" in self.rows:
                self._end(data, f"req_{self.calls}:1", status, read=True)

    @precondition(lambda self: self._open and not self.away)
    @rule(data=st.data(), tokens=st.integers(0, 60))
    def checkpoint(self, data: st.DataObject, tokens: int) -> None:
        event_id = data.draw(st.sampled_from(self._open))
        row = self.rows[event_id]
        if event_id in self.journaled or tokens > row.most:
            return
        self.ledger.checkpoint(event_id, tokens)
        self.rows[event_id] = replace(row, output=max(row.output, tokens))

    @precondition(lambda self: self._open)
    @rule(data=st.data(), status=st.sampled_from(ENDS), read=st.booleans())
    def settle(self, data: st.DataObject, status: UsageStatus, read: bool) -> None:
        event_id = data.draw(st.sampled_from(self._open))
        if event_id not in self.journaled:
            self._end(data, event_id, status, read=read)

    def _end(self, data: st.DataObject, event_id: str, status: UsageStatus, *, read: bool) -> None:
        row = self.rows[event_id]
        if not read:
            ended = replace(row, status=status, input=0, output=0)
        else:
            output = data.draw(st.integers(0, row.most))
            cached, delivered = data.draw(st.integers(0, row.input)), data.draw(st.integers(0, output))
            ended = replace(row, status=status, output=output, cached=cached, delivered=delivered)
        self.engine.prefill += ended.input - ended.cached
        self.engine.decode += ended.output
        assert self.ledger.settle(event_id, _settlement(ended))
        if self.away:
            self.journaled[event_id] = ended
        else:
            self.rows[event_id] = ended

    @precondition(lambda self: not self.away and any(row.status != "reserved" for row in self.rows.values()))
    @rule(data=st.data(), status=st.sampled_from(ENDS))
    def settle_again(self, data: st.DataObject, status: UsageStatus) -> None:
        done = [event_id for event_id, row in self.rows.items() if row.status != UsageStatus.RESERVED]
        event_id = data.draw(st.sampled_from(done))
        assert not self.ledger.settle(event_id, Settlement(status=status, input_tokens=0))

    @rule(tokens=st.integers(0, 10**7))
    def change_the_price(self, tokens: int) -> None:
        if self.away:
            return
        now = round(self.clock.now * 1_000_000)
        with self.database.write() as connection:
            current = price.c.effective_to.is_(None)
            if connection.execute(sa.select(price.c.price_id).where(current, price.c.effective_from >= now)).first():
                return
            connection.execute(sa.update(price).where(current).values(effective_to=now))
            for meter in ("input", "output"):
                connection.execute(
                    sa.insert(price).values(
                        price_id=f"price_{meter}_{now}",
                        model_id="m1",
                        meter=meter,
                        currency="usd",
                        pico_per_token=tokens,
                        effective_from=now,
                        created_by="u1",
                        created_at=now,
                    )
                )
        self.price = tokens

    @rule(seconds=st.sampled_from([0.001, 1.0, 899.0, 1800.0, 43_200.0]))
    def wait(self, seconds: float) -> None:
        self.clock.now += seconds

    @rule()
    def the_database_goes_away(self) -> None:
        self.away = self.database.away = True

    @rule(data=st.data(), most=st.integers(0, 60), status=st.sampled_from(ENDS), killed=st.booleans())
    def the_database_goes_away_under_a_call(
        self, data: st.DataObject, most: int, status: UsageStatus, killed: bool
    ) -> None:
        self.reserve(Operation.CHAT, (1, 2, 3, 4, 5), most)
        self.the_database_goes_away()
        if f"req_{self.calls}:1" in self.rows:
            self._end(data, f"req_{self.calls}:1", status, read=True)
        if killed:
            self.kill_and_restart(flushed=False)

    @precondition(lambda self: self.away)
    @rule(retry=st.booleans())
    def the_database_comes_back(self, retry: bool) -> None:
        self.away = self.database.away = False
        if retry:
            assert self.ledger.settle_journaled() == len(self.journaled)
            self._taken_from_the_journal()

    @rule(flushed=st.booleans())
    def kill_and_restart(self, flushed: bool) -> None:
        if flushed and not self.away:
            self.counters.flush()
        self.database.close()
        self.away = False
        self._start()

    @precondition(lambda self: not self.away)
    @rule()
    def stop_and_restart(self) -> None:
        for event_id in self._open:
            if event_id not in self.journaled:
                row = self.rows[event_id]
                ended = replace(row, status=UsageStatus.SERVER_ABORT, output=0, input=0)
                self.ledger.settle(event_id, _settlement(ended))
                self.rows[event_id] = ended
        self.counters.close()
        self.database.close()
        self._start()

    @invariant()
    def the_rows_are_the_models(self) -> None:
        """Acknowledged, durable and attempted are the same here: nothing is cut off inside a call."""
        if not self.boots:
            return
        with self.database.read() as connection:
            query = sa.select(usage_event, (usage_event.c.settled_at.is_(None)).label("running"))
            found = {row.event_id: row for row in connection.execute(query)}
            holds = connection.execute(
                sa.select(budget_hold.c.event_id).where(budget_hold.c.settled.is_(None))
            ).scalars()
            assert set(holds) == set(self._open)
        assert found.keys() == self.rows.keys()
        for event_id, row in self.rows.items():
            kept = found[event_id]
            assert (kept.boot_id, kept.status, kept.accepted_at) == (row.boot, row.status, row.accepted)
            assert (kept.input_tokens, kept.output_tokens, kept.max_output_tokens) == (row.input, row.output, row.most)
            assert (kept.input_cached_tokens, kept.output_delivered_tokens) == (row.cached, row.delivered)
            assert kept.running == (row.status == UsageStatus.RESERVED)
            assert kept.cost_pico == (None if row.status == UsageStatus.RESERVED else row.cost)

    @invariant()
    def everything_agrees(self) -> None:
        if self.boots:
            self.looks += 1
            found = self.reconciliation.run(since=0) if self.looks % 8 == 0 else self.reconciliation.run()
            assert found.ok, [check for check in found.checks if not check.ok]

    def teardown(self) -> None:
        if self.boots:
            found = self.reconciliation.run(since=0)
            assert found.ok, [check for check in found.checks if not check.ok]
            self.database.close()
        shutil.rmtree(self.folder)


def _settlement(row: Row) -> Settlement:
    return Settlement(
        status=UsageStatus(row.status),
        input_tokens=row.input,
        cached_tokens=row.cached,
        output_tokens=row.output,
        delivered_tokens=row.delivered,
    )


def test_any_sequence_of_ledger_operations_equals_the_model_in_memory(migrated_file: Path) -> None:
    class Here(LedgerModel):
        migrated = migrated_file

    run_state_machine_as_test(Here, settings=settings(deadline=None, max_examples=examples(25), stateful_step_count=20))
